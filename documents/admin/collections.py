"""Collections in the admin, which are created and changed on their pages."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet, Sum
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import ReadOnlyAdmin, link_to_list
from common.translation import format_number
from common.web import errors_as_messages
from documents import services
from documents.admin.content import ContentAdmin, download_export
from documents.models import (
    Collection,
    Document,
    IngestionRun,
)

#: Documents that one action may read again.
MAX_REPROCESSED_DOCUMENTS = 20_000


@admin.register(Collection)
class CollectionAdmin(ContentAdmin, ReadOnlyAdmin):
    """Collections to inspect, process again, export and delete."""

    list_display = ["name", "slug", "workspace", "space", "chunk_count", "contents", "created_at"]
    list_filter = [("workspace", AutocompleteSelectFilter), "space", "vectors", "graph"]
    search_fields = ["name", "slug"]
    ordering = ["name", "id"]
    actions = ["read_again", "embed_again", "export"]
    can_delete = True
    fields = ["name", "slug", "workspace", "description", "contents", "default_language"]
    fields += ["vectors", "automatic_model", "chunker", "chunker_options", "graph", "reranker"]
    fields += ["rerank_instruction", "fusion", "facets", "space", "learnt_weights"]
    fields += ["created_at", "updated_at"]

    def page_address(self, row: Collection) -> str:
        return reverse("collection_change", args=[row.slug])

    def get_queryset(self, request: HttpRequest) -> QuerySet[Collection]:
        return super().get_queryset(request).prefetch_related("lexical_segments")

    def delete_rows(self, rows: Iterable[Collection]) -> None:
        for row in rows:
            services.delete_collection(collection=row)

    @admin.action(description=gettext_lazy("Read all documents again"), permissions=["operate"])
    def read_again(self, request: HttpRequest, queryset: QuerySet[Collection]) -> None:
        """Ingest all documents again, as a new chunker or language needs it."""
        for collection in queryset:
            rows = Document.objects.current().filter(collection=collection)
            documents = list(rows.defer("metadata", "declared")[: MAX_REPROCESSED_DOCUMENTS + 1])
            if len(documents) > MAX_REPROCESSED_DOCUMENTS:
                messages.error(
                    request,
                    gettext(
                        "{collection} has more than {limit} documents. Read them again in the"
                        " list of documents, narrowed by state or words."
                    ).format(
                        collection=collection,
                        limit=number_format(MAX_REPROCESSED_DOCUMENTS, force_grouping=True),
                    ),
                )
                continue
            self.process_again(request, documents, f"{collection}: ")

    @admin.action(description=gettext_lazy("Embed all passages again"), permissions=["operate"])
    def embed_again(self, request: HttpRequest, queryset: QuerySet[Collection]) -> None:
        """Embed with the same model; another model needs a move to its space."""
        for collection in queryset:
            with errors_as_messages(request):
                passages = services.reembed_collection(collection=collection)
                self.report_embedding(request, passages, f"{collection}: ")

    @admin.action(description=gettext_lazy("Export as JSON Lines"), permissions=["read"])
    def export(
        self, request: HttpRequest, queryset: QuerySet[Collection]
    ) -> HttpResponseBase | None:
        """Download all documents of one collection as JSON Lines."""
        rows = list(queryset.select_related("workspace")[:2])
        if len(rows) > 1:
            messages.error(request, gettext("Select one collection: an export holds one."))
            return None
        passages = Document.objects.filter(collection=rows[0]).aggregate(all=Sum("chunk_count"))
        return download_export(request, rows[0], passages=passages["all"] or 0)

    def documents_below(self, rows: list[Any]) -> QuerySet[Document]:
        return Document.objects.filter(collection__in=rows)

    @display(description=gettext_lazy("chunks"))
    def chunk_count(self, collection: Collection) -> int:
        """From the lexical index, current versions only: counting chunks would take long."""
        return sum(
            each.chunk_count for each in collection.lexical_segments.all() if each.is_current
        )

    @display(description=gettext_lazy("contents"))
    def contents(self, collection: Collection) -> str:
        documents = link_to_list(
            Document, gettext("documents"), collection__id__exact=collection.pk
        )
        runs = link_to_list(IngestionRun, gettext("runs"), collection__id__exact=collection.pk)
        return format_html("{} · {}", documents, runs)

    @display(description=gettext_lazy("learnt weights"))
    def learnt_weights(self, collection: Collection) -> str:
        """The weights learnt from judgements, and the command that learns or resets them."""
        command = f"manage.py evaluate --workspace {collection.workspace.slug}"
        command += f" --collection {collection.slug}"
        record = collection.tuning
        if not record:
            return gettext("None. {command} --judgements --tune learns some.").format(
                command=command
            )
        if record["space"] != collection.space_id:
            return gettext(
                "Out of use: learnt with another model. {command} --judgements --tune learns anew."
            ).format(command=command)
        return gettext(
            "Words {lexical}, meaning {vector}; learnt from {questions} judged questions: nDCG@10"
            " {before} → {after} on questions that it had not seen. {command} --forget goes back"
            " to the default."
        ).format(
            lexical=format_number(record["lexical"], 2),
            vector=format_number(1 - record["lexical"], 2),
            questions=number_format(record["questions"], force_grouping=True),
            before=format_number(record["ndcg_default"], 3),
            after=format_number(record["ndcg_tuned"], 3),
            command=command,
        )
