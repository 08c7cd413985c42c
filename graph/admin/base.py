"""What the admin of nodes, edges and names has in common."""

from typing import Any

from django.db.models import Q, QuerySet
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


def found_nodes(words: str) -> QuerySet[Node]:
    """Nodes that have these letters in their name, are known by that name, or have that id."""
    # With the workspaces named, indexes find ids and names.
    workspaces = list(Workspace.objects.values_list("pk", flat=True))
    known = Alias.objects.filter(workspace__in=workspaces, form=form(words) or words)
    return Node.objects.filter(
        Q(name__icontains=words)
        | Q(workspace__in=workspaces, key=words)
        | Q(pk__in=known.values("node"))
    )


def found_ids(words: str) -> list[int]:
    """Of these at most SEARCHED_NODES."""
    return list(found_nodes(words).order_by().values_list("pk", flat=True)[:SEARCHED_NODES])


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
