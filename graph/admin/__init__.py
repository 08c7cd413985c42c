"""Curation of the graph: nodes, edges, names, and the queue of documents that are read for it,
which is here."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import (
    EXCERPT_CHARACTERS,
    QueueAdmin,
    choice_column,
    excerpt,
    link_column,
)
from graph.admin import edges, nodes
from graph.models import Extraction
from graph.services.edits import repeat_extraction
from graph.services.extraction import retry_extractions

__all__ = ["ExtractionAdmin", "edges", "nodes"]

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

    list_display = [
        "name",
        "collection",
        "state_label",
        "problem",
        "attempts",
        "mentions",
        "relations",
        "extracted_at",
    ]
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
    fields = [
        "document_link",
        "collection_link",
        "workspace",
        "run_link",
        "state",
        "error",
        "recipe",
        "attempts",
        "outages",
        "due_at",
        "leased_until",
        "mentions",
        "relations",
        "extracted_at",
    ]

    def retry(self, ids: list[int]) -> int:
        return retry_extractions(extraction_ids=ids)

    @admin.action(description=gettext_lazy("Read again"), permissions=["operate"])
    def read_again(self, request: HttpRequest, queryset: QuerySet[Extraction]) -> None:
        ids = list(queryset.values_list("document_id", flat=True))
        number = repeat_extraction(document_ids=ids)
        messages.success(
            request,
            gettext(
                "{number} of {ids} are in the queue. Their current names and edges stay until then."
            ).format(
                number=number_format(number, force_grouping=True),
                ids=number_format(len(ids), force_grouping=True),
            ),
        )

    @display(description=gettext_lazy("document"), ordering="id")
    def name(self, row: Extraction) -> SafeString:
        return excerpt(str(row.document)[:EXCERPT_CHARACTERS])
