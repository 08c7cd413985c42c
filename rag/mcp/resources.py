"""Collections and documents as MCP resources: list, read, complete their names."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext
from mcp.types import (
    Annotations,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    TextResourceContents,
)

from common.errors import InvalidInput, NotFound
from common.serializers import MAX_ID
from common.translation import format_number
from documents import services as documents
from documents.models import Collection, Document
from rag.context import RagContext
from rag.mcp.resource_uris import COLLECTION_TEMPLATE, DOCUMENT_TEMPLATE, ResourceUri, parse_uri

PAGE_SIZE = 100
MAX_CHARACTERS = 4_000_000
_CURSOR_PREFIX = "before:"


def list_resources(
    context: RagContext, params: PaginatedRequestParams | None
) -> ListResourcesResult:
    """All collections, then the current documents, newest first, paged by cursor."""
    context.require("read")
    before = None
    if params and params.cursor is not None:
        try:
            text = urlsafe_b64decode(params.cursor.encode()).decode()
            before = (
                int(text.removeprefix(_CURSOR_PREFIX)) if text.startswith(_CURSOR_PREFIX) else 0
            )
        except ValueError:
            before = 0
        if not 0 < before <= MAX_ID:
            raise InvalidInput(
                gettext("This is not a valid cursor. Send the nextCursor of a page, or none.")
            )
    listed = [
        Resource(
            uri=ResourceUri(row.slug).uri,
            name=row.slug,
            title=row.name,
            description=row.description or "A collection of documents.",
            mime_type="application/json",
        )
        for row in (() if before else visible_collections(context))
    ]
    rows = visible_documents(context).current().order_by("-id").select_related("collection")
    if before:
        rows = rows.filter(pk__lt=before)
    page = list(rows[: PAGE_SIZE + 1])
    listed += [
        Resource(
            uri=ResourceUri(row.collection.slug, row.key).uri,
            name=row.key,
            title=row.display_title,
            description=f"A document of the collection {row.collection.name}.",
            mime_type=_mime_type(row),
            annotations=Annotations(last_modified=row.updated_at.isoformat()),
        )
        for row in page[:PAGE_SIZE]
    ]
    return ListResourcesResult(
        resources=listed,
        next_cursor=urlsafe_b64encode(f"{_CURSOR_PREFIX}{page[PAGE_SIZE - 1].pk}".encode()).decode()
        if len(page) > PAGE_SIZE
        else None,
    )


def list_templates(
    context: RagContext, params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    """The URI templates of both kinds of resources."""
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
    """A document's text with its metadata, or a collection. Raises NotFound."""
    context.require("read")
    address = parse_uri(params.uri)
    read = _read_document if address.key else _read_collection
    return ReadResourceResult(contents=[read(context, address, params.uri)])


def visible_collections(context: RagContext) -> QuerySet[Collection]:
    """Collections the caller sees, by slug."""
    rows = Collection.objects.visible_to(context.user).filter(workspace=context.workspace)
    if context.collections:
        rows = rows.filter(slug__in=context.collections)
    return rows.order_by("slug")


def visible_documents(context: RagContext) -> Any:
    """Documents the caller sees, of all versions, that have a text."""
    rows = Document.objects.visible_to(context.user).filter(workspace=context.workspace)
    if context.collections:
        rows = rows.filter(collection__slug__in=context.collections)
    has_text = Q(chunk_count__gt=0) | Q(duplicate_of__isnull=False)
    return rows.filter(has_text | Q(status=Document.Status.READY))


def _read_document(context: RagContext, address: ResourceUri, uri: str) -> TextResourceContents:
    rows = visible_documents(context).filter(
        collection__slug=_without_nul(address.collection, uri), key=_without_nul(address.key, uri)
    )
    rows = rows.current() if address.version is None else rows.filter(version=address.version)
    document = rows.select_related("collection").first()
    if document is None:
        raise _not_found(uri)
    text = documents.document_text(document).text
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(
            gettext(
                "The document has {length} characters; {limit} can be read at once. Search"
                " it with the tool similarity_search."
            ).format(length=format_number(len(text)), limit=format_number(MAX_CHARACTERS))
        )
    versions = visible_documents(context).filter(
        collection_id=document.collection_id, key=document.key
    )
    about = {
        "title": document.display_title,
        "collection": document.collection.slug,
        "key": document.key,
        "version": document.version,
        "versions": list(versions.order_by("-version").values_list("version", flat=True)),
        "url": document.url or None,
        "metadata": document.metadata,
        "updated_at": document.updated_at.isoformat(),
    }
    return TextResourceContents(uri=uri, mime_type=_mime_type(document), text=text, _meta=about)


def _read_collection(context: RagContext, address: ResourceUri, uri: str) -> TextResourceContents:
    slug = _without_nul(address.collection, uri)
    collection = visible_collections(context).filter(slug=slug).select_related("space").first()
    if collection is None:
        raise _not_found(uri)
    seen = visible_documents(context).current().filter(collection=collection)
    by_language = seen.values_list("language").annotate(count=Count("id")).order_by("-count")
    about = {
        "collection": collection.slug,
        "name": collection.name,
        "description": collection.description,
        "documents": seen.count(),
        "languages": dict(by_language),
        "embedding_model": collection.space.model_name,
        "document_uri": f"{ResourceUri(collection.slug).uri}/{{key}}",
    }
    text = json.dumps(about, ensure_ascii=False, indent=1)
    return TextResourceContents(uri=uri, mime_type="application/json", text=text)


def _mime_type(document: Document) -> str:
    return "text/markdown" if document.rendering == "markdown" else "text/plain"


def _without_nul(text: str, uri: str) -> str:
    """PostgreSQL rejects NUL characters, so nothing has this name."""
    if "\x00" in text:
        raise _not_found(uri)
    return text


def _not_found(uri: str) -> NotFound:
    return NotFound(
        gettext(
            "“{uri}” does not exist, or you may not see it. resources/list names the available"
            " resources."
        ).format(uri=uri)
    )


#: The protocol allows no more.
MAX_COMPLETIONS = 100


def complete(context: RagContext, params: CompleteRequestParams) -> CompleteResult:
    """Complete slugs of collections, or keys of documents of the chosen collection, by prefix."""
    context.require("read")
    template = params.ref.uri if isinstance(params.ref, ResourceTemplateReference) else ""
    name, begun = params.argument.name, params.argument.value
    if "\x00" in begun or template not in {COLLECTION_TEMPLATE, DOCUMENT_TEMPLATE}:
        return _completion([])
    if name == "collection":
        rows = visible_collections(context).filter(slug__startswith=begun)
        return _completion(list(rows.values_list("slug", flat=True)[: MAX_COMPLETIONS + 1]))
    if name == "key" and template == DOCUMENT_TEMPLATE:
        arguments = params.context.arguments if params.context else None
        chosen = (arguments or {}).get("collection", "")
        rows = visible_documents(context).current().filter(key__startswith=begun)
        if chosen:
            rows = rows.filter(collection__slug=chosen.replace("\x00", ""))
        keys = rows.order_by("key").values_list("key", flat=True).distinct()
        return _completion(list(keys[: MAX_COMPLETIONS + 1]))
    return _completion([])


def _completion(values: list[str]) -> CompleteResult:
    return CompleteResult(
        completion=Completion(
            values=values[:MAX_COMPLETIONS], has_more=len(values) > MAX_COMPLETIONS
        )
    )
