"""The kinds of sources. Each is imported when it is used, with the library that it needs."""

from functools import cache

from django.conf import settings
from django.utils.module_loading import import_string

from common.errors import InvalidInput
from common.translation import gettext
from sources.connectors.base import Connector

#: By kind: the module's class.
CONNECTORS = {
    "feed": "sources.connectors.feed.Feed",
    "folder": "sources.connectors.folder.Folder",
    "git": "sources.connectors.git.Git",
    "imap": "sources.connectors.imap.Imap",
    "s3": "sources.connectors.s3.S3",
    "ragsite": "sources.connectors.ragsite.RagSite",
    "web": "sources.connectors.web_site.WebSite",
    "webdav": "sources.connectors.webdav.WebDav",
}


def connector_paths() -> dict[str, str]:
    """By kind: the class, of the site's own kinds and of those in RAGSITE_CONNECTORS."""
    return {**CONNECTORS, **settings.CONNECTORS}


def kinds() -> list[str]:
    return sorted(connector_paths())


def connector_class(kind: str) -> type[Connector]:
    """Raises InvalidInput for a kind that there is not."""
    path = connector_paths().get(kind)
    if path is None:
        raise InvalidInput(
            gettext("“{kind}” is not a kind of source. Choose one of: {kinds}.").format(
                kind=kind, kinds=", ".join(kinds())
            ),
            field="connector",
        )
    return _imported(path)


@cache
def _imported(path: str) -> type[Connector]:
    found: type[Connector] = import_string(path)
    return found
