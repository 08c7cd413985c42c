"""Collections and documents over HTTP. Begin with `DocumentViewSet`."""

from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import FileResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.response import Response

from accounts.api import ListParameters, ResourceViewSet, WorkspaceViewSet, operation
from common.api import StreamNegotiation
from common.parsers import JSONParser
from documents import services
from documents.api import serializers
from documents.api.changes import ChangesParameters, TextChangesSerializer, changes_data
from documents.api.chunks import EditSerializer, edits_visible_to
from documents.api.serializers import (
    ChunkSerializer,
    CollectionSerializer,
    DirectoryOfTheServerSerializer,
    DirectorySyncSerializer,
    DocumentSerializer,
    PageOfTheWebSerializer,
    RunSerializer,
    SyncSerializer,
)
from documents.models import Chunk, ChunkEdit, Collection, Document, IngestionRun
from documents.page_images import image_response


class CollectionFiltered(WorkspaceViewSet):
    """Rows of collections, whose lists can be filtered by collection."""

    def collection_named(self, slug: str) -> Collection:
        """The workspace's collection; raises NotFound that names those there are."""
        return services.get_collection(workspace=self.workspace, slug=slug)

    def narrowed(self, rows: QuerySet[Any], **wanted: Any) -> QuerySet[Any]:
        if slug := wanted.get("collection"):
            wanted["collection"] = self.collection_named(slug)
        return super().narrowed(rows, **wanted)


class CollectionViewSet(ResourceViewSet):
    """Documents that are chunked, embedded and searched alike."""

    for_limited_keys = frozenset({"list", "retrieve", "partial_update", "destroy", "sync"})
    nouns = ("collection", "collections")
    queryset = Collection.objects.select_related("space")
    serializer_class = CollectionSerializer
    editors_only = True
    lookup_field = "slug"
    lookup_value_converter = "slug"
    etag_excluded_fields = frozenset({"document_count"})

    def get_queryset(self) -> QuerySet[Collection]:
        rows: QuerySet[Collection] = super().get_queryset()
        counts = (
            Document.objects.visible_to(self.request.user)
            .current()
            .filter(collection=OuterRef("pk"))
            .order_by()
            .values("collection")
            .annotate(number=Count("pk"))
            .values("number")
        )
        return rows.annotate(document_count=Coalesce(Subquery(counts), 0))

    @operation(takes=serializers.NewCollectionSerializer, status=201, errors=(409,), once=True)
    def create(self, **values: Any) -> Any:
        """Create a collection."""
        return self.reloaded(services.create_collection(workspace=self.workspace, **values))

    @operation(takes=serializers.CollectionChangeSerializer)
    def partial_update(self, collection: Collection, **values: Any) -> Collection:
        """Change a collection.

        A new language applies to documents that are ingested from then on; a new value of `graph`
        applies to all documents at once.
        """
        return services.update_collection(collection=collection, **values)

    @operation()
    def destroy(self, collection: Collection) -> None:
        """Delete a collection with everything in it."""
        services.delete_collection(collection=collection)

    @action(detail=True, methods=["post"])
    @operation(
        takes=DirectorySyncSerializer, gives={200: SyncSerializer, 202: SyncSerializer}, once=True
    )
    def sync(self, collection: Collection, **values: Any) -> Response:
        """Sync a collection with a directory of the server.

        Every file is read once for comparison; new and modified files are queued. A missing or
        suddenly empty directory changes nothing.
        """
        result = services.sync_server_directory(
            collection=collection, user=self.request.user, **values
        )
        answer = SyncSerializer(result, context=self.get_serializer_context()).data
        return Response(answer, status=200 if result.run is None else 202)


class DocumentViewSet(RetrieveModelMixin, CollectionFiltered):
    """Documents: ingested, read, changed, deleted."""

    for_limited_keys = True
    nouns = ("document", "documents")
    # All versions: a superseded one is read by its id.
    queryset = Document.objects.select_related("collection", "duplicate_of")
    serializer_class = DocumentSerializer
    editors_only = True
    # Progress of its ingestion.
    etag_excluded_fields = frozenset(
        {
            "status",
            "error",
            "is_searchable",
            "chunk_count",
            "token_count",
            "indexed_at",
            "updated_at",
        }
    )
    action_parameters = {
        "list": serializers.DocumentFilter,
        "destroy": serializers.DocumentDeletion,
        "chunks": ListParameters,
        "edits": ListParameters,
        "page_image": serializers.PageImageParameters,
        "changes": ChangesParameters,
    }

    def get_parsers(self) -> list[BaseParser]:
        """Multipart for files, JSON for everything else."""
        # The OpenAPI generator calls this without a request.
        method = self.request.method if self.request else "POST"
        return [JSONParser(), MultiPartParser()] if method == "POST" else [JSONParser()]

    def narrowed(self, rows: QuerySet[Any], **wanted: Any) -> QuerySet[Any]:
        if wanted.pop("versions") == "current":
            wanted["is_current"] = True
        return super().narrowed(rows, **wanted)

    @operation(many=True)
    def list(self) -> QuerySet[Document]:
        """List documents, newest first.

        `collection` with `key` finds one document by your own id, and with `versions=all` all its
        versions.
        """
        return self.filter_queryset(self.get_queryset())

    @operation(
        takes={
            "application/json": PolymorphicProxySerializer(
                component_name="NewDocument",
                serializers=[
                    serializers.TextDocumentSerializer,
                    PageOfTheWebSerializer,
                    DirectoryOfTheServerSerializer,
                ],
                resource_type_field_name=None,
            ),
            "multipart/form-data": serializers.FileUploadSerializer,
        },
        gives=RunSerializer,
        status=202,
        once=True,
    )
    def create(self) -> IngestionRun:
        """Add documents.

        As text in JSON, as files in a form, or as the address of a web page or the path of a
        directory of the server, if the operator allows these. They are queued: the answer is the
        run to watch, and each file succeeds or fails independently.
        """
        is_form = str(self.request.content_type).startswith("multipart/")
        return self._ingest_files() if is_form else self._ingest_json()

    def _ingest_json(self) -> IngestionRun:
        """A page of the web, a directory of the server, or text."""
        body, user = self.request.data, self.request.user
        if isinstance(body, dict) and "url" in body:
            values = self.validated(PageOfTheWebSerializer)
            collection = self.collection_named(values.pop("collection"))
            urls = [values.pop("url")]
            return services.ingest_urls(collection=collection, urls=urls, user=user, **values)
        if isinstance(body, dict) and "directory" in body:
            values = self.validated(DirectoryOfTheServerSerializer)
            collection = self.collection_named(values.pop("collection"))
            return services.ingest_server_directory(collection=collection, user=user, **values)
        values = self.validated(serializers.TextDocumentSerializer)
        collection = self.collection_named(values.pop("collection"))
        return services.ingest_text(collection=collection, user=user, **values)

    def _ingest_files(self) -> IngestionRun:
        values = self.validated(serializers.FileUploadSerializer)
        files, metadata = values["files"], values.get("metadata", {})
        names = values.get("paths") or [file.name for file in files]
        return services.ingest_uploads(
            collection=self.collection_named(values["collection"]),
            uploads=[
                services.Upload(name=name, file=file, metadata=metadata)
                for name, file in zip(names, files, strict=True)
            ],
            user=self.request.user,
            policy=values["policy"],
            store_once=values["store_once"],
            access=values.get("access"),
        )

    @operation(takes=serializers.DocumentInput, errors=(409,))
    def partial_update(self, document: Document, **values: Any) -> None:
        """Change a document's title, metadata or access.

        Title, metadata and access that are set here take precedence over the source, also when it
        is ingested again. Passages are updated at once.
        """
        services.update_document(document=document, user=self.request.user, **values)

    @operation()
    def destroy(self, document: Document) -> None:
        """Delete a document.

        With all its versions: afterwards no table and no stored file contains its text. With
        `versions=this` only this version, if it is superseded.
        """
        if self.parameters["versions"] == "this":
            services.delete_version(document=document)
        else:
            services.delete_document(document=document)

    @action(detail=True, ordering="ordinal")
    @operation(gives=ChunkSerializer, many=True)
    def chunks(self, document: Document) -> QuerySet[Chunk]:
        """List a document's chunks in order."""
        rows = Chunk.objects.visible_to(self.request.user).filter(document=document.text_id)
        return rows.defer("embedding", "search_vector")

    @action(detail=True)
    @operation(gives=EditSerializer, many=True)
    def edits(self, document: Document) -> QuerySet[ChunkEdit]:
        """List what people changed in a document's passages, newest first."""
        return edits_visible_to(self.request.user).filter(document=document.text_id)

    @action(detail=True, pagination_class=None)
    @operation(gives=TextChangesSerializer)
    def changes(self, document: Document) -> Any:
        """Read what changed between versions.

        Paragraphs that were changed, added or removed since the previous version, or between this
        document and `other`; changed numbers and dates come first. Paragraphs that only moved are
        left out.
        """
        return changes_data(document, self.parameters.get("other"), user=self.request.user)

    @action(detail=True, content_negotiation_class=StreamNegotiation)
    @operation(gives={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def file(self, document: Document) -> FileResponse:
        """Download the original file.

        The file as it was uploaded. 404 if it is not stored here: files from commands and programs
        are read, but not stored.
        """
        return services.original_response(document)

    @action(
        detail=True,
        url_path="pages/<int:number>/image",
        url_name="page-image",
        content_negotiation_class=StreamNegotiation,
    )
    @operation(gives={(200, "image/webp"): OpenApiTypes.BINARY})
    def page_image(self, document: Document, *, number: int) -> HttpResponseBase:
        """Show a page.

        Picture of page `number` of a PDF, a scan or a picture, counted from 1; a picture has one
        page. 404 if there is no such page, or the original is not stored here. Programs that cache
        it use `If-None-Match`.
        """
        return image_response(self.request, document, number, str(self.parameters["width"]))
