"""The HTTP server: REST, events, and the gate before them."""

from coterie.interfaces.http.application import build_app
from coterie.interfaces.http.server import Server, bind, hosts_of, url_of

__all__ = ["Server", "bind", "build_app", "hosts_of", "url_of"]
