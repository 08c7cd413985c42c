"""What stands around a hit: its neighbours, its section, or the passage that it is a part of."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile

from django.db.models import Q

from documents.ingestion.patching import joined
from documents.models import Chunk
from search.passages import Passage
from search.results import Expansion, Surroundings

#: Chunks on either side. A section that is longer is cut to as many.
REACH = {"siblings": 1, "section": 10}

_HEAVY = ("embedding", "search_vector", "metadata")


def surroundings(
    chunks: Sequence[Chunk | Passage], expansion: Expansion
) -> dict[int, Surroundings]:
    """By chunk id. `siblings` are the chunk before and the one behind; a `section` is what stands
    under the same headings without a break; a `parent` is all that was cut from one passage, and
    where a chunk has none it has no surroundings."""
    if expansion in ("none", "graph") or not chunks:
        return {}
    if expansion == "parent":
        return _parents(chunks)
    by_place = {(chunk.document_id, chunk.ordinal): chunk for chunk in _near(chunks, expansion)}
    found = {}
    for chunk in chunks:
        before = list(_following(chunk, by_place, expansion, step=-1))[::-1]
        found[chunk.pk] = _joined([*before, chunk, *_following(chunk, by_place, expansion, step=1)])
    return found


def _parents(chunks: Sequence[Chunk | Passage]) -> dict[int, Surroundings]:
    parts = [chunk for chunk in chunks if chunk.parent is not None]
    if not parts:
        return {}
    wanted = Q()
    for document_id, parent in {(chunk.document_id, chunk.parent) for chunk in parts}:
        wanted |= Q(document_id=document_id, parent=parent)
    families: dict[tuple[int, int | None], list[Chunk]] = defaultdict(list)
    for chunk in Chunk.objects.filter(wanted).order_by("document_id", "ordinal").defer(*_HEAVY):
        families[chunk.document_id, chunk.parent].append(chunk)
    whole = {family: _joined(members) for family, members in families.items()}
    return {
        chunk.pk: whole[chunk.document_id, chunk.parent]
        for chunk in parts
        if (chunk.document_id, chunk.parent) in whole
    }


def _joined(chunks: Sequence[Chunk | Passage]) -> Surroundings:
    start, end = chunks[0].start, max(chunk.end for chunk in chunks)
    return Surroundings(joined(chunks, start=start), start, end)


def _near(chunks: Sequence[Chunk | Passage], expansion: Expansion) -> list[Chunk]:
    reach = REACH[expansion]
    places = Q()
    for chunk in chunks:
        near = (max(0, chunk.ordinal - reach), chunk.ordinal + reach)
        places |= Q(document_id=chunk.document_id, ordinal__range=near)
    return list(Chunk.objects.filter(places).defer(*_HEAVY))


def _following(
    chunk: Chunk | Passage,
    by_place: dict[tuple[int, int], Chunk],
    expansion: Expansion,
    *,
    step: int,
) -> Iterator[Chunk]:
    """The chunks from `chunk` on in one direction, without it, as far as the expansion goes."""
    places = range(chunk.ordinal + step, chunk.ordinal + step * (REACH[expansion] + 1), step)
    present = takewhile(lambda place: (chunk.document_id, place) in by_place, places)
    siblings = (by_place[chunk.document_id, place] for place in present)
    if expansion == "siblings":
        return siblings
    return takewhile(lambda sibling: sibling.heading_path == chunk.heading_path, siblings)
