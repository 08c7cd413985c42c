"""Curation of the graph: nodes, edges, aliases, which are edited on the pages of the graph, and the
queue of documents that are read for it."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from itertools import groupby
from typing import Any

from django.contrib import admin, messages
from django.db.models import F, Lookup, Q, QuerySet, Value
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy, gettext_noop
from unfold.contrib.filters.admin import AutocompleteSelectFilter, TextFilter
from unfold.decorators import display

from accounts.current_workspace import request_workspace
from accounts.models import Workspace
from common.admin import (
    COUNTED_ROWS,
    EXCERPT_CHARACTERS,
    LoggedById,
    QueueAdmin,
    ReadOnlyAdmin,
    ServiceDeletion,
    bidi_isolated,
    choice_column,
    excerpt,
    link_column,
    link_to,
    link_to_list,
    requires,
)
from documents.models import Chunk
from graph import services
from graph.extraction.normalized_names import normalize_name
from graph.models import Alias, Edge, Evidence, Extraction, Mention, Node
from graph.node_ids import is_retired_id_form
from graph.querysets import Origin
from graph.scopes import GraphScope
from graph.services.edits import delete_edges, remove_aliases, repeat_extraction
from graph.services.extraction import retry_extractions

ORIGIN_COLOURS = {Origin.GIVEN: "info", Origin.EXTRACTED: "default"}
#: Nodes whose edges a search looks through.
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


def matches_node(words: str) -> Q:
    """Condition on nodes: name contains the words, or an alias or id equals them.

    Each part has an index, and together they are one scan of three: no subquery.
    """
    workspaces = list(Workspace.objects.values_list("pk", flat=True))
    known = Alias.objects.filter(workspace__in=workspaces, form=normalize_name(words) or words)
    plain = re.sub(r"([\\%_])", r"\\\1", words)
    return (
        Q(ContainsIgnoringCase(F("name"), Value(f"%{plain}%")))
        | Q(workspace__in=workspaces, key=words)
        | Q(pk__in=list(known.order_by().values_list("node", flat=True)))
    )


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


def node_label(node: Node) -> SafeString:
    """A node's name or id on one line."""
    return excerpt((node.name or node.key)[:EXCERPT_CHARACTERS])


def node_url(node: Node) -> str:
    """The page on which the node is edited; empty for one that stands for a document."""
    return "" if _is_content(node) else reverse("graph_node", query={"id": node.key})


def _is_content(node: Node) -> bool:
    return bool(node.document_id or node.chunk_id)


def _counted_link(model: type[Any], rows: QuerySet[Any], **filters: Any) -> SafeString:
    """A link to the list of these rows with their number, bounded at nodes with very many."""
    number = rows.order_by().values("workspace")[: COUNTED_ROWS + 1].count()
    shown = number_format(min(number, COUNTED_ROWS), force_grouping=True)
    if number > COUNTED_ROWS:
        shown = gettext("more than {number}").format(number=shown)
    return link_to_list(model, shown, **filters)


class GraphAdmin(ServiceDeletion, LoggedById, ReadOnlyAdmin):
    """Rows that are deleted by the services, and edited on the pages of the graph."""

    can_delete = True
    origin_label = choice_column("origin", ORIGIN_COLOURS)


#: In the order of `graph.services.Deletion`.
DELETED_KINDS = (
    gettext_noop("nodes"),
    gettext_noop("edges"),
    gettext_noop("mentions"),
    gettext_noop("names in texts"),
    gettext_noop("nodes without a description"),
)
RETURNS_NOTE = gettext_lazy(": returns when a document with this name is read again")
#: Nodes that are merged at once by hand, and the longest address that servers take.
MAX_MERGED, MAX_ADDRESS_CHARACTERS = 25, 4_000
MAX_MENTIONS = 10


@admin.register(Node)
class NodeAdmin(GraphAdmin):
    """Nodes with what belongs to them."""

    list_display = ["name_label", "id_label", "labels_text", "origin_label", "workspace"]
    list_display += ["updated_at"]
    list_filter = [("workspace", AutocompleteSelectFilter), LabelFilter, "origin", "is_stub"]
    list_heavy_fields = ("props",)
    search_fields = ["name"]
    search_help_text = gettext_lazy("Part of its name, or the full text of another name or its id.")
    sortable_by = ["name_label"]
    actions = ["merge_selected"]
    has_merge_permission = requires("graph.change_node")
    fields = ["name", "id_label", "workspace", "labels_text", "props", "origin", "described"]
    fields += ["names", "outgoing", "incoming", "mentioned", "created_at", "updated_at"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Node]:
        rows: QuerySet[Node] = super().get_queryset(request)
        return rows.annotate(beginning=Left("key", EXCERPT_CHARACTERS))

    def search_rows(self, rows: QuerySet[Node], term: str) -> QuerySet[Node]:
        return rows.filter(matches_node(term))

    def page_address(self, row: Node) -> str:
        return node_url(row)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Not for rows that stand for documents and passages."""
        may_delete = super().has_delete_permission(request, obj)
        return may_delete and not (obj is not None and _is_content(obj))

    def delete_rows(self, rows: Iterable[Node]) -> None:
        for scope, ids in _ids_by_scope(rows):
            services.delete_nodes(scope=scope, ids=ids)

    def deletion_counts(self, rows: list[Node]) -> dict[str, int]:
        gone: Counter[str] = Counter()
        for scope, ids in _ids_by_scope(rows):
            deleted = services.deletion_preview(scope=scope, ids=ids)
            gone.update(dict(zip(DELETED_KINDS, astuple(deleted), strict=True)))
        return {gettext(name): number for name, number in gone.items() if number}

    def deletion_name(self, row: Node) -> str:
        return f"{row}{RETURNS_NOTE if row.origin == Origin.EXTRACTED else ''}"

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """Nodes of documents and passages are protected."""
        rows = list(objs)
        own = [row for row in rows if not _is_content(row)]
        shown, counts, missing, _ = super().get_deleted_objects(own, request)
        told = gettext("{row}: deleted with its document or its edges")
        return shown, counts, missing, [told.format(row=row) for row in rows if _is_content(row)]

    @admin.action(description=gettext_lazy("Merge selected nodes…"), permissions=["merge"])
    def merge_selected(self, request: HttpRequest, queryset: QuerySet[Node]) -> HttpResponse | None:
        """Opens the page of the graph that merges them."""
        nodes = list(queryset.values_list("workspace", "key")[: MAX_MERGED + 1])
        address = reverse("graph_merge", query={"id": [key for _, key in nodes]})
        if not 2 <= len(nodes) <= MAX_MERGED or len(address) > MAX_ADDRESS_CHARACTERS:
            error = gettext("Select 2 to {limit} nodes to merge.").format(limit=MAX_MERGED)
        elif {workspace for workspace, _ in nodes} != {request_workspace(request).pk}:
            error = gettext(
                "Nodes are merged on the page of the graph. Select nodes of the workspace that you"
                " are in, or switch to theirs first."
            )
        else:
            return redirect(address)
        messages.error(request, error)
        return None

    @display(description=gettext_lazy("node"), ordering="id")
    def name_label(self, row: Node) -> SafeString:
        return node_label(row)

    @display(description=gettext_lazy("id"))
    def id_label(self, row: Any) -> SafeString:
        return excerpt(row.beginning)

    @display(description=gettext_lazy("labels"))
    def labels_text(self, row: Node) -> SafeString:
        return bidi_isolated(", ".join(row.labels))

    @display(description=gettext_lazy("stands for"))
    def described(self, row: Node) -> str:
        if row.document_id:
            return link_to(row.document)
        if row.chunk_id:
            return link_to(Chunk.objects.only("document_id", "ordinal").get(pk=row.chunk_id))
        return gettext("without a description") if row.is_stub else gettext("itself")

    @display(description=gettext_lazy("names in texts"))
    def names(self, row: Node) -> SafeString:
        return _counted_link(Alias, row.aliases.all(), node__id__exact=row.pk)

    @display(description=gettext_lazy("outgoing edges"))
    def outgoing(self, row: Node) -> SafeString:
        return _counted_link(Edge, row.outgoing.all(), source__id__exact=row.pk)

    @display(description=gettext_lazy("incoming edges"))
    def incoming(self, row: Node) -> SafeString:
        return _counted_link(Edge, row.incoming.all(), target__id__exact=row.pk)

    @display(description=gettext_lazy("mentioned in"))
    def mentioned(self, row: Node) -> SafeString | str:
        """The first passages."""
        shown = Mention.objects.filter(node=row).select_related("chunk__document")
        shown = shown.only("chunk__ordinal", "chunk__document__title", "chunk__document__key")
        passages = ((_passage_link(each),) for each in shown.order_by("chunk_id")[:MAX_MENTIONS])
        return format_html_join("", "<div>{}</div>", passages) or gettext("no passage")


def _passage_link(row: Mention | Evidence) -> str | SafeString:
    return link_to(row.chunk, f"{row.chunk.document} #{row.chunk.ordinal + 1}")


def _ids_by_scope(rows: Iterable[Node]) -> Iterable[tuple[GraphScope, Sequence[str]]]:
    """The ids of the nodes of each workspace, of which curators see everything."""
    ordered = sorted(rows, key=lambda row: row.workspace_id)
    for workspace_id, group in groupby(ordered, key=lambda row: row.workspace_id):
        yield GraphScope(workspace_id), [row.key for row in group]


@admin.register(Alias)
class AliasAdmin(GraphAdmin):
    """Names by which texts mean a node."""

    list_display = ["name", "node_name", "workspace"]
    list_filter = [("workspace", AutocompleteSelectFilter), ("node", AutocompleteSelectFilter)]
    list_select_related = ["node", "workspace"]
    list_heavy_fields = ("node__props",)
    search_fields = ["form"]
    search_help_text = gettext_lazy("The full name, in any spelling.")
    sortable_by = ["name"]
    node_link = link_column("node")
    fields = ["node_link", "name", "workspace"]

    def page_address(self, row: Alias) -> str:
        return node_url(row.node)

    def search_rows(self, rows: QuerySet[Alias], term: str) -> QuerySet[Alias]:
        # With the workspaces named, an index finds the name.
        workspaces = list(Workspace.objects.values_list("pk", flat=True))
        return rows.filter(workspace__in=workspaces, form__in={normalize_name(term), term})

    def delete_rows(self, rows: Iterable[Alias]) -> None:
        remove_aliases(alias_ids=[row.pk for row in rows])

    @display(description=gettext_lazy("name"), ordering="form")
    def name(self, row: Alias) -> SafeString:
        """The normalised name; for a merged node, its former id."""
        is_id = is_retired_id_form(row.form)
        return bidi_isolated(
            gettext("former id {value}").format(value=row.form[1:]) if is_id else row.form
        )

    @display(description=gettext_lazy("means"))
    def node_name(self, row: Alias) -> SafeString:
        return node_label(row.node)


MAX_EVIDENCE = 20
MAX_SENTENCE_CHARACTERS = 500


@admin.register(Edge)
class EdgeAdmin(GraphAdmin):
    """Edges with the sentences that state them."""

    list_display = ["source_name", "rel_name", "target_name", "weight", "origin_label", "workspace"]
    list_filter = [("workspace", AutocompleteSelectFilter), RelationFilter, "origin"]
    list_select_related = ["workspace", "source", "target"]
    list_heavy_fields = ("props", "source__props", "target__props")
    search_fields = ["source__name"]
    search_help_text = gettext_lazy("One of its nodes: part of the name, or the full id.")
    sortable_by = ["rel_name"]
    list_display_links = ["rel_name"]
    source_link = link_column("source", "from")
    target_link = link_column("target", "to")
    fields = ["source_link", "rel_name", "target_link", "workspace", "weight", "props", "origin"]
    fields += ["evidence_list", "updated_at"]

    def search_rows(self, rows: QuerySet[Edge], term: str) -> QuerySet[Edge]:
        found = Node.objects.filter(matches_node(term)).order_by()
        nodes = list(found.values_list("pk", flat=True)[:MAX_SEARCHED_NODES])
        return rows.filter(Q(source__in=nodes) | Q(target__in=nodes))

    def page_address(self, row: Edge) -> str:
        if _is_content(row.source) or _is_content(row.target):
            return ""
        ends = {"source": row.source.key, "rel": row.rel, "target": row.target.key}
        return reverse("graph_edge", query=ends)

    def delete_rows(self, rows: Iterable[Edge]) -> None:
        delete_edges(edge_ids=[row.pk for row in rows])

    def deletion_counts(self, rows: list[Edge]) -> dict[str, int]:
        evidence = Evidence.objects.filter(edge__in=[row.pk for row in rows])
        return {**super().deletion_counts(rows), gettext("pieces of evidence"): evidence.count()}

    def deletion_name(self, row: Edge) -> str:
        return f"{row.source} {row.rel} {row.target}"

    @display(description=gettext_lazy("from"))
    def source_name(self, row: Edge) -> SafeString:
        return node_label(row.source)

    @display(description=gettext_lazy("relation"), ordering="rel")
    def rel_name(self, row: Edge) -> SafeString:
        return bidi_isolated(row.rel)

    @display(description=gettext_lazy("to"))
    def target_name(self, row: Edge) -> SafeString:
        return node_label(row.target)

    @display(description=gettext_lazy("supporting passages"))
    def evidence_list(self, row: Edge) -> SafeString | str:
        """The first sentences."""
        shown = Evidence.objects.filter(edge=row).select_related("chunk__document")
        shown = shown.only(
            *("start", "end", "chunk__text", "chunk__ordinal"),
            *("chunk__document__title", "chunk__document__key"),
        )
        lines = (
            (_passage_link(each), each.chunk.text[each.start : each.end][:MAX_SENTENCE_CHARACTERS])
            for each in shown.order_by("chunk_id")[:MAX_EVIDENCE]
        )
        return format_html_join("", "<div>{}: <bdi>{}</bdi></div>", lines) or gettext("none")


State = Extraction.State
STATE_COLOURS = {
    State.WAITING: "info",
    State.RUNNING: "info",
    State.DONE: "success",
    State.DEAD: "danger",
}


@admin.register(Extraction)
class ExtractionAdmin(QueueAdmin):
    """The extraction queue, dead entries first. Extraction can be retried or repeated."""

    list_display = ["name", "collection", "state_label", "problem", "attempts", "mentions"]
    list_display += ["relations", "extracted_at"]
    list_filter = [
        "state",
        ("workspace", AutocompleteSelectFilter),
        ("collection", AutocompleteSelectFilter),
    ]
    list_select_related = ["document", "collection"]
    list_heavy_fields = ("error", "document__metadata", "document__declared")
    search_fields = ["document__key", "document__title"]
    # By the alphabet, “dead” comes before all others.
    ordering = ["state", "-id"]
    actions = ["try_again", "read_again"]
    document_link = link_column("document")
    collection_link = link_column("collection")
    run_link = link_column("run")
    state_label = choice_column("state", STATE_COLOURS)
    fields = ["document_link", "collection_link", "workspace", "run_link", "state", "error"]
    fields += ["recipe", "attempts", "outages", "due_at", "leased_until", "mentions", "relations"]
    fields += ["extracted_at"]

    def retry(self, ids: list[int]) -> int:
        return retry_extractions(extraction_ids=ids)

    @admin.action(description=gettext_lazy("Read again"), permissions=["operate"])
    def read_again(self, request: HttpRequest, queryset: QuerySet[Extraction]) -> None:
        ids = list(queryset.values_list("document_id", flat=True))
        number, of = (
            number_format(each, force_grouping=True)
            for each in (repeat_extraction(document_ids=ids), len(ids))
        )
        text = gettext(
            "{number} of {ids} are in the queue. Their current names and edges stay until then."
        )
        messages.success(request, text.format(number=number, ids=of))

    @display(description=gettext_lazy("document"), ordering="id")
    def name(self, row: Extraction) -> SafeString:
        return excerpt(str(row.document)[:EXCERPT_CHARACTERS])
