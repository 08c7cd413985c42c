"""Questions to begin with: headings of the documents that are there, so that each is answered."""

import re

from documents.models import Chunk, Document
from documents.querysets import DocumentQuerySet

MAX_EXAMPLES = 4
SAMPLED_DOCUMENTS = 40
SAMPLED_CHUNKS = 500
WORD_COUNTS = range(3, 10)
MAX_CHARACTERS = 70
QUESTION_WORDS = {"how", "what", "why", "where", "when", "which", "who", "can", "is", "are", "does"}
_NUMBER = re.compile(r"^[\d.)(\s–-]+")
#: File names, paths, code and URLs are no questions.
_CODE = re.compile(r"[/\\_<>{}=|`@#*\[\]]|\w\.\w|\w\(")


def example_questions(documents: DocumentQuerySet[Document]) -> list[str]:
    """Up to four example questions, each from another document, across as many
    collections as possible.
    """
    rows = documents.order_by("-id").values_list("pk", "collection", "title")[:SAMPLED_DOCUMENTS]
    collections = {pk: collection for pk, collection, _ in rows}
    chunks = Chunk.objects.filter(document__in=list(collections), heading_path__len__gt=0)
    headings = chunks.order_by("-document", "ordinal").values_list("document", "heading_path")
    best: dict[int, str] = {}
    titles = [(pk, [title]) for pk, _, title in rows]
    for document, path in [*headings[:SAMPLED_CHUNKS], *titles]:
        question = _NUMBER.sub("", " ".join(path[-1].split())) if path else ""
        if (
            len(question.split()) in WORD_COUNTS
            and len(question) <= MAX_CHARACTERS
            and not _CODE.search(question)
            and _sort_key(question) > _sort_key(best.get(document, ""))
        ):
            best[document] = question
    return _interleave_collections(best, collections)


def _sort_key(text: str) -> tuple[bool, int]:
    """Sort key: questions before headings, longer ones first."""
    words = text.casefold().split()
    return text.endswith("?") or bool(QUESTION_WORDS & {*words[:1]}), len(words)


def _interleave_collections(questions: dict[int, str], collections: dict[int, int]) -> list[str]:
    """One of each collection in turn, without duplicates."""
    by_collection: dict[int, list[str]] = {}
    for document, question in sorted(
        questions.items(), key=lambda item: (_sort_key(item[1]), item[0]), reverse=True
    ):
        by_collection.setdefault(collections[document], []).append(question)
    rounds = [
        turn[n]
        for n in range(max(map(len, by_collection.values()), default=0))
        for turn in by_collection.values()
        if n < len(turn)
    ]
    return list(dict.fromkeys(rounds))[:MAX_EXAMPLES]
