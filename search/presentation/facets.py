"""Facets: the values that hits have, each to be clicked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import not_

from search.filters import ALL, Comparison, chosen, read_filter, to_text
from search.filters.choosing import toggled
from search.filters.fields import parse_field
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
    """The values of one facet: `first` are shown at once, the most frequent and all that are
    chosen, the `others` are folded away. `number` tells it from the others on the page."""

    name: str
    number: int
    title: str
    choices: tuple[Choice, ...]
    first: tuple[Choice, ...]
    others: tuple[Choice, ...]

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
    choice = _own_choice if name in OWN else _condition_choice
    choices = tuple(map(choice(state, name), values))
    shown = [place < SHOWN_VALUES or each.selected for place, each in enumerate(choices)]
    return FacetGroup(
        name=name,
        number=number,
        title=heading(name),
        choices=choices,
        first=tuple(compress(choices, shown)),
        others=tuple(compress(choices, map(not_, shown))),
    )


def _own_choice(state: SearchState, name: str) -> Callable[[Facet], Choice]:
    chosen = getattr(state, OWN[name])
    return lambda facet: Choice(
        facet.label, state.toggled(OWN[name], facet.value), facet.value in chosen, facet.count
    )


def _condition_choice(state: SearchState, name: str) -> Callable[[Facet], Choice]:
    """Chosen, a value stands in the filter besides the others of its field."""
    tree = state.tree or ALL
    before, is_first = to_text(tree), not chosen(tree, parse_field(name, at="facet"))

    def changed(facet: Facet) -> str:
        if is_first:
            return f"{before}; {facet.filter}" if before else facet.filter
        match read_filter(facet.filter):
            case Comparison(field, Operator.EQ, str() | int() | float() as value):
                return to_text(toggled(tree, field, value))
        return before

    return lambda facet: Choice(
        facet.label, state.url(filter=changed(facet)), facet.selected, facet.count
    )
