"""How resources are called: `ragsite://COLLECTION`, `ragsite://COLLECTION/KEY?version=N`."""

from dataclasses import dataclass
from urllib.parse import quote, unquote

from common.errors import NotFound

SCHEME = "ragsite://"
COLLECTION_TEMPLATE = "ragsite://{collection}"
DOCUMENT_TEMPLATE = "ragsite://{collection}/{key}{?version}"

_VERSION = "?version="
_MAX_VERSION = 2**31 - 1


class UnknownAddress(NotFound):
    """No resource of this site can be called so."""

    def __init__(self, uri: str) -> None:
        super().__init__(
            f"“{uri}” is no resource of this site. They are called {COLLECTION_TEMPLATE} and"
            f" {DOCUMENT_TEMPLATE}, everything percent-encoded; resources/list names them."
        )


@dataclass(frozen=True, slots=True)
class Address:
    """A collection, by slug; one of its documents where `key` is not empty; its current version
    where `version` is None."""

    collection: str
    key: str = ""
    version: int | None = None

    @property
    def uri(self) -> str:
        """The same as text. Keys may hold any characters: each but letters, digits and `_.-~` is
        percent-encoded, slashes too."""
        uri = SCHEME + _encoded(self.collection)
        if self.key:
            uri += "/" + _encoded(self.key)
        return uri if self.version is None else f"{uri}{_VERSION}{self.version}"


def parse(uri: str) -> Address:
    """What `uri` calls. Slashes and other letters of a key may stand as they are, but `?`, `#` and
    `%`. Raises UnknownAddress."""
    if not uri.startswith(SCHEME):
        raise UnknownAddress(uri)
    path, asked, version = uri.removeprefix(SCHEME).partition("?")
    collection, _, key = path.partition("/")
    try:
        address = Address(
            collection=unquote(collection, errors="strict"),
            key=unquote(key, errors="strict"),
            version=_version(asked + version) if asked else None,
        )
    except ValueError as error:
        raise UnknownAddress(uri) from error
    if not address.collection or "#" in path or (address.version and not address.key):
        raise UnknownAddress(uri)
    return address


def _version(query: str) -> int:
    number = query.removeprefix(_VERSION)
    if number == query or not (number.isascii() and number.isdigit() and len(number) < 11):
        raise ValueError(query)
    if not 1 <= int(number) <= _MAX_VERSION:
        raise ValueError(query)
    return int(number)


def _encoded(text: str) -> str:
    """A `.` or `..` alone would be a step on a path."""
    return "%2E" * len(text) if text in {".", ".."} else quote(text, safe="")
