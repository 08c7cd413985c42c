"""What the admin of nodes, edges and names has in common."""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db.models import F, Lookup, Q, QuerySet, Value
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import TextFilter

from accounts.models import Workspace
from common.admin import COUNTED_ROWS, EXCERPT_CHARACTERS, excerpt
from common.errors import RagsiteError
from graph.extraction.forms import form
from graph.models import Alias, Node
from graph.scopes import GraphScope

#: Nodes whose edges and names a search looks through.
SEARCHED_NODES = 1_000


class HasLetters(Lookup):
    """The letters of the right side in the left one, whatever their case: by the trigram index,
    which `icontains` passes by because it asks for capitals."""

    lookup_name = "has_letters"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        column, parameters = self.process_lhs(compiler, connection)
        letters, more = self.process_rhs(compiler, connection)
        return f"{column} ILIKE {letters}", (*parameters, *more)


def has_letters(column: str, words: str) -> HasLetters:
    """A condition: the column has these letters."""
    plain = re.sub(r"([\\%_])", r"\\\1", words)
    return HasLetters(F(column), Value(f"%{plain}%"))


def once_a_row(shown: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A column of a row's page is asked for several times while the page is made."""

    @wraps(shown)
    def remembered(model_admin: Any, row: Any) -> Any:
        known = row.__dict__.setdefault("_shown", {})
        if shown.__name__ not in known:
            known[shown.__name__] = shown(model_admin, row)
        return known[shown.__name__]

    return remembered


def scope_of_row(row: Any) -> GraphScope:
    """The workspace's graph with all that is in it: who curates sees everything."""
    return GraphScope(row.workspace_id)


def named(node: Node) -> SafeString:
    """A node's name or id on one line."""
    return excerpt((node.name or node.key)[:EXCERPT_CHARACTERS])


def bounded_count(rows: QuerySet[Any]) -> str:
    """How many, without counting a hundred thousand."""
    number = rows.order_by().values("workspace")[: COUNTED_ROWS + 1].count()
    return f"{number:,}" if number <= COUNTED_ROWS else f"more than {COUNTED_ROWS:,}"


def is_found_by(words: str) -> Q:
    """Nodes that have these letters in their name, are known by that name, or have that id.

    Each part has an index, and together they are one scan of three: no subquery.
    """
    workspaces = list(Workspace.objects.values_list("pk", flat=True))
    known = Alias.objects.filter(workspace__in=workspaces, form=form(words) or words)
    return (
        Q(has_letters("name", words))
        | Q(workspace__in=workspaces, key=words)
        | Q(pk__in=list(known.order_by().values_list("node", flat=True)))
    )


def found_ids(words: str) -> list[int]:
    """Of these at most SEARCHED_NODES."""
    rows = Node.objects.filter(is_found_by(words)).order_by()
    return list(rows.values_list("pk", flat=True)[:SEARCHED_NODES])


def said_of(error: RagsiteError, fields: Any) -> tuple[str | None, str]:
    """The form's field that an error is about, and what it says."""
    field = getattr(error, "field", "").partition(".")[0]
    return (field if field in fields else None), str(error)


class RelationFilter(TextFilter):
    """By the name of a relation, all of it."""

    title = "relation"
    parameter_name = "rel"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(rel=self.value()) if self.value() else queryset


class LabelFilter(TextFilter):
    """By one label, all of it."""

    title = "label"
    parameter_name = "label"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(labels__contains=[self.value()]) if self.value() else queryset
