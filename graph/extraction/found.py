"""What extractors read, and what they find. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

#: Where a name stands: it is the document's own (its title, its key, its address), it stands in a
#: heading or in the text, or it is where a link or a foreign key leads.
Kind = Literal["self", "heading", "text", "link"]
KINDS: tuple[Kind, ...] = ("self", "heading", "text", "link")


@dataclass(frozen=True, slots=True)
class Passage:
    """One chunk as extractors see it. Offsets of what they find are into `text`."""

    text: str
    heading_path: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """One document with its passages, in their order.

    `key` is its key in the collection (often a path), `language` an ISO code or empty.
    """

    key: str
    title: str
    passages: Sequence[Passage]
    url: str = ""
    media_type: str = ""
    language: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mention:
    """A passage names something.

    `form` identifies it (see `forms.form`): equal forms are one node. `name` is how it is written
    here, `type` what it is taken for (`name`, `person`, `code`, `date`, `ref`, …), `start` and
    `end` where it stands first in the passage's text (0, 0 where it stands only in title or
    headings).
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
    """Two things that a passage says are related. Both are mentioned there, too.

    `start` and `end` are the sentence that says it.
    """

    passage: int
    source: str
    rel: str
    target: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Extraction:
    """All that one document tells. At most one mention a passage and form."""

    mentions: Sequence[Mention] = ()
    relations: Sequence[Relation] = ()
