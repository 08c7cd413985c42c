"""What changed between two versions of a document, or two documents: paragraphs added, removed and
changed, those whose numbers or dates changed first, each with its passages. Begin with
`find_changes`."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from django.utils.translation import gettext

from common.errors import NotFound
from documents.models import Chunk, Document
from documents.services.documents import DocumentText, document_text

ChangeKind = Literal["changed", "added", "removed"]

#: Least share of common words of two paragraphs of which one became the other.
MIN_LIKENESS = 0.4
#: Removed and added paragraphs that are compared each with each; of more those of one place.
MAX_PAIRED = 200
#: Words of a paragraph whose numbers are compared, which takes quadratic time.
MAX_COMPARED_WORDS = 1_000

_PARAGRAPH = re.compile(r"[^\n]*\S[^\n]*(?:\n(?![ \t]*\n)[^\n]*)*")
_TOKEN = re.compile(r"\d+(?:[.,:/–-]\d+)*(?:\s?%)?|[^\W\d_]+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph, the passage that it begins in, and its offset in the document's text."""

    text: str
    start: int
    chunk: Chunk | None


@dataclass(frozen=True, slots=True)
class Change:
    """A paragraph before and after; one of them is None where it was added or removed. `values`
    are the numbers and dates that changed, (before, after)."""

    kind: ChangeKind
    before: Paragraph | None
    after: Paragraph | None
    values: tuple[tuple[str, str], ...] = ()


def other_document(document: Document, pk: int | None, *, user: Any) -> Document:
    """What to compare `document` with: the document `pk` of the workspace that the user may read,
    by default the version before it. Raises NotFound."""
    rows = Document.objects.filter(workspace=document.workspace_id).exclude(pk=document.pk)
    if user is not None:
        rows = rows.visible_to(user)
    if pk is not None:
        rows = rows.filter(pk=pk)
    else:
        older = {"collection": document.collection_id, "key": document.key}
        rows = rows.filter(**older, version__lt=document.version).order_by("-version")
    found = next((row for row in rows.select_related("collection") if row.has_text), None)
    if found is None:
        raise NotFound(gettext("There is no other version to compare with."))
    return found


def in_order(document: Document, other: Document) -> tuple[Document, Document]:
    """Both, the older version first; of different documents `other` is first."""
    is_version = (document.collection_id, document.key) == (other.collection_id, other.key)
    is_newer = is_version and document.version < other.version
    return (document, other) if is_newer else (other, document)


def find_changes(before: Document, after: Document) -> list[Change]:
    """The changes in the order of the text, those of numbers and dates first. Paragraphs that only
    moved, and white space, are no changes."""
    old, new = _paragraphs(document_text(before)), _paragraphs(document_text(after))
    matcher = SequenceMatcher(None, _keys(old), _keys(new), autojunk=False)
    places = [
        (old[first:last], new[new_first:new_last])
        for step, first, last, new_first, new_last in matcher.get_opcodes()
        if step != "equal"
    ]
    gone = [each for removed, _ in places for each in removed]
    come = [each for _, added in places for each in added]
    if len(gone) * len(come) <= MAX_PAIRED**2:
        places = [(gone, come)]  # a changed paragraph may have moved, too
    changes = [change for removed, added in places for change in _pair(removed, added)]
    return sorted(changes, key=lambda change: not change.values)


def _paragraphs(document: DocumentText) -> list[Paragraph]:
    chunks = iter(document.chunks)
    chunk = next(chunks, None)
    found = []
    for match in _PARAGRAPH.finditer(document.text):
        while chunk is not None and chunk.end <= match.start():
            chunk = next(chunks, None)
        found.append(Paragraph(match[0].strip(), match.start(), chunk))
    return found


def _key(paragraph: Paragraph) -> str:
    return " ".join(paragraph.text.split())


def _keys(paragraphs: Sequence[Paragraph]) -> list[str]:
    return [_key(each) for each in paragraphs]


def _pair(old: Sequence[Paragraph], new: Sequence[Paragraph]) -> list[Change]:
    """Removed and added paragraphs as changes, in the order of the text: those that are most alike
    became each other. Paragraphs that only moved are left out."""
    words_old = [Counter(_TOKEN.findall(each.text.casefold())) for each in old[:MAX_PAIRED]]
    words_new = [Counter(_TOKEN.findall(each.text.casefold())) for each in new[:MAX_PAIRED]]
    likeness = sorted(
        (
            (2 * (one & other).total() / max(1, one.total() + other.total()), at, to)
            for at, one in enumerate(words_old)
            for to, other in enumerate(words_new)
        ),
        key=lambda each: (-each[0], abs(each[1] - each[2])),
    )
    becomes: dict[int, int] = {}
    taken: set[int] = set()
    for share, at, to in likeness:
        if share >= MIN_LIKENESS and at not in becomes and to not in taken:
            becomes[at] = to
            taken.add(to)
    removed = [
        Change("changed", each, new[becomes[at]], changed_values(each.text, new[becomes[at]].text))
        if at in becomes
        else Change("removed", each, None)
        for at, each in enumerate(old)
        if at not in becomes or _key(each) != _key(new[becomes[at]])
    ]
    return removed + [Change("added", None, each) for to, each in enumerate(new) if to not in taken]


def changed_values(before: str, after: str) -> tuple[tuple[str, str], ...]:
    """Numbers, and words beside a number such as months and units, that differ: (before, after),
    with the number."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    if len(old) * len(new) > MAX_COMPARED_WORDS**2:
        return ()
    found = []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for step, first, last, new_first, new_last in matcher.get_opcodes():
        if step != "replace" or max(last - first, new_last - new_first) > 4:
            continue
        # With the number before a month or a unit.
        lead = int(not _has_number(old[first:last] + new[new_first:new_last]))
        if lead and not (first and _has_number(old[first - 1 : first])):
            continue
        found.append(
            (" ".join(old[first - lead : last]), " ".join(new[new_first - lead : new_last]))
        )
    return tuple(found)


def _has_number(tokens: Sequence[str]) -> bool:
    return any(token[0].isdigit() for token in tokens)


def places_of(changes: Sequence[Change]) -> dict[int, str]:
    """Where the passages of these changes are, by id: `page 3`; empty where that is not known."""
    sides = [side for change in changes for side in (change.before, change.after)]
    ids = [side.chunk.pk for side in sides if side and side.chunk]
    rows = Chunk.objects.filter(pk__in=ids).defer("embedding", "search_vector", "context")
    return {chunk.pk: chunk.location for chunk in rows}
