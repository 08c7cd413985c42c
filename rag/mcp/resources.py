"""Collections and documents as resources: listed, and read whole."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from django.db.models import Count, Q, QuerySet
from mcp.types import (
    Annotations,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from common.errors import InvalidInput, NotFound
from common.pagination import MAX_ID
from documents import services as documents
from documents.models import Collection, Document
from rag.context import RagContext
from rag.mcp.addresses import COLLECTION_TEMPLATE, DOCUMENT_TEMPLATE, Address, parse

PAGE = 100
MAX_CHARACTERS = 4_000_000
_CURSOR = "before:"


def list_resources(
    context: RagContext, params: PaginatedRequestParams | None
) -> ListResourcesResult:
    """All collections, then the current documents, newest first, page by page."""
    context.require("read")
    before = _position(params.cursor if params else None)
    listed = [] if before else [_collection(row) for row in visible_collections(context)]
    rows = visible_documents(context).current().order_by("-id").select_related("collection")
    if before:
        rows = rows.filter(pk__lt=before)
    page = list(rows[: PAGE + 1])
    listed += [_document(row) for row in page[:PAGE]]
    return ListResourcesResult(
        resources=listed, next_cursor=_cursor(page[PAGE - 1].pk) if len(page) > PAGE else None
    )


def list_templates(
    context: RagContext, params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    """How both kinds are called."""
    context.require("read")
    return ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(
                uri_template=DOCUMENT_TEMPLATE,
                name="document",
                title="Document",
                description="The text of a document, by the slug of its collection and its key;"
                " `version` for one that is superseded.",
            ),
            ResourceTemplate(
                uri_template=COLLECTION_TEMPLATE,
                name="collection",
                title="Collection",
                description="What a collection holds.",
                mime_type="application/json",
            ),
        ]
    )


def read_resource(context: RagContext, params: ReadResourceRequestParams) -> ReadResourceResult:
    """A document's text, with what is known of it beside; or a collection. Raises NotFound."""
    context.require("read")
    address = parse(params.uri)
    read = _read_document if address.key else _read_collection
    return ReadResourceResult(contents=[read(context, address, params.uri)])


def visible_collections(context: RagContext) -> QuerySet[Collection]:
    """Those that the caller sees, by slug."""
    rows = Collection.objects.visible_to(context.user).filter(workspace=context.workspace)
    if context.collections:
        rows = rows.filter(slug__in=context.collections)
    return rows.order_by("slug")


def visible_documents(context: RagContext) -> Any:
    """Those with a text, perhaps an earlier one, of all versions, that the caller sees."""
    rows = Document.objects.visible_to(context.user).filter(workspace=context.workspace)
    if context.collections:
        rows = rows.filter(collection__slug__in=context.collections)
    has_text = Q(chunk_count__gt=0) | Q(duplicate_of__isnull=False)
    return rows.filter(has_text | Q(status=Document.Status.READY))


def _read_document(context: RagContext, address: Address, uri: str) -> TextResourceContents:
    rows = visible_documents(context).filter(
        collection__slug=_storable(address.collection, uri), key=_storable(address.key, uri)
    )
    rows = rows.current() if address.version is None else rows.filter(version=address.version)
    document = rows.select_related("collection").first()
    if document is None:
        raise _not_there(uri)
    text = documents.document_text(document).text
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(
            f"The document has {len(text):,} characters; {MAX_CHARACTERS:,} can be read whole."
            " Search it with the tool similarity_search."
        )
    versions = visible_documents(context).filter(
        collection_id=document.collection_id, key=document.key
    )
    about = {
        "title": document.shown_title,
        "collection": document.collection.slug,
        "key": document.key,
        "version": document.version,
        "versions": list(versions.order_by("-version").values_list("version", flat=True)),
        "url": document.url or None,
        "metadata": document.metadata,
        "updated_at": document.updated_at.isoformat(),
    }
    return TextResourceContents(uri=uri, mime_type=_mime_type(document), text=text, _meta=about)


def _read_collection(context: RagContext, address: Address, uri: str) -> TextResourceContents:
    slug = _storable(address.collection, uri)
    collection = visible_collections(context).filter(slug=slug).select_related("space").first()
    if collection is None:
        raise _not_there(uri)
    seen = visible_documents(context).current().filter(collection=collection)
    by_language = seen.values_list("language").annotate(count=Count("id")).order_by("-count")
    about = {
        "collection": collection.slug,
        "name": collection.name,
        "description": collection.description,
        "documents": seen.count(),
        "languages": dict(by_language),
        "embedding_model": collection.space.model_name,
        "document_uri": f"{Address(collection.slug).uri}/{{key}}",
    }
    text = json.dumps(about, ensure_ascii=False, indent=1)
    return TextResourceContents(uri=uri, mime_type="application/json", text=text)


def _collection(row: Collection) -> Resource:
    return Resource(
        uri=Address(row.slug).uri,
        name=row.slug,
        title=row.name,
        description=row.description or "A collection of documents.",
        mime_type="application/json",
    )


def _document(row: Document) -> Resource:
    return Resource(
        uri=Address(row.collection.slug, row.key).uri,
        name=row.key,
        title=row.shown_title,
        description=f"A document of the collection {row.collection.name}.",
        mime_type=_mime_type(row),
        annotations=Annotations(last_modified=row.updated_at.isoformat()),
    )


def _mime_type(document: Document) -> str:
    return "text/markdown" if document.rendering == "markdown" else "text/plain"


def _storable(text: str, uri: str) -> str:
    """PostgreSQL cannot be asked for NUL."""
    if "\x00" in text:
        raise _not_there(uri)
    return text


def _not_there(uri: str) -> NotFound:
    return NotFound(f"There is no “{uri}” that you may see. resources/list names what there is.")


def _cursor(pk: int) -> str:
    return urlsafe_b64encode(f"{_CURSOR}{pk}".encode()).decode()


def _position(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    try:
        text = urlsafe_b64decode(cursor.encode()).decode()
        position = int(text.removeprefix(_CURSOR)) if text.startswith(_CURSOR) else 0
    except ValueError:
        position = 0
    if not 0 < position <= MAX_ID:
        raise InvalidInput("This is no cursor. Send the nextCursor of a page, or none.")
    return position
