"""Who is told of what happens: the `[[notify]]` of the file."""

from coterie.core.notice import Notify, Sort
from coterie.settings._config import Table, is_url


def notify(root: Table) -> tuple[Notify, ...]:
    """Return where notices go."""
    return tuple(map(_one, root.tables("notify")))


def _one(row: Table) -> Notify:
    row.only(("command", "url", "events", "text"))
    command, url = row.texts("command"), row.text("url") or ""
    if bool(command) == bool(url):
        raise row.fault("url", 'a notify has command = ["program", "argument"] or url = "https://…", one of the two.')
    if url and not is_url(url):
        raise row.fault("url", "url in [notify] must begin with http:// or https://.")
    return Notify(command, url, _sorts(row), row.flag("text"))


def _sorts(row: Table) -> frozenset[Sort]:
    known = {sort.value: sort for sort in Sort}
    texts = row.texts("events")
    for text in texts:
        if text not in known:
            raise row.fault("events", f"events in [notify] has {text!r}, but may have: {', '.join(known)}.")
    return frozenset(known[text] for text in texts) or frozenset(Sort)
