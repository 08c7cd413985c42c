"""Facets: the values that hits have, each to be clicked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from search.filters import Comparison, read_filter, to_text
from search.filters.choosing import toggled
from search.filters.tree import Operator
from search.forms import SearchState
from search.presentation.choices import Choice, heading
from search.results import Facet

#: Facets that the page has parameters of its own for → the field of its state.
OWN = {"collection": "collections", "media_type": "types"}
#: As many values are shown at once; the others are folded away.
SHOWN_VALUES = 6
#: With more values than this, typing finds one sooner.
LONG_FACET = 8


@dataclass(frozen=True, slots=True)
class FacetGroup:
    """The values of one facet. `number` tells it from the others on the page."""

    name: str
    number: int
    title: str
    choices: tuple[Choice, ...]

    @property
    def first(self) -> tuple[Choice, ...]:
        """What is shown at once: the most frequent, and all that are chosen."""
        return tuple(
            choice
            for place, choice in enumerate(self.choices)
            if place < SHOWN_VALUES or choice.selected
        )

    @property
    def others(self) -> tuple[Choice, ...]:
        """What is folded away."""
        return tuple(choice for choice in self.choices if choice not in self.first)

    @property
    def is_long(self) -> bool:
        """Whether it takes a box to find a value."""
        return len(self.choices) > LONG_FACET


def facet_groups(state: SearchState, facets: Mapping[str, Sequence[Facet]]) -> list[FacetGroup]:
    """The facets that could narrow this search, or do."""
    groups = (
        facet_group(state, name, values, number=number)
        for number, (name, values) in enumerate(facets.items())
    )
    return [
        group
        for group in groups
        if len(group.choices) > 1 or any(choice.selected for choice in group.choices)
    ]


def facet_group(
    state: SearchState, name: str, values: Sequence[Facet], *, number: int = 0
) -> FacetGroup:
    """One facet."""
    return FacetGroup(
        name=name,
        number=number,
        title=heading(name),
        choices=tuple(_choice(state, name, facet) for facet in values),
    )


def _choice(state: SearchState, name: str, facet: Facet) -> Choice:
    if name in OWN:
        selected = facet.value in getattr(state, OWN[name])
        return Choice(facet.label, state.toggled(OWN[name], facet.value), selected, facet.count)
    return Choice(
        facet.label, state.url(filter=_changed(state, facet)), facet.selected, facet.count
    )


def _changed(state: SearchState, facet: Facet) -> str:
    """The filter with the value chosen besides the others of its field, or taken back."""
    condition, tree = read_filter(facet.filter), state.tree
    match condition:
        case Comparison(field, Operator.EQ, str() | int() | float() as value) if tree is not None:
            return to_text(toggled(tree, field, value))
        case _ if facet.selected:
            return state.without_condition(facet.filter)
        case _:
            return "; ".join([*state.conditions, facet.filter])
