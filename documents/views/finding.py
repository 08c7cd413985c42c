"""The document that an address names."""

from django.http import HttpRequest

from accounts.choosing import workspace_of
from common.errors import NotFound
from documents.models import Document
from documents.services import get_collection


def find_document(request: HttpRequest, slug: str, pk: int) -> Document:
    """The document, if its visitor may see it; raises NotFound."""
    collection = get_collection(workspace=workspace_of(request), slug=slug)
    document = (
        Document.objects.visible_to(request.user)
        .select_related("collection__space", "workspace")
        .filter(collection=collection, pk=pk)
        .first()
    )
    if document is None:
        raise NotFound(
            f"There is no such document in “{collection}”. It may have been deleted:"
            " look for it in the collection, or search again."
        )
    return document
