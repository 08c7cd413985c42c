"""State of the search page, all of it in its address. Begin with `SearchState`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Self, TypeVar
from urllib.parse import quote_plus

from django.core.exceptions import TooManyFieldsSent
from django.http import QueryDict
from django.utils.formats import number_format
from django.utils.translation import gettext

from common.errors import InvalidInput
from common.fusion_options import METHODS, Method
from common.text import whole_number
from common.web import cached_reverse
from search.filters import And, FilterError, Node, read_filter, to_text
from search.query_options import SearchQuery
from search.results import MODES, SORTS, Mode, Sort

T = TypeVar("T", bound=str)
N = TypeVar("N", int, float)

#: A page has dozens of URLs with the same question.
_quoted = lru_cache(maxsize=1000)(quote_plus)

MAX_PAGE = 100
#: Parameters of the page and of its parts.
PARAMETERS = {
    *("q", "mode", "sort", "fusion", "rerank", "collection", "type", "filter", "page", "explain"),
    *("group", "as", "facet", "prefix", "rrf_k", "depth", "alpha", "beta"),
}
MAX_UNKNOWN = 5
SWITCH_VALUES = {
    "": None,
    "1": True,
    "true": True,
    "on": True,
    "0": False,
    "false": False,
    "off": False,
}
#: Longer addresses are cut off by browsers and proxies.
MAX_ADDRESS = 6000


@dataclass(frozen=True, slots=True)
class SearchState:
    """State of the search page, all of it in its query string.

    `page` counts from 1; `rerank` None uses a reranker if one is set up; `fusion` None uses the
    collections' or the site's. `unknown` are unrecognised parameters, which the page reports.
    """

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
        """Raises InvalidInput for an unknown choice; an invalid page number is page 1."""
        # PostgreSQL's text holds no NUL.
        clean = {name: [v.replace("\x00", "") for v in params.getlist(name)] for name in params}
        last = {name: values[-1] for name, values in clean.items() if values}
        return cls(
            q=last.get("q", "").strip(),
            mode=_choice("mode", last, MODES),
            sort=_choice("sort", last, SORTS),
            fusion=_choice("fusion", last, METHODS) if last.get("fusion") else None,
            rrf_k=_number("rrf_k", last, int),
            depth=_number("depth", last, int),
            alpha=_number("alpha", last, float),
            beta=_number("beta", last, float),
            rerank=_switch("rerank", last),
            collections=tuple(dict.fromkeys(filter(None, clean.get("collection", ())))),
            types=tuple(dict.fromkeys(filter(None, clean.get("type", ())))),
            filter=last.get("filter", "").strip(),
            page=min(whole_number(last.get("page", "")) or 1, MAX_PAGE),
            explain=_switch("explain", last) or False,
            group=_switch("group", last) is not False,
            unknown=tuple(sorted(clean.keys() - PARAMETERS)[:MAX_UNKNOWN]),
        )

    @classmethod
    def parse(cls, query_string: str) -> Self:
        """The state that a query string means. Raises InvalidInput."""
        if len(query_string) > MAX_ADDRESS:
            raise InvalidInput(
                gettext("An address has at most {limit} characters.").format(
                    limit=number_format(MAX_ADDRESS, force_grouping=True)
                ),
                field="parameters",
            )
        try:
            return cls.read(QueryDict(query_string))
        except TooManyFieldsSent as error:
            raise InvalidInput(
                gettext("There are too many parameters."), field="parameters"
            ) from error

    def query_string(self) -> str:
        """The state as a query string, without defaults."""
        one = {
            "q": self.q,
            "mode": self.mode if self.mode != "hybrid" else "",
            "sort": self.sort if self.sort != "relevance" else "",
            "fusion": self.fusion,
            **self.fusion_numbers,
            "rerank": "" if self.rerank is None else int(self.rerank),
        }
        pairs = [
            *one.items(),
            *(("collection", slug) for slug in self.collections),
            *(("type", media_type) for media_type in self.types),
            ("filter", self.filter),
            ("group", "" if self.group else 0),
            ("explain", 1 if self.explain else ""),
            ("page", self.page if self.page > 1 else ""),
        ]
        return "&".join(
            f"{name}={_quoted(str(value))}" for name, value in pairs if value not in ("", None)
        )

    @property
    def fusion_numbers(self) -> dict[str, str]:
        """Numeric fusion parameters that were given, as text."""
        numbers = {"rrf_k": self.rrf_k, "depth": self.depth, "alpha": self.alpha, "beta": self.beta}
        return {name: str(value) for name, value in numbers.items() if value is not None}

    @property
    def query(self) -> SearchQuery:
        """The question with the options of this state."""
        return SearchQuery.read(self.q, asdict(self))

    @property
    def saved_parameters(self) -> str:
        """The query string to save: first page, without explanations."""
        return replace(self, page=1, explain=False).query_string()

    def url(self, **changes: Any) -> str:
        """URL of this state with `changes`; page 1 unless the page is named."""
        state = replace(self, **{"page": 1, **changes})
        return f"{cached_reverse('search')}?{state.query_string()}".removesuffix("?")

    def toggled(self, name: str, value: str) -> str:
        """URL with `value` added to, or removed from, `collections` or `types`."""
        values: tuple[str, ...] = getattr(self, name)
        without = tuple(other for other in values if other != value)
        return self.url(**{name: without if value in values else (*values, value)})

    @property
    def tree(self) -> Node | None:
        """The parsed filter; None if it is invalid."""
        try:
            return read_filter(self.filter)
        except FilterError:
            return None

    @property
    def conditions(self) -> list[str]:
        """The filter's conditions as texts; an invalid filter is one of them."""
        tree = self.tree
        if tree is None:
            return [self.filter]
        return [to_text(part) for part in (tree.parts if isinstance(tree, And) else (tree,))]

    def without_condition(self, condition: str) -> str:
        """The filter without this condition."""
        return "; ".join(other for other in self.conditions if other != condition)

    @property
    def is_filtered(self) -> bool:
        """Whether the search is narrowed."""
        return bool(self.collections or self.types or self.filter)


def _switch(name: str, given: Mapping[str, str]) -> bool | None:
    """On, off, or None where not given."""
    value = given.get(name, "").casefold()
    if value not in SWITCH_VALUES:
        raise InvalidInput(
            gettext("{name} is 1 or 0, and not “{value}”.").format(name=name, value=value),
            field=name,
        )
    return SWITCH_VALUES[value]


def _number(name: str, given: Mapping[str, str], read: Callable[[str], N]) -> N | None:
    """The number, or None where the parameter is not given."""
    value = given.get(name, "").strip()
    try:
        return read(value) if value else None
    except ValueError as error:
        raise InvalidInput(
            gettext("{name} is a number, and not “{value}”.").format(name=name, value=value),
            field=name,
        ) from error


def _choice(name: str, given: Mapping[str, str], known: Sequence[T]) -> T:
    value = given.get(name) or known[0]
    for each in known:
        if each == value:
            return each
    raise InvalidInput(
        gettext("There is no {name} “{value}”. There are: {known}.").format(
            name=name, value=value, known=", ".join(known)
        ),
        field=name,
    )
