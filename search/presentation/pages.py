"""Around the hits: how the search went, and the links to its other pages."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from search.forms import SearchState
from search.presentation.choices import Choice
from search.presentation.hits import ARM_LABELS
from search.results import ArmReport, SearchResult

METHODS = {
    "bm25": "BM25",
    "trigram": "BM25 with words spelt alike",
    "exact": "every vector compared",
    "ann": "by the index, approximately",
    "paths": "over what passages name",
}
FUSIONS = {
    "score": "scores, weighed by how near the nearest passage is",
    "weighted": "scores, by fixed weights",
    "rrf": "reciprocal ranks (RRF)",
}
TIMINGS = {
    "plan": "looking up",
    "embed": "embedding",
    "database": "searching",
    "graph": "following names",
    "rerank": "reading again",
    "total": "in all",
}


def how_it_worked(result: SearchResult) -> list[str]:
    """For a person who asked why: what each arm did and weighed, and where the time went."""
    lines = [
        f"{ARM_LABELS.get(arm.name, arm.name)}: {METHODS[arm.method]}, {arm.candidates} listed,"
        f" weight {arm.weight:.2f}"
        for arm in result.arms
    ]
    if len(result.arms) > 1:
        lines.append(f"Fusion: {FUSIONS[result.fusion]}")
    if result.reranked:
        lines.append(f"Read again: {result.reranked} by {result.reranker}")
    spent = [
        f"{TIMINGS[name]} {milliseconds:.0f} ms"
        for name, milliseconds in result.timings.items()
        if name in TIMINGS and milliseconds >= 0.5
    ]
    return [*lines, f"Time: {', '.join(spent)}"] if spent else lines


def accuracy(arms: Iterable[ArmReport]) -> str:
    """“exact” or “approximate”, by how vectors were compared; empty where none were."""
    methods = {arm.method for arm in arms if arm.name == "vector"}
    return "approximate" if "ann" in methods else "exact" if methods else ""


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Pagination: `numbered` holds None where pages are left out."""

    number: int
    count: int
    previous: str
    following: str
    numbered: tuple[Choice | None, ...]


def page_links(state: SearchState, result: SearchResult) -> PageLinks | None:
    """Addresses of the pages around this one; None where everything is on one page."""
    count = ceil(result.total / result.k) if result.k else 0
    if count <= 1:
        return None
    near = {1, count, *range(state.page - 2, state.page + 3)}
    numbered: list[Choice | None] = []
    for number in range(1, count + 1):
        if number in near:
            numbered.append(
                Choice(str(number), state.url(page=number), selected=number == state.page)
            )
        elif numbered and numbered[-1] is not None:
            numbered.append(None)
    return PageLinks(
        number=state.page,
        count=count,
        previous=state.url(page=state.page - 1) if state.page > 1 else "",
        following=state.url(page=state.page + 1) if state.page < count else "",
        numbered=tuple(numbered),
    )
