"""Collections and documents over HTTP. Begin with `DocumentViewSet`; `SyncActions` works with
directories of the server."""

from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import FileResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    PolymorphicProxySerializer,
    extend_schema,
    extend_schema_serializer,
)
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.response import Response

from accounts.api import ListParameters, WorkspaceViewSet, idempotent
from common.api import ErrorSerializer, StreamNegotiation
from common.openapi import load_examples
from common.parsers import JSONParser
from common.serializers import StrictSerializer
from documents import services
from documents.api import serializers as api_serializers
from documents.api.changes import ChangesParameters, TextChangesSerializer, changes_data
from documents.api.chunks import EditSerializer, edits_visible_to
from documents.api.serializers import (
    ChunkSerializer,
    CollectionSerializer,
    DocumentSerializer,
    RunSerializer,
)
from documents.models import Chunk, Collection, Document, IngestionRun
from documents.page_images import image_response
from documents.services import SyncRefused, SyncResult

examples = load_examples("documents.api")


class DirectoryFields(serializers.Serializer[Any]):
    """A directory of the server, and which files of it."""

    directory = serializers.CharField(
        max_length=1024,
        trim_whitespace=False,
        help_text="Full path of a directory of the server, below one that the operator allows.",
    )
    glob = serializers.CharField(
        default="**/*", max_length=200, help_text="Pattern of the files; `*` never crosses a `/`."
    )


class PageOfTheWebSerializer(api_serializers.IngestTarget):
    """A web page to fetch. Its URL is its key."""

    url = serializers.CharField(max_length=1024, help_text="Begins with `https://` or `http://`.")


class DirectoryOfTheServerSerializer(api_serializers.IngestTarget, DirectoryFields):
    """A directory of the server. Each file's key is its path."""

    metadata = None  # type: ignore[assignment]  # each file has its own


@extend_schema_serializer(deprecate_fields=["force"])
class DirectorySyncSerializer(StrictSerializer, DirectoryFields):
    """A directory to keep the collection in sync with."""

    delete = serializers.BooleanField(
        default=False, help_text="Remove documents whose files are gone."
    )
    dry_run = serializers.BooleanField(default=False, help_text="Only report what would be done.")
    allow_empty = serializers.BooleanField(
        default=False, help_text="The directory is supposed to be empty."
    )
    allow_deletions = serializers.BooleanField(
        default=False,
        help_text="Delete more than half of the documents, if so many files are gone.",
    )
    force = serializers.BooleanField(required=False, help_text="Former name of `allow_deletions`.")
    former_names = {"force": "allow_deletions"}


class MoveSerializer(serializers.Serializer[Any]):
    """A renamed file: its path before and after."""

    before = serializers.CharField(source="0")
    after = serializers.CharField(source="1")


class RefusalSerializer(serializers.Serializer[SyncRefused]):
    """Too many deletions, and what allows them."""

    reason = serializers.CharField(help_text="How many documents would be deleted.")
    option = serializers.ChoiceField(
        choices=["allow_empty", "allow_deletions"],
        help_text="The field to set if this is intended.",
    )


def _paths_field(meaning: str) -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), help_text=meaning)


class SyncSerializer(serializers.Serializer[SyncResult]):
    """The outcome for the directory's files, each by its relative path."""

    run = RunSerializer(allow_null=True, help_text="The ingestion to watch; null in a dry run.")
    new = _paths_field("Not in the collection before.")
    modified = _paths_field("With other bytes than before, or to be cut in another way.")
    unchanged = _paths_field("As they were.")
    renamed = MoveSerializer(many=True, help_text="Their documents move; nothing is embedded.")
    deleted = _paths_field("Gone from the directory.")
    failed = _paths_field("There, and not to be read. Nothing is concluded of them.")
    retried = _paths_field("Failed before, and tried again.")
    reasons = serializers.DictField(
        child=serializers.CharField(),
        help_text="Why, by path: of `failed`, and of `retried` why they failed before.",
    )
    deletions_applied = serializers.BooleanField(
        help_text="Whether the documents of deleted files were removed."
    )
    refused = RefusalSerializer(
        allow_null=True, help_text="In a dry run: what is refused without `dry_run`."
    )


class SyncActions(WorkspaceViewSet):
    """Sync of a collection with a directory of the server."""

    @extend_schema(
        summary="Sync a collection with a directory of the server",
        description=(
            "Every file is read once for comparison; new and modified files are"
            " queued. A missing or suddenly empty directory changes nothing."
        ),
        request=DirectorySyncSerializer,
        responses={200: SyncSerializer, 202: SyncSerializer},
        examples=[examples.SYNC],
    )
    @action(detail=True, methods=["post"])
    @idempotent
    def sync(self, *args: Any, **kwargs: Any) -> Response:
        collection: Collection = self.editable_object()
        values = self.validated(DirectorySyncSerializer)
        result = services.sync_server_directory(
            collection=collection, user=self.request.user, **values
        )
        answer = SyncSerializer(result, context=self.get_serializer_context()).data
        return Response(answer, status=200 if result.run is None else 202)


class CollectionFiltered(WorkspaceViewSet):
    """Rows of collections, whose lists can be filtered by collection."""

    def collection_named(self, slug: str) -> Collection:
        """The workspace's collection; raises NotFound that names those there are."""
        return services.get_collection(workspace=self.workspace, slug=slug)

    def narrowed(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """`rows` filtered by the query string."""
        wanted = {
            name: value
            for name, value in self.parameters.items()
            if name in ("key", "status", "state", "media_type")
        }
        if slug := self.parameters.get("collection"):
            wanted["collection"] = self.collection_named(slug)
        return rows.filter(**wanted)


@extend_schema(tags=["collections"])
class CollectionViewSet(ListModelMixin, RetrieveModelMixin, SyncActions):
    """Documents that are chunked, embedded and searched alike."""

    for_limited_keys = frozenset({"list", "retrieve", "partial_update", "destroy", "sync"})
    summaries = {"list": "List the workspace's collections", "retrieve": "Read a collection"}
    serializer_class = CollectionSerializer
    lookup_field = "slug"
    lookup_value_converter = "slug"
    etag_excluded_fields = frozenset({"document_count"})

    def get_queryset(self) -> QuerySet[Collection]:
        user = self.request.user
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
            .filter(workspace=self.workspace)
            .select_related("space")
            .annotate(document_count=Coalesce(Subquery(counts), 0))
        )

    @extend_schema(
        summary="Create a collection",
        request=api_serializers.NewCollectionSerializer,
        responses={201: CollectionSerializer, 409: ErrorSerializer},
        examples=[examples.NEW_COLLECTION],
    )
    @idempotent
    def create(self, *args: Any, **kwargs: Any) -> Response:
        self.require_editor(self.workspace)
        values = self.validated(api_serializers.NewCollectionSerializer)
        collection = services.create_collection(workspace=self.workspace, **values)
        return self.answer(self.get_queryset().get(pk=collection.pk), status=201)

    @extend_schema(
        summary="Change a collection",
        description="A new language applies to documents that are ingested from then on; a"
        " new value of `graph` applies to all documents at once.",
        request=api_serializers.CollectionChangeSerializer,
        examples=[examples.RENAME],
    )
    def partial_update(self, *args: Any, **kwargs: Any) -> Response:
        collection = self.editable_object()
        values = self.validated(api_serializers.CollectionChangeSerializer, partial=True)
        return self.answer(services.update_collection(collection=collection, **values))

    @extend_schema(summary="Delete a collection with everything in it")
    def destroy(self, *args: Any, **kwargs: Any) -> Response:
        collection = self.editable_object()
        services.delete_collection(collection=collection)
        return Response(status=204)


@extend_schema(tags=["documents"])
class DocumentViewSet(RetrieveModelMixin, CollectionFiltered):
    """Documents: ingested, read, changed, deleted."""

    for_limited_keys = True
    summaries = {"retrieve": "Read a document"}
    serializer_class = DocumentSerializer
    lookup_value_converter = "int"
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
        "list": api_serializers.DocumentFilter,
        "destroy": api_serializers.DocumentDeletion,
        "chunks": ListParameters,
        "edits": ListParameters,
        "page_image": api_serializers.PageImageParameters,
        "changes": ChangesParameters,
    }

    def get_parsers(self) -> list[BaseParser]:
        """Multipart for files, JSON for everything else."""
        # The OpenAPI generator calls this without a request.
        method = self.request.method if self.request else "POST"
        return [JSONParser(), MultiPartParser()] if method == "POST" else [JSONParser()]

    def get_queryset(self) -> QuerySet[Document]:
        """All versions: a superseded one is read by its id."""
        return self.in_workspace(
            Document.objects.visible_to(self.request.user).select_related(
                "collection", "duplicate_of"
            )
        )

    @extend_schema(
        summary="List documents, newest first",
        description="`collection` with `key` finds one document by your own id, and with"
        " `versions=all` all its versions.",
    )
    def list(self, *args: Any, **kwargs: Any) -> Response:
        rows = self.narrowed(self.get_queryset())
        is_all = self.parameters["versions"] == "all"
        return self.page(rows if is_all else rows.filter(is_current=True))

    @extend_schema(
        summary="Add documents",
        description=(
            "As text in JSON, as files in a form, or as the address of a web page"
            " or the path of a directory of the server, if the operator allows"
            " these. They are queued: the answer is the run to watch, and each"
            " file succeeds or fails independently."
        ),
        request={
            "application/json": PolymorphicProxySerializer(
                component_name="NewDocument",
                serializers=[
                    api_serializers.TextDocumentSerializer,
                    PageOfTheWebSerializer,
                    DirectoryOfTheServerSerializer,
                ],
                resource_type_field_name=None,
            ),
            "multipart/form-data": api_serializers.FileUploadSerializer,
        },
        responses={202: RunSerializer},
        examples=[examples.TEXT, examples.FILES, examples.ACCEPTED],
    )
    @idempotent
    def create(self, *args: Any, **kwargs: Any) -> Response:
        self.require_editor(self.workspace)
        is_form = str(self.request.content_type).startswith("multipart/")
        run = self._ingest_files() if is_form else self._ingest_json()
        answer = RunSerializer(run, context=self.get_serializer_context()).data
        return Response(answer, status=202, headers={"Location": answer["url"]})

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
        values = self.validated(api_serializers.TextDocumentSerializer)
        collection = self.collection_named(values.pop("collection"))
        return services.ingest_text(collection=collection, user=user, **values)

    def _ingest_files(self) -> IngestionRun:
        values = self.validated(api_serializers.FileUploadSerializer)
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

    @extend_schema(
        summary="Change a document's title, metadata or access",
        description="Title, metadata and access that are set here take precedence over the"
        " source, also when it is ingested again. Passages are updated at once.",
        request=api_serializers.DocumentInput,
        responses={200: DocumentSerializer, 409: ErrorSerializer, 503: ErrorSerializer},
        examples=[examples.CORRECTION],
    )
    def partial_update(self, *args: Any, **kwargs: Any) -> Response:
        document = self.editable_object()
        values = self.validated(api_serializers.DocumentInput, partial=True)
        services.update_document(document=document, user=self.request.user, **values)
        return self.answer(self.get_object())

    @extend_schema(
        summary="Delete a document",
        description="With all its versions: afterwards no table and no stored file contains"
        " its text. With `versions=this` only this version, if it is superseded.",
    )
    def destroy(self, *args: Any, **kwargs: Any) -> Response:
        document = self.editable_object()
        if self.parameters["versions"] == "this":
            services.delete_version(document=document)
        else:
            services.delete_document(document=document)
        return Response(status=204)

    @extend_schema(
        summary="List a document's chunks in order", responses=ChunkSerializer(many=True)
    )
    @action(detail=True, serializer_class=ChunkSerializer, ordering="ordinal")
    def chunks(self, *args: Any, **kwargs: Any) -> Response:
        document = self.get_object()
        rows = Chunk.objects.visible_to(self.request.user).filter(document=document.text_id)
        return self.page(rows.defer("embedding", "search_vector"))

    @extend_schema(
        summary="List what people changed in a document's passages, newest first",
        responses=EditSerializer(many=True),
    )
    @action(detail=True, serializer_class=EditSerializer)
    def edits(self, *args: Any, **kwargs: Any) -> Response:
        document = self.get_object()
        return self.page(edits_visible_to(self.request.user).filter(document=document.text_id))

    @extend_schema(
        summary="Read what changed between versions",
        description="Paragraphs that were changed, added or removed since the previous"
        " version, or between this document and `other`; changed numbers and"
        " dates come first. Paragraphs that only moved are left out.",
        responses=TextChangesSerializer,
    )
    @action(detail=True, pagination_class=None)
    def changes(self, *args: Any, **kwargs: Any) -> Response:
        other = self.parameters.get("other")
        data = changes_data(self.get_object(), other, user=self.request.user)
        return Response(TextChangesSerializer(data).data)

    @extend_schema(
        summary="Download the original file",
        description="The file as it was uploaded. 404 if it is not stored here: files from"
        " commands and programs are read, but not stored.",
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
    )
    @action(detail=True, content_negotiation_class=StreamNegotiation)
    def file(self, *args: Any, **kwargs: Any) -> FileResponse:
        return services.original_response(self.get_object())

    @extend_schema(
        summary="Show a page",
        description="Picture of page `number` of a PDF, a scan or a picture, counted from 1;"
        " a picture has one page. 404 if there is no such page, or the original"
        " is not stored here. Programs that cache it use `If-None-Match`.",
        responses={(200, "image/webp"): OpenApiTypes.BINARY},
    )
    @action(
        detail=True,
        url_path="pages/<int:number>/image",
        url_name="page-image",
        content_negotiation_class=StreamNegotiation,
    )
    def page_image(self, *args: Any, number: int, **kwargs: Any) -> HttpResponseBase:
        document = self.get_object()
        width = str(self.parameters["width"])
        return image_response(self.request, document, number, width)
