"""The kinds of sources. Each is imported when it is used, with the library that it needs."""

from functools import cache
from importlib import import_module

from common.errors import InvalidInput
from sources.connectors.base import Connector

#: By kind: the module's class.
CONNECTORS = {
    "feed": "sources.connectors.feed.Feed",
    "folder": "sources.connectors.folder.Folder",
    "git": "sources.connectors.git.Git",
    "ragsite": "sources.connectors.ragsite.RagSite",
    "web": "sources.connectors.web_site.WebSite",
    "webdav": "sources.connectors.webdav.WebDav",
}


@cache
def connector_class(kind: str) -> type[Connector]:
    """Raises InvalidInput for a kind that there is not."""
    if kind not in CONNECTORS:
        raise InvalidInput(
            f"There is no kind “{kind}” of source. There are: {', '.join(sorted(CONNECTORS))}.",
            field="connector",
        )
    module, _, name = CONNECTORS[kind].rpartition(".")
    found: type[Connector] = getattr(import_module(module), name)
    return found
