"""What ids and relations of the graph look like. Pure."""

import re
from hashlib import sha256

from common.errors import InvalidInput

MAX_ID_CHARACTERS = 1024
#: PostgreSQL indexes no larger key.
MAX_ID_BYTES = 2600
MAX_REL_CHARACTERS = 100
MAX_FORM_CHARACTERS = 300

DOCUMENT, CHUNK, ENTITY, REFERENCE, SYSTEM = "doc:", "chunk:", "ent:", "ref:", "src:"
#: What the documents themselves tell of documents and passages. Nobody writes these.
DERIVED_RELATIONS = ("HAS_CHUNK", "MENTIONS", "REFERS_TO", "NEXT", "VERSION_OF")

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_DIGITS = re.compile(r"([0-9]+)")


def entity_id(kind: str, value: str) -> str:
    """`ent:<type>:<value>`."""
    return f"{ENTITY}{kind}:{value}"


def names_content(node_id: str) -> bool:
    """Whether the id is one of a document or passage, there or not."""
    return node_id.startswith((DOCUMENT, CHUNK))


def entity_value(node_id: str) -> str:
    """The value of `ent:<type>:<value>`; empty for other ids."""
    prefix, _, rest = node_id.partition(":")
    return rest.partition(":")[2] if prefix == "ent" else ""


def check_id(node_id: str, *, field: str = "id") -> str:
    """The id itself. Raises InvalidInput where it cannot be one."""
    if not isinstance(node_id, str) or not node_id.strip():
        raise InvalidInput("An id is a text of at least one visible character.", field=field)
    if _CONTROL.search(node_id):
        raise InvalidInput(
            "An id holds no control character and no half of a surrogate pair.", field=field
        )
    # The key of a document alone may be this long.
    most = MAX_ID_CHARACTERS + 100 if names_content(node_id) else MAX_ID_CHARACTERS
    if len(node_id) > most:
        raise InvalidInput(
            f"An id has at most {MAX_ID_CHARACTERS:,} characters, this one has {len(node_id):,}."
            " Use a hash of it.",
            field=field,
        )
    if len(node_id) * 4 > MAX_ID_BYTES and not names_content(node_id):
        _check_bytes(node_id, field)
    return node_id


def _check_bytes(node_id: str, field: str) -> None:
    if (size := len(node_id.encode())) > MAX_ID_BYTES:
        raise InvalidInput(
            f"An id has at most {MAX_ID_BYTES:,} bytes, this one has {size:,}. Use a hash of it.",
            field=field,
        )


def check_rel(rel: str, *, field: str = "rel") -> str:
    """The relation's name itself. Raises InvalidInput where it cannot be one."""
    if not isinstance(rel, str) or not rel.strip():
        raise InvalidInput("A relation needs a name, such as WORKS_AT.", field=field)
    if len(rel) > MAX_REL_CHARACTERS:
        raise InvalidInput(
            f"A relation's name has at most {MAX_REL_CHARACTERS} characters, this one has"
            f" {len(rel):,}.",
            field=field,
        )
    if _CONTROL.search(rel):
        raise InvalidInput(
            "A relation's name holds no control character and no half of a surrogate pair.",
            field=field,
        )
    return rel


def check_writable(source: str, rel: str, target: str, *, field: str = "rel") -> None:
    """Raise InvalidInput for a relation that documents tell themselves."""
    if rel in DERIVED_RELATIONS and (names_content(source) or names_content(target)):
        raise InvalidInput(
            f"{rel} of documents and passages is read from the documents and cannot be written or"
            " deleted. Change the document, or name your relation otherwise.",
            field=field,
        )


def natural_order(text: str) -> tuple[list[str | int], str]:
    """Sorts `…:2` before `…:10`."""
    parts: list[str | int] = list(_DIGITS.split(text))
    parts[1::2] = map(int, parts[1::2])
    return parts, text


def retired_form(node_id: str) -> str:
    """The alias under which the id of a merged node goes on to mean the one that was kept.

    No form of a name looks like it: those hold letters, digits and spaces, and begin with none of
    these marks.
    """
    plain = f"={node_id}"
    if len(plain) <= MAX_FORM_CHARACTERS:
        return plain
    return f"~{sha256(node_id.encode()).hexdigest()}"


def is_retired_form(form: str) -> bool:
    """Whether an alias is the former id of a node, and not a name."""
    return form.startswith(("=", "~"))
