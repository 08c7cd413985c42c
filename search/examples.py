"""Questions to begin with: headings of the documents that are there, so that each is answered."""

import re
from collections.abc import Iterable, Iterator

from documents.models import Chunk, Document
from documents.querysets import DocumentQuerySet

SHOWN = 4
LOOKED_AT = 40
CHUNKS = 500
WORDS = range(3, 10)
LONGEST = 70
ASKING = {"how", "what", "why", "where", "when", "which", "who", "can", "is", "are", "does"}
_NUMBER = re.compile(r"^[\d.)(\s–-]+")
#: File names, paths, code and addresses read like no question.
_CODE = re.compile(r"[/\\_<>{}=|`@#*\[\]]|\w\.\w|\w\(")


def examples_for(documents: DocumentQuerySet[Document]) -> list[str]:
    """Up to four questions, each from another document, from as many collections as can be."""
    rows = documents.order_by("-id").values_list("pk", "collection", "title")[:LOOKED_AT]
    collections = {pk: collection for pk, collection, _ in rows}
    chunks = Chunk.objects.filter(document__in=list(collections), heading_path__len__gt=0)
    headings = chunks.order_by("-document", "ordinal").values_list("document", "heading_path")
    best: dict[int, str] = {}
    titles = [(pk, [title]) for pk, _, title in rows]
    for document, path in [*headings[:CHUNKS], *titles]:
        for question in _questions(path[-1:]):
            if _rank(question) > _rank(best.get(document, "")):
                best[document] = question
    return _spread(best, collections)


def _questions(headings: Iterable[str]) -> Iterator[str]:
    for heading in headings:
        text = _NUMBER.sub("", " ".join(heading.split()))
        if len(text.split()) in WORDS and len(text) <= LONGEST and not _CODE.search(text):
            yield text


def _rank(text: str) -> tuple[bool, int]:
    """What reads like a question goes before what reads like a heading; what says more, first."""
    words = text.casefold().split()
    return text.endswith("?") or bool(ASKING & {*words[:1]}), len(words)


def _spread(questions: dict[int, str], collections: dict[int, int]) -> list[str]:
    """One of each collection in turn, each text once."""
    by_collection: dict[int, list[str]] = {}
    for document, question in sorted(
        questions.items(), key=lambda item: (_rank(item[1]), item[0]), reverse=True
    ):
        by_collection.setdefault(collections[document], []).append(question)
    rounds = [
        turn[n]
        for n in range(max(map(len, by_collection.values()), default=0))
        for turn in by_collection.values()
        if n < len(turn)
    ]
    return list(dict.fromkeys(rounds))[:SHOWN]
