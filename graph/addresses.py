"""The ids of documents and passages, which are nodes without a row of their own. Pure.

Keys of documents hold anything: colons, slashes, quotes, `@`. A collection's slug holds none of
these, so it ends at the first colon; a passage's number begins behind the last. A document has the
bare id as long as it is current, unless its key looks as if it named a version: then it has one
that does.
"""

import re
from dataclasses import dataclass

from graph.keys import CHUNK, DOCUMENT

_VERSIONED = re.compile(r"(?s)(?P<key>.+)@v(?P<version>[1-9][0-9]{0,8})")
_NUMBERED = re.compile(r"(?s)(?P<key>.+):(?P<ordinal>0|[1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class DocumentAddress:
    """A version of a document; None is the current one."""

    collection: str
    key: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class PassageAddress:
    """A passage of the current version of a document."""

    collection: str
    key: str
    ordinal: int


def document_id(*, collection: str, key: str, version: int, is_current: bool) -> str:
    """The id of this version of a document."""
    if is_current and not _VERSIONED.fullmatch(key):
        return f"{DOCUMENT}{collection}:{key}"
    return f"{DOCUMENT}{collection}:{key}@v{version}"


def passage_id(*, collection: str, key: str, ordinal: int) -> str:
    """The id of a passage of the current version of a document."""
    return f"{CHUNK}{collection}:{key}:{ordinal}"


def document_addresses(node_id: str) -> tuple[DocumentAddress, ...]:
    """What `node_id` may mean as a document's id, the likeliest first; empty: it is no such id."""
    collection, key = _parts(node_id, DOCUMENT)
    if not key:
        return ()
    plain = DocumentAddress(collection, key)
    versioned = _VERSIONED.fullmatch(key)
    if versioned is None:
        return (plain,)
    return DocumentAddress(collection, versioned["key"], int(versioned["version"])), plain


def passage_address(node_id: str) -> PassageAddress | None:
    """What `node_id` means as a passage's id; None: it is no such id."""
    collection, rest = _parts(node_id, CHUNK)
    numbered = _NUMBERED.fullmatch(rest)
    if numbered is None:
        return None
    return PassageAddress(collection, numbered["key"], int(numbered["ordinal"]))


def _parts(node_id: str, prefix: str) -> tuple[str, str]:
    if not node_id.startswith(prefix):
        return "", ""
    collection, _, key = node_id.removeprefix(prefix).partition(":")
    return (collection, key) if collection else ("", "")
