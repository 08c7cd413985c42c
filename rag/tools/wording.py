"""How tools show stored text to a model: as data that can forge no line of an answer. Pure."""

import json
from collections.abc import Iterable, Sequence

from common.unseen import written_out
from common.wording import quoted, shortened
from rag.passage import Passage

#: Of all texts in one answer, and of any single one.
MAX_CHARACTERS = 40_000
MAX_TEXT_CHARACTERS = 4_000
SHOWN_NAME = 200

NOTHING_SIMILAR = "No similar documents found."


def told_passages(passages: Sequence[Passage], scores: Sequence[float]) -> str:
    """Passages with the number under which each is cited, the best first."""
    if not passages:
        return NOTHING_SIMILAR
    most = min(MAX_TEXT_CHARACTERS, MAX_CHARACTERS // len(passages))
    entries = (
        f"\n--- Document {place} (score: {score:.3f}) ---\n"
        f"{told_place(passage)}\n{fenced(shortened(passage.text, most))}"
        for place, (passage, score) in enumerate(zip(passages, scores, strict=True), 1)
    )
    return "\n".join([f"Found {len(passages)} relevant documents:", *entries])


def told_place(passage: Passage) -> str:
    """`[1] "Title > Heading", page 2, collection "notes", id "a.md"`."""
    return f"[{passage.number}] " + ", ".join(_place(passage))


def _place(passage: Passage) -> Iterable[str]:
    yield name(passage.heading)
    if passage.page is not None:
        yield f"page {passage.page}"
    yield f"collection {name(passage.collection_slug)}"
    yield f"id {quoted(passage.document_key)}"


def name(text: str) -> str:
    """A name on one line, in quotes, not all of a long one."""
    return quoted(shortened(text, SHOWN_NAME))


def fenced(text: str) -> str:
    """Every line of `text` behind a bar, which no line of an answer's own begins with."""
    return "\n".join(f"| {written_out(line, _escaped)}" for line in text.splitlines())


def _escaped(letter: str) -> str:
    return letter if letter == "\t" else json.dumps(letter)[1:-1]
