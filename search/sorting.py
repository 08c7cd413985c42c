"""Other orders than by relevance: of what is relevant enough."""

from collections.abc import Callable
from typing import Any

from search.listing import Listed, Listing
from search.results import Sort
from search.told import Told

#: By meaning every passage is found somehow. Those that fit less than this share as well as the
#: best one would only stand in the way of what was looked for.
LEAST_RELEVANCE = 0.5

_KEYS: dict[str, Callable[[Told], Any]] = {
    "newest": lambda each: [-ord(digit) for digit in each.day],
    "oldest": lambda each: each.day,
    "title": lambda each: each.title.casefold(),
}


def in_order(listing: Listing, sort: Sort) -> tuple[Listed, ...]:
    """The hits to show, in that order. Ties stay in the order of relevance."""
    if sort == "relevance":
        return listing.hits
    relevance = listing.ranking.relevance()
    kept = [each for each in listing.hits if relevance(each[0]) >= LEAST_RELEVANCE]
    of = listing.told(hit.candidate.document_id for hit, _ in kept)
    present = [each for each in kept if each[0].candidate.document_id in of]
    return tuple(sorted(present, key=lambda each: _KEYS[sort](of[each[0].candidate.document_id])))
