"""The page at `/`: what a person sees who opens the host's address. It needs no token, so it tells nothing."""

from html import escape
from typing import Final

from starlette.responses import HTMLResponse

from coterie.interfaces.http.answers import SAFE_HEADERS

_POLICY: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Coterie</title></head>
<body>
<h1>Coterie is running</h1>
<p>Version {version}.</p>
<p>Everything else here needs the header <code>Authorization: Bearer &lt;token&gt;</code>. The token is in the file
<code>token</code> of the data directory, and the command <code>coterie</code> reads it by itself.</p>
<ul>
<li><code>/api/v1/openapi.json</code>: the REST interface</li>
<li><code>/rpc</code>: JSON-RPC 2.0, one call to a POST</li>
<li><code>/api/v1/events</code>: changes as server-sent events</li>
</ul>
</body>
</html>
"""


def status_page(version: str) -> HTMLResponse:
    """The page."""
    headers = {**SAFE_HEADERS, "content-security-policy": _POLICY, "referrer-policy": "no-referrer"}
    return HTMLResponse(_PAGE.format(version=escape(version)), headers=headers)
