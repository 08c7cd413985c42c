"""The rows that the API shows, with what each needs in as few queries as there are kinds."""

from typing import Any

from django.db.models import Case, Count, OuterRef, Prefetch, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from accounts.models import Workspace
from documents.models import Chunk, Collection, Document, IngestionItem, IngestionRun

#: Files that a run shows at once.
FIRST_ITEMS = 200


def collections(user: Any, workspace: Workspace) -> QuerySet[Collection]:
    """The workspace's collections, each with the number of documents that `user` may see."""
    counts = (
        Document.objects.visible_to(user)
        .current()
        .filter(collection=OuterRef("pk"))
        .order_by()
        .values("collection")
        .annotate(number=Count("pk"))
        .values("number")
    )
    return (
        Collection.objects.visible_to(user)
        .filter(workspace=workspace)
        .select_related("space")
        .annotate(document_count=Coalesce(Subquery(counts), 0))
    )


def documents(user: Any) -> QuerySet[Document]:
    """Documents, superseded versions too."""
    return Document.objects.visible_to(user).select_related("collection")


def chunks(user: Any, document: Document) -> QuerySet[Chunk]:
    """The chunks of a document's text, without what only the search reads."""
    rows = Chunk.objects.visible_to(user).filter(document=document.text_id)
    return rows.defer("embedding", "search_vector")


def runs(user: Any) -> QuerySet[IngestionRun]:
    """Runs."""
    return IngestionRun.objects.visible_to(user).select_related("collection", "workspace")


def runs_with_items(user: Any) -> QuerySet[IngestionRun]:
    """Runs, each with its first files as `first_items`, failed ones before the others."""
    failed_first = Case(When(state=IngestionItem.State.FAILED, then=Value(0)), default=Value(1))
    items = IngestionItem.objects.visible_to(user).order_by(failed_first, "id")[:FIRST_ITEMS]
    return runs(user).prefetch_related(Prefetch("items", items, to_attr="first_items"))
