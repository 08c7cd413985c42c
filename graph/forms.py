"""State of the explorer, all of it in its address. Begin with `GraphState`."""

from dataclasses import dataclass, fields, replace
from typing import Any, Self
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from common.text import parse_integer
from graph.reading.steps import Grain

# A web server refuses addresses of more than some 4,000 characters.
MAX_IDS = 25
MAX_HIDDEN = 50
#: How much is drawn at once: a person chooses one of these.
SIZES = (200, 500, 2000)
MAX_PAGE = 100
#: Fields that hold several values: their parameter, and how many values.
LISTS = {
    "ids": ("id", MAX_IDS),
    "opened": ("open", MAX_IDS),
    "hidden": ("hide", MAX_HIDDEN),
    "rels": ("rel", MAX_IDS),
    "labels": ("label", MAX_IDS),
}


@dataclass(frozen=True, slots=True)
class GraphState:
    """State of the explorer, all of it in its query string.

    `ids` are start nodes, `opened` expanded ones, `at` the selected one; `size` is the maximum
    of drawn nodes, `grain` whether documents or passages are drawn, `page` of the list counts
    from 1.
    """

    ids: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    rels: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    hops: int = 1
    size: int = SIZES[0]
    grain: Grain = "document"
    at: str = ""
    page: int = 1

    @classmethod
    def read(cls, params: QueryDict) -> Self:
        """Invalid values become defaults: old links keep working."""
        size = parse_integer(params.get("size", "")) or 0
        return cls(
            **{field: _distinct(params, name, most) for field, (name, most) in LISTS.items()},
            hops=2 if params.get("hops") == "2" else 1,
            at=(_distinct(params, "at", 1) or ("",))[-1],
            size=size if size in SIZES else SIZES[0],
            grain="chunk" if params.get("grain") == "chunk" else "document",
            page=min(parse_integer(params.get("page", "")) or 1, MAX_PAGE),
        )

    @property
    def looked_at(self) -> str:
        """Id of the node whose details are shown."""
        return self.at or (self.ids[0] if self.ids else "")

    @property
    def starts(self) -> tuple[str, ...]:
        """Ids whose neighbours are drawn."""
        return tuple(dict.fromkeys((*self.ids, *self.opened)))

    @property
    def is_filtered(self) -> bool:
        """Whether relations or labels are filtered."""
        return bool(self.rels or self.labels)

    def query_string(self) -> str:
        """The state as a query string, without defaults."""
        pairs: list[tuple[str, Any]] = [
            (name, value) for field, (name, _) in LISTS.items() for value in getattr(self, field)
        ]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in LISTS and value != field.default:
                pairs.append((field.name, value))
        return urlencode(pairs)

    def url(self, view: str = "graph", /, **changes: Any) -> str:
        """URL of this state with `changes`; page 1 unless the page is named."""
        state = replace(self, **{"page": 1, **changes})
        return f"{reverse(view)}?{state.query_string()}".removesuffix("?")

    def toggled(self, name: str, value: str) -> str:
        """URL with `value` added to, or removed from, `rels` or `labels`."""
        values: tuple[str, ...] = getattr(self, name)
        without = tuple(other for other in values if other != value)
        return self.url(**{name: without if value in values else (*values, value)})

    def with_one(self, name: str, id: str, **changes: Any) -> str:
        """URL with `id` added to `ids`, `opened` or `hidden`."""
        values: tuple[str, ...] = getattr(self, name)
        return self.url(**{name: values if id in values else (*values, id), **changes})


def _distinct(params: QueryDict, name: str, most: int) -> tuple[str, ...]:
    """Distinct non-empty values of a parameter, without NUL."""
    clean = (value.replace("\0", "").strip() for value in params.getlist(name))
    return tuple(dict.fromkeys(value for value in clean if value))[:most]
