"""What the admins of nodes, edges and aliases share: forms, filters, columns, and their base
`GraphAdmin`.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from django import forms
from django.db.models import F, Lookup, Q, QuerySet, Value
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy
from unfold.contrib.filters.admin import TextFilter
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.models import Workspace
from common.admin import (
    COUNTED_ROWS,
    EXCERPT_CHARACTERS,
    LargeTableAdmin,
    LoggedById,
    ServiceDeletion,
    ServiceForm,
    WrittenByForm,
    choice_column,
    excerpt,
)
from common.errors import InvalidInput
from common.options.forms import WrittenField
from graph import inputs, services
from graph.extraction.normalized_names import normalize_name
from graph.models import Alias, Edge, Node
from graph.node_ids import is_content_id
from graph.querysets import Origin
from graph.scopes import GraphScope
from graph.services.edits import add_alias

ORIGIN_COLOURS = {Origin.GIVEN: "info", Origin.EXTRACTED: "default"}
#: Nodes whose edges and names a search looks through.
MAX_SEARCHED_NODES = 1_000


class ContainsIgnoringCase(Lookup):
    """Case-insensitive containment by ILIKE, which uses the trigram index; `icontains`
    compares uppercase and does not.
    """

    lookup_name = "has_letters"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        column, parameters = self.process_lhs(compiler, connection)
        letters, more = self.process_rhs(compiler, connection)
        return f"{column} ILIKE {letters}", (*parameters, *more)


def contains_ignoring_case(column: str, words: str) -> ContainsIgnoringCase:
    """Condition: the column contains these characters, in any case."""
    plain = re.sub(r"([\\%_])", r"\\\1", words)
    return ContainsIgnoringCase(F(column), Value(f"%{plain}%"))


def cached_per_row(column: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Caches a computed admin column per row; the admin asks several times per page."""

    @wraps(column)
    def remembered(model_admin: Any, row: Any) -> Any:
        known = row.__dict__.setdefault("_shown", {})
        if column.__name__ not in known:
            known[column.__name__] = column(model_admin, row)
        return known[column.__name__]

    return remembered


def row_scope(row: Any) -> GraphScope:
    """Scope of the row's whole workspace: curators see everything."""
    return GraphScope(row.workspace_id)


def node_label(node: Node) -> SafeString:
    """A node's name or id on one line."""
    return excerpt((node.name or node.key)[:EXCERPT_CHARACTERS])


def bounded_count(rows: QuerySet[Any]) -> str:
    """The count, bounded: “more than N” for large ones."""
    number = rows.order_by().values("workspace")[: COUNTED_ROWS + 1].count()
    return (
        f"{number:,}"
        if number <= COUNTED_ROWS
        else gettext("more than {number}").format(
            number=number_format(COUNTED_ROWS, force_grouping=True)
        )
    )


def matches_node(words: str) -> Q:
    """Condition on nodes: name contains the words, or an alias or id equals them.

    Each part has an index, and together they are one scan of three: no subquery.
    """
    workspaces = list(Workspace.objects.values_list("pk", flat=True))
    known = Alias.objects.filter(workspace__in=workspaces, form=normalize_name(words) or words)
    return (
        Q(contains_ignoring_case("name", words))
        | Q(workspace__in=workspaces, key=words)
        | Q(pk__in=list(known.order_by().values_list("node", flat=True)))
    )


def matching_node_ids(words: str) -> list[int]:
    """Ids of at most MAX_SEARCHED_NODES such nodes."""
    rows = Node.objects.filter(matches_node(words)).order_by()
    return list(rows.values_list("pk", flat=True)[:MAX_SEARCHED_NODES])


class RelationFilter(TextFilter):
    """Filter by the exact name of a relation."""

    title = gettext_lazy("relation")
    parameter_name = "rel"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(rel=self.value()) if self.value() else queryset


class LabelFilter(TextFilter):
    """Filter by one exact label."""

    title = gettext_lazy("label")
    parameter_name = "label"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(labels__contains=[self.value()]) if self.value() else queryset


class PropertiesField(forms.JSONField):
    """A JSON object, displayed with one property per line."""

    def __init__(self, **kwargs: Any) -> None:
        widget = UnfoldAdminTextareaWidget(attrs={"rows": 6, "spellcheck": "false"})
        help_text = gettext_lazy('A JSON object, such as {"born": 1815}. Empty: none.')
        super().__init__(
            required=False,
            widget=widget,
            help_text=help_text,
            **kwargs,
        )

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return json.dumps(value, ensure_ascii=False, indent=2) if value else ""
        return value

    def clean(self, value: Any) -> Any:
        return super().clean(value) or {}


class LabelsField(WrittenField):
    """List of labels, one per line of a textarea."""

    widget = UnfoldAdminTextareaWidget(attrs={"rows": 2})
    kind = list

    def parse(self, text: str) -> list[str]:
        lines = (line.strip() for line in text.splitlines())
        return list(dict.fromkeys(line for line in lines if line))

    def write(self, value: list[str]) -> str:
        return "\n".join(value)


class NodeForm(ServiceForm):
    """Name, labels and properties of a node; its id cannot change."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        required=False,
        max_length=inputs.MAX_NAME_CHARACTERS,
        widget=UnfoldAdminTextInputWidget,
        help_text=gettext_lazy(
            "The displayed name. Texts with this name refer to the node. Empty: its id."
        ),
    )
    labels = LabelsField(
        label=gettext_lazy("Labels"), help_text=gettext_lazy("One per line, such as “Person”.")
    )
    props = PropertiesField(label=gettext_lazy("Properties"))

    class Meta:
        model = Node
        fields = ["name", "labels", "props"]

    def write(self, given: dict[str, Any]) -> Node:
        node: Node = self.instance
        return self.write_node(node.workspace_id, node.key, self.changed_data)

    def write_node(self, workspace_id: int, key: str, names: Iterable[str]) -> Node:
        """The node with what is given in the fields of these names."""
        given = {name: self.cleaned_data[name] for name in names}
        if given:
            services.upsert_node(
                scope=GraphScope(workspace_id), id=key, **given, replace_props=True
            )
        return Node.objects.get(workspace=workspace_id, key=key)


class NewNodeForm(NodeForm):
    """A node with an id that is not in use."""

    service_names = {"id": "key"}
    key = forms.CharField(
        label=gettext_lazy("Id"),
        strip=False,
        widget=UnfoldAdminTextInputWidget,
        help_text=gettext_lazy("Permanent. Examples: “ent:person:ada lovelace”, “src:crm:4711”."),
    )

    class Meta(NodeForm.Meta):
        fields = ["workspace", "key", "name", "labels", "props"]

    def write(self, given: dict[str, Any]) -> Node:
        workspace_id, key = given["workspace"].pk, given["key"]
        if is_content_id(key):
            raise InvalidInput(
                gettext("This prefix is reserved for documents and passages. Choose another id."),
                field="id",
            )
        there = services.get_node(scope=GraphScope(workspace_id), id=key)
        if there is not None:
            name = f"“{there.name}”" + ("" if there.id == key else f" ({there.id})")
            raise InvalidInput(
                gettext("{name} already has this id. Change that node instead.").format(name=name),
                field="id",
            )
        return self.write_node(workspace_id, key, NodeForm.Meta.fields)


class EdgeForm(ServiceForm):
    """Weight and properties of an edge."""

    weight = forms.FloatField(
        initial=1,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text=gettext_lazy("The weight in ranking: 1 is the default, 0 ignores the edge."),
    )
    props = PropertiesField(label=gettext_lazy("Properties"))

    class Meta:
        model = Edge
        fields = ["weight", "props"]

    def write(self, given: dict[str, Any]) -> Edge:
        edge: Edge = self.instance
        return self.write_edge(edge.source, edge.rel, edge.target) if self.changed_data else edge

    def write_edge(self, source: Node, rel: str, target: Node) -> Edge:
        """The edge with the given weight and properties."""
        services.upsert_edge(
            scope=row_scope(source),
            source=source.key,
            rel=rel,
            target=target.key,
            weight=self.cleaned_data["weight"],
            props=self.cleaned_data["props"],
            replace_props=True,
        )
        return Edge.objects.get(source=source, rel=rel, target=target)


class NewEdgeForm(EdgeForm):
    """An edge that does not exist yet, between two nodes of one workspace."""

    rel = forms.CharField(
        label=gettext_lazy("Relation"),
        widget=UnfoldAdminTextInputWidget,
        help_text=gettext_lazy("The relation from the first node to the second, such as WORKS_AT."),
    )

    class Meta(EdgeForm.Meta):
        fields = ["source", "rel", "target", "weight", "props"]

    def write(self, given: dict[str, Any]) -> Edge:
        source, rel, target = given["source"], given["rel"], given["target"]
        if source.workspace_id != target.workspace_id:
            raise InvalidInput(
                gettext("This node is in another workspace than “{source}”.").format(source=source),
                field="target",
            )
        if Edge.objects.filter(source=source, rel=rel, target=target).exists():
            raise InvalidInput(
                gettext("This edge already exists. Change it in the list of edges."), field="rel"
            )
        return self.write_edge(source, rel, target)


class NewAliasForm(ServiceForm):
    """An alias: a name by which texts and questions mean a node."""

    form = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=inputs.MAX_NAME_CHARACTERS,
        widget=UnfoldAdminTextInputWidget,
        help_text=gettext_lazy("In any spelling: case, accents, “the” and “’s” are ignored."),
    )

    class Meta:
        model = Alias
        fields = ["node", "form"]

    def write(self, given: dict[str, Any]) -> Alias:
        return add_alias(node=given["node"], name=given["form"])


class GraphAdmin(WrittenByForm, ServiceDeletion, LoggedById, LargeTableAdmin):
    """Rows that are written by the services, and shown with what belongs to them."""

    #: The form of a row, the fields of it that can be edited, and the form of a new row.
    form: type[Any]
    new_form: type[Any]
    edited_fields: Sequence[str] = ()
    #: Fields and columns that a row shows beside those.
    shown_fields: Sequence[str] = ()
    origin_label = choice_column("origin", ORIGIN_COLOURS)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form = self.form if obj else self.new_form
        return super().get_form(request, obj, change, **{"form": form, **kwargs})

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return self.new_form._meta.fields
        return [*self.edited_fields, *self.shown_fields]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.shown_fields if obj else []
