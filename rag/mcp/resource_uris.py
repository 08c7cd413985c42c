"""URIs of MCP resources: `ragsite://COLLECTION`, `ragsite://COLLECTION/KEY?version=N`. Without
Django."""

from dataclasses import dataclass
from urllib.parse import quote, unquote

from common.errors import NotFound

SCHEME = "ragsite://"
COLLECTION_TEMPLATE = "ragsite://{collection}"
DOCUMENT_TEMPLATE = "ragsite://{collection}/{key}{?version}"

_VERSION = "?version="
_MAX_VERSION = 2**31 - 1


class UnknownResource(NotFound):
    """Not the URI of a resource of this site."""

    def __init__(self, uri: str) -> None:
        super().__init__(
            f"“{uri}” is no resource of this site. They are called {COLLECTION_TEMPLATE} and"
            f" {DOCUMENT_TEMPLATE}, everything percent-encoded; resources/list names them."
        )


@dataclass(frozen=True, slots=True)
class ResourceUri:
    """A collection, by slug; one of its documents if `key` is not empty; its current version if
    `version` is None."""

    collection: str
    key: str = ""
    version: int | None = None

    @property
    def uri(self) -> str:
        """The URI. Keys may contain any character: all but letters, digits and `_.-~` are percent-
        encoded, slashes too."""
        uri = SCHEME + _percent_encoded(self.collection)
        if self.key:
            uri += "/" + _percent_encoded(self.key)
        return uri if self.version is None else f"{uri}{_VERSION}{self.version}"


def parse_uri(uri: str) -> ResourceUri:
    """Parse a URI. A key's characters may be unencoded, except `?`, `#` and `%`. Raises
    UnknownResource."""
    if not uri.startswith(SCHEME):
        raise UnknownResource(uri)
    path, separator, version = uri.removeprefix(SCHEME).partition(_VERSION)
    collection, _, key = path.partition("/")
    if separator and not (version.isascii() and version.isdigit() and len(version) < 11):
        raise UnknownResource(uri)
    number = int(version) if separator else None
    if "?" in path or (number is not None and not 1 <= number <= _MAX_VERSION):
        raise UnknownResource(uri)
    try:
        address = ResourceUri(
            collection=unquote(collection, errors="strict"),
            key=unquote(key, errors="strict"),
            version=number,
        )
    except ValueError as error:
        raise UnknownResource(uri) from error
    if not address.collection or "#" in path or (address.version and not address.key):
        raise UnknownResource(uri)
    return address


def _percent_encoded(text: str) -> str:
    """Percent-encode; `.` and `..` alone would be path steps."""
    return "%2E" * len(text) if text in {".", ".."} else quote(text, safe="")
