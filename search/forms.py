"""What the address of the search page holds: all of its state."""

from dataclasses import dataclass, replace
from typing import Any, Self
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from common.errors import InvalidInput
from search.filters import And, FilterError, read_filter, to_text
from search.results import MODES, Mode

MAX_PAGE = 100


@dataclass(frozen=True, slots=True)
class SearchState:
    """A question and how it is asked. `page` counts from 1."""

    q: str = ""
    mode: Mode = "hybrid"
    collections: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    filter: str = ""
    page: int = 1
    explain: bool = False
    group: bool = True

    @classmethod
    def read(cls, params: QueryDict) -> Self:
        """Raises InvalidInput for a mode that there is not; a strange page is the first."""
        # PostgreSQL's text holds no NUL.
        clean = {name: [v.replace("\x00", "") for v in params.getlist(name)] for name in params}
        mode = (clean.get("mode") or ["hybrid"])[-1]
        known = next((name for name in MODES if name == mode), None)
        if known is None:
            raise InvalidInput(
                f"There is no mode “{mode}”. There are: {', '.join(MODES)}.", field="mode"
            )
        return cls(
            q=(clean.get("q") or [""])[-1].strip(),
            mode=known,
            collections=_given(clean.get("collection")),
            types=_given(clean.get("type")),
            filter=(clean.get("filter") or [""])[-1].strip(),
            page=_page((clean.get("page") or [""])[-1]),
            explain=(clean.get("explain") or [""])[-1] == "1",
            group=(clean.get("group") or [""])[-1] != "0",
        )

    def query_string(self) -> str:
        """The state as parameters; what is the default is left out."""
        pairs: list[tuple[str, Any]] = [("q", self.q)] if self.q else []
        pairs += [("mode", self.mode)] if self.mode != "hybrid" else []
        pairs += [("collection", slug) for slug in self.collections]
        pairs += [("type", media_type) for media_type in self.types]
        pairs += [("filter", self.filter)] if self.filter else []
        pairs += [("group", 0)] if not self.group else []
        pairs += [("explain", 1)] if self.explain else []
        pairs += [("page", self.page)] if self.page > 1 else []
        return urlencode(pairs)

    def url(self, **changes: Any) -> str:
        """The address of this state with `changes`; unless the page is named, the first page."""
        state = replace(self, **{"page": 1, **changes})
        return f"{reverse('search')}?{state.query_string()}".removesuffix("?")

    def toggled(self, name: str, value: str) -> str:
        """The address with `value` added to, or taken from, `collections` or `types`."""
        values: tuple[str, ...] = getattr(self, name)
        without = tuple(other for other in values if other != value)
        return self.url(**{name: without if value in values else (*values, value)})

    def has_condition(self, condition: str) -> bool:
        """Whether the filter says just this beside other things."""
        return condition in self.conditions

    def with_condition(self, condition: str) -> str:
        """The filter with this condition besides."""
        return "; ".join([*self.conditions, condition])

    def without_condition(self, condition: str) -> str:
        """The filter without this condition."""
        return "; ".join(other for other in self.conditions if other != condition)

    @property
    def conditions(self) -> list[str]:
        """The filter's conditions as texts; a filter that cannot be read is a single one."""
        if not self.filter:
            return []
        try:
            tree = read_filter(self.filter)
        except FilterError:
            return [self.filter]
        return [to_text(part) for part in (tree.parts if isinstance(tree, And) else (tree,))]

    @property
    def is_filtered(self) -> bool:
        """Whether anything narrows the search."""
        return bool(self.collections or self.types or self.filter)


def _given(values: list[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values or () if value))


def _page(value: str) -> int:
    whole = value.isascii() and value.isdigit() and len(value) < 9
    return min(max(int(value), 1), MAX_PAGE) if whole else 1
