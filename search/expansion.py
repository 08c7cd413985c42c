"""What stands around a hit: its neighbours, or the whole section it is from."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from django.db.models import Q

from documents.models import Chunk
from documents.services import joined_text
from search.results import Expansion, Surroundings

#: Chunks on either side. A section that is longer is cut to as many.
REACH = {"siblings": 1, "section": 10}


def surroundings(chunks: Sequence[Chunk], expansion: Expansion) -> dict[int, Surroundings]:
    """By chunk id. `siblings` are the chunk before and the one behind; a `section` is what stands
    under the same headings without a break."""
    if expansion == "none" or not chunks:
        return {}
    by_place = {(chunk.document_id, chunk.ordinal): chunk for chunk in _near(chunks, expansion)}
    found = {}
    for chunk in chunks:
        before = list(_following(chunk, by_place, expansion, step=-1))[::-1]
        whole = [*before, chunk, *_following(chunk, by_place, expansion, step=1)]
        start, end = whole[0].start, max(each.end for each in whole)
        found[chunk.pk] = Surroundings(joined_text(whole, start=start), start, end)
    return found


def _near(chunks: Sequence[Chunk], expansion: Expansion) -> list[Chunk]:
    reach = REACH[expansion]
    places = Q()
    for chunk in chunks:
        near = (max(0, chunk.ordinal - reach), chunk.ordinal + reach)
        places |= Q(document_id=chunk.document_id, ordinal__range=near)
    return list(Chunk.objects.filter(places).defer("embedding", "search_vector", "metadata"))


def _following(
    chunk: Chunk, by_place: dict[tuple[int, int], Chunk], expansion: Expansion, *, step: int
) -> Iterator[Chunk]:
    """The chunks from `chunk` on in one direction, without it, as far as the expansion goes."""
    places = range(chunk.ordinal + step, chunk.ordinal + step * (REACH[expansion] + 1), step)
    present = takewhile(lambda place: (chunk.document_id, place) in by_place, places)
    siblings = (by_place[chunk.document_id, place] for place in present)
    if expansion == "siblings":
        return siblings
    return takewhile(lambda sibling: sibling.heading_path == chunk.heading_path, siblings)
