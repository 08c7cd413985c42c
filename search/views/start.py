"""What the search page shows before anything is asked."""

from typing import Any

from django.db.models import OuterRef
from django.http import HttpRequest

from accounts.models import Workspace
from common.aggregates import Counted
from documents.models import Collection, Document
from search.examples import examples_for

RECENT = 5


def start(request: HttpRequest, workspace: Workspace) -> dict[str, Any]:
    """Collections, newest documents, and questions that find something in them."""
    documents = (
        Document.objects.visible_to(request.user)
        .filter(workspace=workspace, status=Document.Status.READY)
        .current()
        .select_related("collection")
        .defer("metadata", "declared")
    )
    current = Document.objects.current().filter(collection=OuterRef("pk"))
    recent = list(documents.order_by("-id")[:RECENT])
    return {
        "collections": Collection.objects.visible_to(request.user)
        .filter(workspace=workspace)
        .annotate(document_count=Counted(current)),
        "recent": recent,
        "examples": examples_for(documents),
    }
