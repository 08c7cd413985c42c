"""State of the search page, all of it in its address. Begin with `SearchState`."""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, Self
from urllib.parse import quote_plus

from django.core.exceptions import TooManyFieldsSent
from django.http import QueryDict
from django.utils.formats import number_format
from django.utils.translation import gettext
from pydantic import Field

from common.errors import InvalidInput
from common.options import INTERNAL, flat_options
from common.text import parse_integer
from common.web import cached_reverse
from search.filters import And, FilterError, Node, read_filter, to_text
from search.query import MAX_QUERY_CHARACTERS
from search.query_options import ScopeOptions, SearchQuery

#: A page has dozens of URLs with the same question.
_quoted = lru_cache(maxsize=1000)(quote_plus)

MAX_PAGE = 100
#: Parameters of parts of the page.
_PARTS = {"as", "facet", "prefix"}
MAX_UNKNOWN = 5
#: Longer addresses are cut off by browsers and proxies.
MAX_ADDRESS = 6000


class SearchState(ScopeOptions, SearchQuery):
    """State of the search page, all of it in its query string.

    `page` counts from 1. `unknown` are unrecognised parameters, which the page reports.
    """

    q: str = Field(default="", max_length=MAX_QUERY_CHARACTERS)
    group: bool = True
    filter: str = ""
    explain: bool = False
    page: int = 1
    unknown: tuple[str, ...] = Field(default=(), json_schema_extra=INTERNAL)

    @classmethod
    def read(cls, params: QueryDict) -> Self:
        """Raises InvalidInput for an unknown choice; an invalid page number is page 1."""
        # PostgreSQL's text holds no NUL.
        clean = {
            name: [text for v in params.getlist(name) if (text := v.replace("\x00", "").strip())]
            for name in params
        }
        options = flat_options(cls)
        given: dict[str, Any] = {
            name: tuple(dict.fromkeys(values)) if options[name].kind is list else values[-1]
            for name, values in clean.items()
            if name in options and values
        }
        given["page"] = str(min(parse_integer(given.get("page", "")) or 1, MAX_PAGE))
        unknown = sorted(clean.keys() - options.keys() - _PARTS)[:MAX_UNKNOWN]
        return cls.from_text({**given, "unknown": tuple(unknown)})

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

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Names and values of the query string, without defaults."""
        for name, field, default in _parameters(type(self)):
            value = getattr(self, field)
            if value != default:
                for each in value if isinstance(value, tuple) else (value,):
                    yield name, str(int(each) if isinstance(each, bool) else each)

    def query_string(self) -> str:
        """The state as a query string, without defaults."""
        return "&".join(f"{name}={_quoted(value)}" for name, value in self.pairs())

    def hidden_fields(self) -> list[tuple[str, str]]:
        """What a form keeps of the state that asks another question: not the page."""
        return [(name, value) for name, value in self.pairs() if name not in ("q", "page")]

    @property
    def saved_parameters(self) -> str:
        """The query string to save: first page, without explanations."""
        return self.model_copy(update={"page": 1, "explain": False}).query_string()

    def url(self, **changes: Any) -> str:
        """URL of this state with `changes`; page 1 unless the page is named."""
        state = self.model_copy(update={"page": 1, **changes})
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


@cache
def _parameters(model: type[SearchState]) -> Sequence[tuple[str, str, Any]]:
    """Name in the address, name of the field, and default: the question first, the page last."""
    fields = {info.alias or name: (name, info.default) for name, info in model.model_fields.items()}
    names = ["q", "mode", "sort", *(name for name in flat_options(model) if name not in _PLACED)]
    return [(name, *fields[name]) for name in dict.fromkeys([*names, *_PLACED])]


#: Parameters whose place in the address is not that of their declaration.
_PLACED = ("collection", "type", "filter", "group", "explain", "page")
