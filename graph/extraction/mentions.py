"""Types of extraction: source documents, mentions, relations, text spans, and the
mention counter. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

#: Position of a mention: the document's own name (title, key, URL), a heading, the text, or the
#: target of a link or foreign key.
Kind = Literal["self", "heading", "text", "link"]
KINDS: tuple[Kind, ...] = ("self", "heading", "text", "link")


@dataclass(frozen=True, slots=True)
class SourcePassage:
    """A chunk as input of extraction. Offsets of mentions refer to `text`."""

    text: str
    heading_path: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A document with its passages in order.

    `key` is its key in the collection (often a path), `language` an ISO code or empty.
    """

    key: str
    title: str
    passages: Sequence[SourcePassage]
    url: str = ""
    media_type: str = ""
    language: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention of something in a passage.

    `form` identifies it (see `normalize_name`): equal forms are one node. `name` is its
    spelling, `type` its assumed type (`name`, `person`, `code`, `date`, `ref`, …), `start` and
    `end` its first position in the passage's text (0, 0 if only in title or headings).
    """

    passage: int
    form: str
    name: str
    type: str
    kind: Kind = "text"
    count: int = 1
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation that a passage states between two of its mentions.

    `start` and `end` delimit the sentence that states it.
    """

    passage: int
    source: str
    rel: str
    target: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Extraction:
    """All that is extracted from one document. At most one mention per passage and form."""

    mentions: Sequence[Mention] = ()
    relations: Sequence[Relation] = ()


class TextSpan(NamedTuple):
    """A name in a text at `start` to `end`; `form` identifies it."""

    form: str
    name: str
    start: int
    end: int


#: Rank of the kinds, higher is more significant.
KIND_STRENGTH: dict[Kind, int] = {"self": 3, "heading": 2, "link": 1, "text": 0}


class MentionCounter:
    """Collects mentions, counting repetitions within a passage and keeping the first position."""

    def __init__(self, *, most: int) -> None:
        """At most `most` forms are kept per passage: longer lists are not about their entries."""
        self._most = most
        self._found: dict[tuple[int, str], Mention] = {}
        self._forms: dict[int, int] = {}

    def add(self, mention: Mention) -> None:
        """Adds a mention, unless its passage is full."""
        key = mention.passage, mention.form
        before = self._found.get(key)
        if before is not None:
            self._found[key] = merge_mentions(before, mention)
        elif self._forms.get(mention.passage, 0) < self._most:
            self._forms[mention.passage] = self._forms.get(mention.passage, 0) + 1
            self._found[key] = mention

    def mentions(self) -> Iterator[Mention]:
        """Mentions in the order they were found."""
        yield from self._found.values()


def merge_mentions(first: Mention, second: Mention) -> Mention:
    """Both as one mention; the position is the first in the text.

    What is also written as a name is one, unless code defines it: Python beside `python`.
    """
    is_respelled = first.kind == "text" and first.name != second.name
    if is_respelled and (first.type, second.type) == ("code", "name"):
        first = replace(first, type=second.type, name=second.name)
    place = first if first.end or not second.end else second
    kind = max(first.kind, second.kind, key=KIND_STRENGTH.__getitem__)
    count = first.count + second.count
    return replace(first, kind=kind, count=count, start=place.start, end=place.end)
