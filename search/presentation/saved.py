"""Saved searches in words."""

from dataclasses import dataclass

from common.errors import InvalidInput
from search.forms import SearchState
from search.models import SavedSearch
from search.presentation.choices import MODE_LABELS, SORT_LABELS


@dataclass(frozen=True, slots=True)
class SavedRow:
    """A saved search, its address, and what it searches for."""

    saved: SavedSearch
    url: str
    question: str
    details: tuple[str, ...]


def saved_row(saved: SavedSearch) -> SavedRow:
    """What a saved search is; one of another time that cannot be read any more has no details."""
    try:
        state = SearchState.parse(saved.parameters)
    except InvalidInput:
        return SavedRow(saved, f"/?{saved.parameters}", saved.parameters, ())
    details = (
        *([MODE_LABELS[state.mode]] if state.mode != "hybrid" else []),
        *([SORT_LABELS[state.sort]] if state.sort != "relevance" else []),
        *state.collections,
        *state.types,
        *state.conditions,
    )
    return SavedRow(saved, state.url(), state.q, details)
