"""Colours and words for what the graph holds. Colours are the tokens --tone-0 to --tone-8."""

import zlib
from collections.abc import Sequence

#: Label, without regard to case → tone. Other labels get one of the last by their letters.
TONES = {
    "document": 1,
    "passage": 2,
    "chunk": 2,
    "name": 6,
    "person": 5,
    "place": 3,
    "location": 3,
    "organization": 7,
    "date": 4,
    "code": 8,
    "ref": 3,
    "email": 5,
}
OTHERS = (3, 4, 5, 6, 7, 8)
KINDS = {"document": "Document", "chunk": "Passage", "node": "Thing"}
RELATIONS = {
    "HAS_CHUNK": "has the passage",
    "MENTIONS": "mentions",
    "NEXT": "is followed by",
    "REFERS_TO": "refers to",
    "VERSION_OF": "is a version of",
}
#: Likewise, seen from the other end.
INCOMING = {
    "HAS_CHUNK": "is a passage of",
    "MENTIONS": "is mentioned by",
    "NEXT": "follows on",
    "REFERS_TO": "is referred to by",
    "VERSION_OF": "has the version",
}


def tone(labels: Sequence[str], kind: str) -> int:
    """The same for the same label, wherever and whenever it is shown."""
    if kind != "node":
        return TONES["document" if kind == "document" else "passage"]
    if not labels:
        return 0
    name = labels[0].casefold()
    return TONES.get(name) or OTHERS[zlib.crc32(name.encode()) % len(OTHERS)]


def label_words(labels: Sequence[str], kind: str) -> str:
    """What kind of thing it is, in one word or two."""
    words = labels[0].replace("_", " ") if labels and kind == "node" else ""
    return words[:1].upper() + words[1:] or KINDS[kind]


def relation_words(rel: str) -> str:
    """`WORKED_WITH` → “worked with”."""
    return RELATIONS.get(rel) or rel.replace("_", " ").casefold()


def relation_title(rel: str, *, outgoing: bool) -> str:
    """The heading over what a node is so related to."""
    words = relation_words(rel) if outgoing else INCOMING.get(rel) or f"← {relation_words(rel)}"
    return words[:1].upper() + words[1:]
