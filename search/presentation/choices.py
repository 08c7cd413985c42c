"""Things to click: modes, orders, and what narrows the search."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.conf.locale import LANG_INFO

from search.filters import And, Comparison, Node, to_text
from search.filters.fields import Field
from search.filters.tree import Operator
from search.forms import SearchState

MODE_LABELS = {"hybrid": "Hybrid", "lexical": "Words", "vector": "Meaning", "graph": "Graph"}
MODE_HINTS = {
    "hybrid": "Passages that fit by words and by meaning",
    "lexical": "Passages that hold your words",
    "vector": "Passages that mean the same, in whatever words",
    "graph": "By words, by meaning, and over what passages name: for answers in several documents",
}
SORT_LABELS = {
    "relevance": "Best first",
    "newest": "Newest first",
    "oldest": "Oldest first",
    "title": "By title",
}
#: Facets and fields whose names are not their headings.
TITLES = {"media_type": "Type", "origin": "Source", "dated": "Date"}


@dataclass(frozen=True, slots=True)
class Choice:
    """Something to click: `url` chooses it, or takes it back where it is selected."""

    label: str
    url: str
    selected: bool = False
    count: int | None = None
    hint: str = ""


def modes(state: SearchState) -> tuple[Choice, ...]:
    """The mode switch."""
    return tuple(
        Choice(label=label, url=state.url(mode=mode), selected=mode == state.mode,
               hint=MODE_HINTS[mode])
        for mode, label in MODE_LABELS.items()
    )  # fmt: skip


def sorts(state: SearchState) -> tuple[Choice, ...]:
    """The orders that hits may stand in."""
    return tuple(
        Choice(label=label, url=state.url(sort=sort), selected=sort == state.sort)
        for sort, label in SORT_LABELS.items()
    )


def heading(name: str) -> str:
    """A field as a heading: `media_type` → “Type”, `due_date` → “Due date”."""
    return TITLES.get(name) or name[:1].upper() + name[1:].replace("_", " ")


def chips(state: SearchState, names: Mapping[str, str]) -> list[Choice]:
    """What narrows the search now; each one's address takes it away. `names`: slug → name."""
    return [
        *(Choice(label=names.get(slug, slug), url=state.toggled("collections", slug),
                 hint="Collection") for slug in state.collections),
        *(Choice(label=media_type, url=state.toggled("types", media_type), hint="Type")
          for media_type in state.types),
        *_conditions(state),
    ]  # fmt: skip


def _conditions(state: SearchState) -> Iterator[Choice]:
    tree = state.tree
    if tree is None:
        yield Choice(label=state.filter, url=state.url(filter=""), hint="Filter")
        return
    for part in tree.parts if isinstance(tree, And) else (tree,):
        hint, label = _in_words(part)
        url = state.url(filter=state.without_condition(to_text(part)))
        yield Choice(label=label, url=url, hint=hint)


def _in_words(part: Node) -> tuple[str, str]:
    """A choice from a list as its field and values; any other condition as it is written."""
    match part:
        case Comparison(operator=Operator.EQ, value=str() | int() | float() as value):
            return heading(str(part.field)), _value_label(part.field, value)
        case Comparison(operator=Operator.IN, value=tuple(values)):
            labels = [_value_label(part.field, value) for value in values]
            return heading(str(part.field)), ", ".join(labels)
        case _:
            return "Filter", to_text(part)


def _value_label(field: Field, value: str | float) -> str:
    if field.name == "language":
        return str(LANG_INFO.get(str(value), {}).get("name", value))
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
