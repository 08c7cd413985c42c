"""Ids of nodes and names of relations: prefixes, checks, and the ids of documents and passages,
which have no row. Pure.

Document keys may hold colons, slashes, quotes and `@`. A collection's slug holds none of these,
so it ends at the first colon; a passage's number begins after the last. A current document has
the bare id, unless its key looks versioned.
"""

import re
from hashlib import sha256

from django.utils.translation import gettext

from common.errors import InvalidInput
from common.translation import format_number

MAX_ID_CHARACTERS = 1024
#: PostgreSQL indexes no larger key.
MAX_ID_BYTES = 2600
MAX_REL_CHARACTERS = 100
MAX_FORM_CHARACTERS = 300

DOCUMENT, CHUNK, ENTITY, REFERENCE, SYSTEM = "doc:", "chunk:", "ent:", "ref:", "src:"
#: Relations derived from documents, which cannot be written.
DERIVED_RELATIONS = ("HAS_CHUNK", "MENTIONS", "REFERS_TO", "NEXT", "VERSION_OF")

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_DIGITS = re.compile(r"([0-9]+)")


def is_content_id(node_id: str) -> bool:
    """Whether the id is one of a document or passage, existing or not."""
    return node_id.startswith((DOCUMENT, CHUNK))


def entity_value(node_id: str) -> str:
    """The value of `ent:<type>:<value>`; empty for other ids."""
    prefix, _, rest = node_id.partition(":")
    return rest.partition(":")[2] if prefix == "ent" else ""


def check_id(node_id: str, *, field: str = "id") -> str:
    """The id. Raises InvalidInput if invalid."""
    if not isinstance(node_id, str) or not node_id.strip():
        raise InvalidInput(gettext("An id needs at least one visible character."), field=field)
    if _CONTROL.search(node_id):
        raise InvalidInput(
            gettext("An id cannot contain control characters or unpaired surrogates."), field=field
        )
    # The key of a document alone may be this long.
    most = MAX_ID_CHARACTERS + 100 if is_content_id(node_id) else MAX_ID_CHARACTERS
    if len(node_id) > most:
        raise InvalidInput(
            gettext(
                "An id has at most {limit} characters; this one has {length}. Use a hash of it."
            ).format(limit=format_number(MAX_ID_CHARACTERS), length=format_number(len(node_id))),
            field=field,
        )
    size = len(node_id.encode()) if len(node_id) * 4 > MAX_ID_BYTES else 0
    if size > MAX_ID_BYTES and not is_content_id(node_id):
        raise InvalidInput(
            gettext(
                "An id has at most {limit} bytes; this one has {size}. Use a hash of it."
            ).format(size=format_number(size), limit=format_number(MAX_ID_BYTES)),
            field=field,
        )
    return node_id


def check_rel(rel: str, *, field: str = "rel") -> str:
    """The relation name. Raises InvalidInput if invalid."""
    if not isinstance(rel, str) or not rel.strip():
        raise InvalidInput(gettext("A relation needs a name, such as WORKS_AT."), field=field)
    if len(rel) > MAX_REL_CHARACTERS:
        raise InvalidInput(
            gettext(
                "The name of a relation has at most {limit} characters; this one has {length}."
            ).format(limit=MAX_REL_CHARACTERS, length=format_number(len(rel))),
            field=field,
        )
    if _CONTROL.search(rel):
        raise InvalidInput(
            gettext(
                "The name of a relation cannot contain control characters or unpaired surrogates."
            ),
            field=field,
        )
    return rel


def check_writable(source: str, rel: str, target: str, *, field: str = "rel") -> None:
    """Raises InvalidInput for relations derived from documents."""
    if rel in DERIVED_RELATIONS and (is_content_id(source) or is_content_id(target)):
        raise InvalidInput(
            gettext(
                "The relation {rel} comes from the documents and cannot be written or deleted."
                " Change the document, or choose another name for your relation."
            ).format(rel=rel),
            field=field,
        )


def natural_sort_key(text: str) -> tuple[list[str | int], str]:
    """Sort key that puts `…:2` before `…:10`."""
    parts: list[str | int] = list(_DIGITS.split(text))
    parts[1::2] = map(int, parts[1::2])
    return parts, text


def retired_id_form(node_id: str) -> str:
    """Alias under which the id of a merged node finds the node it went into.

    Names never look like it: their forms begin with a letter or digit.
    """
    plain = f"={node_id}"
    if len(plain) <= MAX_FORM_CHARACTERS:
        return plain
    return f"~{sha256(node_id.encode()).hexdigest()}"


def is_retired_id_form(form: str) -> bool:
    """Whether an alias is a former node id."""
    return form.startswith(("=", "~"))


_VERSIONED_KEY = re.compile(r"(?s)(?P<key>.+)@v(?P<version>[1-9][0-9]{0,8})")
_NUMBERED_KEY = re.compile(r"(?s)(?P<key>.+):(?P<ordinal>0|[1-9][0-9]{0,8})")


#: Slug of the collection, key, and version of a document; None is the current version.
DocumentAddress = tuple[str, str, int | None]
#: Slug of the collection, key of the document, and ordinal of a passage of its current version.
PassageAddress = tuple[str, str, int]


def document_id(*, collection: str, key: str, version: int, is_current: bool) -> str:
    """Node id of this version of a document."""
    if is_current and not _VERSIONED_KEY.fullmatch(key):
        return f"{DOCUMENT}{collection}:{key}"
    return f"{DOCUMENT}{collection}:{key}@v{version}"


def passage_id(*, collection: str, key: str, ordinal: int) -> str:
    """Node id of a passage of a document's current version."""
    return f"{CHUNK}{collection}:{key}:{ordinal}"


def document_addresses(node_id: str) -> tuple[DocumentAddress, ...]:
    """Documents that `node_id` may mean, most likely first; empty if it is no document id."""
    collection, key = _split_id(node_id, DOCUMENT)
    if not key:
        return ()
    plain = (collection, key, None)
    versioned = _VERSIONED_KEY.fullmatch(key)
    if versioned is None:
        return (plain,)
    return (collection, versioned["key"], int(versioned["version"])), plain


def passage_address(node_id: str) -> PassageAddress | None:
    """The passage that `node_id` means; None if it is no passage id."""
    collection, rest = _split_id(node_id, CHUNK)
    numbered = _NUMBERED_KEY.fullmatch(rest)
    return (collection, numbered["key"], int(numbered["ordinal"])) if numbered else None


def _split_id(node_id: str, prefix: str) -> tuple[str, str]:
    if not node_id.startswith(prefix):
        return "", ""
    collection, _, key = node_id.removeprefix(prefix).partition(":")
    return (collection, key) if collection else ("", "")
