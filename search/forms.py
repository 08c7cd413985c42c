"""What the address of the search page holds: all of its state."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self, TypeVar
from urllib.parse import quote_plus

from django.core.exceptions import TooManyFieldsSent
from django.http import QueryDict

from common.addresses import address
from common.errors import InvalidInput
from common.fusion_options import METHODS, Method
from search.asked import arm_weights
from search.filters import And, FilterError, Node, read_filter, to_text
from search.results import MODES, SORTS, Mode, Sort

T = TypeVar("T", bound=str)
N = TypeVar("N", int, float)

#: A page has dozens of addresses with the same question in them.
_quoted = lru_cache(maxsize=1000)(quote_plus)

MAX_PAGE = 100
#: Of the page and of what shows a part of it.
PARAMETERS = {
    *("q", "mode", "sort", "fusion", "rerank", "collection", "type", "filter", "page", "explain"),
    *("group", "as", "facet", "prefix", "rrf_k", "depth", "alpha", "beta"),
}
MOST_UNKNOWN = 5
SWITCH = {"": None, "1": True, "true": True, "on": True, "0": False, "false": False, "off": False}
#: Longer addresses are cut off by browsers and proxies.
MAX_ADDRESS = 6000


@dataclass(frozen=True, slots=True)
class SearchState:
    """A question and how it is asked. `page` counts from 1; `rerank` is None where a reranker is
    used if one is set up, `fusion` None where it is that of the collections or the site.
    `unknown` are parameters that mean nothing here, which the page says."""

    q: str = ""
    mode: Mode = "hybrid"
    sort: Sort = "relevance"
    fusion: Method | None = None
    rrf_k: int | None = None
    depth: int | None = None
    alpha: float | None = None
    beta: float | None = None
    rerank: bool | None = None
    collections: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    filter: str = ""
    page: int = 1
    explain: bool = False
    group: bool = True
    unknown: tuple[str, ...] = ()

    @classmethod
    def read(cls, params: QueryDict) -> Self:
        """Raises InvalidInput for a choice that there is not; a page that is no number is the
        first."""
        # PostgreSQL's text holds no NUL.
        clean = {name: [v.replace("\x00", "") for v in params.getlist(name)] for name in params}
        return cls(
            q=(clean.get("q") or [""])[-1].strip(),
            mode=_known("mode", clean, MODES),
            sort=_known("sort", clean, SORTS),
            fusion=_known("fusion", clean, METHODS) if any(clean.get("fusion", ())) else None,
            rrf_k=_number("rrf_k", clean, int),
            depth=_number("depth", clean, int),
            alpha=_number("alpha", clean, float),
            beta=_number("beta", clean, float),
            rerank=_switch("rerank", clean),
            collections=_given(clean.get("collection")),
            types=_given(clean.get("type")),
            filter=(clean.get("filter") or [""])[-1].strip(),
            page=_page((clean.get("page") or [""])[-1]),
            explain=_switch("explain", clean) or False,
            group=_switch("group", clean) is not False,
            unknown=tuple(sorted(clean.keys() - PARAMETERS)[:MOST_UNKNOWN]),
        )

    @classmethod
    def parse(cls, query_string: str) -> Self:
        """The state that an address behind its `?` means. Raises InvalidInput."""
        if len(query_string) > MAX_ADDRESS:
            raise InvalidInput(
                f"An address has at most {MAX_ADDRESS:,} characters.", field="parameters"
            )
        try:
            return cls.read(QueryDict(query_string))
        except TooManyFieldsSent as error:
            raise InvalidInput("There are too many parameters.", field="parameters") from error

    def query_string(self) -> str:
        """The state as parameters; what is the default is left out."""
        pairs: list[tuple[str, Any]] = [("q", self.q)] if self.q else []
        pairs += [("mode", self.mode)] if self.mode != "hybrid" else []
        pairs += [("sort", self.sort)] if self.sort != "relevance" else []
        pairs += [("fusion", self.fusion)] if self.fusion else []
        pairs += [*self.fusion_numbers.items()]
        pairs += [("rerank", int(self.rerank))] if self.rerank is not None else []
        pairs += [("collection", slug) for slug in self.collections]
        pairs += [("type", media_type) for media_type in self.types]
        pairs += [("filter", self.filter)] if self.filter else []
        pairs += [("group", 0)] if not self.group else []
        pairs += [("explain", 1)] if self.explain else []
        pairs += [("page", self.page)] if self.page > 1 else []
        return "&".join(f"{name}={_quoted(str(value))}" for name, value in pairs)

    @property
    def fusion_numbers(self) -> dict[str, str]:
        """Those parameters of fusion that are numbers, as far as they are given."""
        numbers = {"rrf_k": self.rrf_k, "depth": self.depth, "alpha": self.alpha, "beta": self.beta}
        return {name: str(value) for name, value in numbers.items() if value is not None}

    @property
    def fusion_options(self) -> dict[str, Any]:
        """What `search.services.search` is told of fusion."""
        weights = arm_weights(self.alpha, self.beta)
        return {
            "fusion": self.fusion,
            "rrf_k": self.rrf_k,
            "depth": self.depth,
            "weights": weights,
        }

    @property
    def kept_parameters(self) -> str:
        """What is worth keeping of it: a saved search begins on its first page, unexplained."""
        return replace(self, page=1, explain=False).query_string()

    def url(self, **changes: Any) -> str:
        """The address of this state with `changes`; unless the page is named, the first page."""
        state = replace(self, **{"page": 1, **changes})
        return f"{address('search')}?{state.query_string()}".removesuffix("?")

    def toggled(self, name: str, value: str) -> str:
        """The address with `value` added to, or taken from, `collections` or `types`."""
        values: tuple[str, ...] = getattr(self, name)
        without = tuple(other for other in values if other != value)
        return self.url(**{name: without if value in values else (*values, value)})

    @property
    def tree(self) -> Node | None:
        """What the filter means; None for one that cannot be read."""
        try:
            return read_filter(self.filter)
        except FilterError:
            return None

    @property
    def conditions(self) -> list[str]:
        """The filter's conditions as texts; a filter that cannot be read is a single one."""
        tree = self.tree
        if tree is None:
            return [self.filter]
        return [to_text(part) for part in (tree.parts if isinstance(tree, And) else (tree,))]

    def without_condition(self, condition: str) -> str:
        """The filter without this condition."""
        return "; ".join(other for other in self.conditions if other != condition)

    @property
    def is_filtered(self) -> bool:
        """Whether anything narrows the search."""
        return bool(self.collections or self.types or self.filter)


def _switch(name: str, given: Mapping[str, Sequence[str]]) -> bool | None:
    """On, off, or None where nothing is said."""
    asked = (given.get(name) or [""])[-1].casefold()
    if asked not in SWITCH:
        raise InvalidInput(f"{name} is 1 or 0, and not “{asked}”.", field=name)
    return SWITCH[asked]


def _number(name: str, given: Mapping[str, Sequence[str]], read: Callable[[str], N]) -> N | None:
    """None where nothing is said."""
    asked = (given.get(name) or [""])[-1].strip()
    try:
        return read(asked) if asked else None
    except ValueError as error:
        raise InvalidInput(f"{name} is a number, and not “{asked}”.", field=name) from error


def _given(values: list[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values or () if value))


def _page(value: str) -> int:
    whole = value.isascii() and value.isdigit() and len(value) < 9
    return min(max(int(value), 1), MAX_PAGE) if whole else 1


def _known(name: str, given: Mapping[str, Sequence[str]], known: Sequence[T]) -> T:
    asked = (given.get(name) or [""])[-1]
    if not asked:
        return known[0]
    for each in known:
        if each == asked:
            return each
    raise InvalidInput(f"There is no {name} “{asked}”. There are: {', '.join(known)}.", field=name)
