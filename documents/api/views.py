"""Collections, documents and chunks: each request is handed to the services."""

from typing import Any

from django.db.models import QuerySet
from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework.decorators import action
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.response import Response

from accounts.api import WorkspaceViewSet, once
from common.api import ErrorSerializer
from common.negotiation import ErrorsAsJson
from common.pagination import OrdinalPagination
from common.parsers import JSONParser
from documents import services
from documents.api import examples, inputs, reads
from documents.api.chunks import EditSerializer, edits_seen_by
from documents.api.serializers import (
    ChunkSerializer,
    CollectionSerializer,
    DocumentSerializer,
    RunSerializer,
)
from documents.api.server_files import DirectoryInput, SyncActions, UrlInput, ingest_named
from documents.models import Collection, Document, IngestionRun
from documents.services.originals import sent


class CollectionFiltered(WorkspaceViewSet):
    """Things in collections, which lists can be narrowed by."""

    def collection_named(self, slug: str) -> Collection:
        """The workspace's collection; raises NotFound that names those there are."""
        return services.get_collection(workspace=self.workspace, slug=slug)

    def narrowed(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """`rows` that have what the query string asks for."""
        wanted = {
            name: value
            for name, value in self.parameters.items()
            if name in ("key", "status", "state", "media_type")
        }
        if slug := self.parameters.get("collection"):
            wanted["collection"] = self.collection_named(slug)
        return rows.filter(**wanted)


@extend_schema(tags=["collections"])
class CollectionViewSet(SyncActions):
    """Documents that are cut, embedded and searched alike."""

    serializer_class = CollectionSerializer
    lookup_field = "slug"
    lookup_value_converter = "slug"
    unguarded_fields = frozenset({"document_count"})
    action_parameters = {"list": inputs.CollectionFilter}

    def get_queryset(self) -> QuerySet[Collection]:
        return reads.collections(self.request.user, self.workspace)

    @extend_schema(summary="List the workspace's collections")
    def list(self, *args: Any, **kwargs: Any) -> Response:
        return self.page(self.get_queryset())

    @extend_schema(
        summary="Make a collection",
        request=inputs.NewCollectionInput,
        responses={201: CollectionSerializer, 409: ErrorSerializer},
        examples=[examples.NEW_COLLECTION],
    )
    @once
    def create(self, *args: Any, **kwargs: Any) -> Response:
        self.require_editor(self.workspace)
        values = self.validated(inputs.NewCollectionInput)
        collection = services.create_collection(workspace=self.workspace, **values)
        return self.answer(self.get_queryset().get(pk=collection.pk), status=201)

    @extend_schema(summary="Read a collection")
    def retrieve(self, *args: Any, **kwargs: Any) -> Response:
        return self.answer(self.get_object())

    @extend_schema(
        summary="Change a collection",
        description="A new language holds for documents that are ingested from then on; a new way"
        " of reading for the `graph` for all of them, at once.",
        request=inputs.CollectionInput,
        examples=[examples.RENAME],
    )
    def partial_update(self, *args: Any, **kwargs: Any) -> Response:
        collection = self.get_object()
        self.require_editor(collection.workspace)
        values = self.validated(inputs.CollectionInput, partial=True)
        return self.answer(services.update_collection(collection=collection, **values))

    @extend_schema(summary="Delete a collection with everything in it")
    def destroy(self, *args: Any, **kwargs: Any) -> Response:
        collection = self.get_object()
        self.require_editor(collection.workspace)
        services.delete_collection(collection=collection)
        return Response(status=204)


@extend_schema(tags=["documents"])
class DocumentViewSet(CollectionFiltered):
    """What people brought."""

    serializer_class = DocumentSerializer
    lookup_value_converter = "int"
    # How far its ingestion is.
    unguarded_fields = frozenset(
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
        "list": inputs.DocumentFilter,
        "destroy": inputs.DocumentDeletion,
        "chunks": inputs.ChunkFilter,
        "edits": inputs.EditFilter,
    }

    def get_parsers(self) -> list[BaseParser]:
        """Files come in forms; all else is JSON."""
        # Whoever describes the API asks before there is a request.
        method = self.request.method if self.request else "POST"
        return [JSONParser(), MultiPartParser()] if method == "POST" else [JSONParser()]

    def get_queryset(self) -> QuerySet[Document]:
        """Of any version: a superseded one is read by its id."""
        return self.in_workspace(reads.documents(self.request.user))

    @extend_schema(
        summary="List documents, newest first",
        description="`collection` together with `key` finds one document by your own id, and with"
        " `versions=all` all versions of it.",
    )
    def list(self, *args: Any, **kwargs: Any) -> Response:
        rows = self.narrowed(self.get_queryset())
        is_all = self.parameters["versions"] == "all"
        return self.page(rows if is_all else rows.filter(is_current=True))

    @extend_schema(
        summary="Bring documents",
        description=(
            "As text in JSON, as files in a form, or by naming a page of the web or a directory of"
            " the server, where the operator allows these. They are queued: the answer is the run"
            " to watch, and each file succeeds or fails alone."
        ),
        request={
            "application/json": PolymorphicProxySerializer(
                component_name="NewDocument",
                serializers=[inputs.TextInput, UrlInput, DirectoryInput],
                resource_type_field_name=None,
            ),
            "multipart/form-data": inputs.FilesInput,
        },
        responses={202: RunSerializer},
        examples=[examples.TEXT, examples.FILES, examples.ACCEPTED],
    )
    @once
    def create(self, *args: Any, **kwargs: Any) -> Response:
        self.require_editor(self.workspace)
        is_form = str(self.request.content_type).startswith("multipart/")
        run = self._ingest_files() if is_form else ingest_named(self) or self._ingest_text()
        answer = RunSerializer(run, context=self.get_serializer_context()).data
        return Response(answer, status=202, headers={"Location": answer["url"]})

    def _ingest_text(self) -> IngestionRun:
        values = self.validated(inputs.TextInput)
        collection = self.collection_named(values.pop("collection"))
        return services.ingest_text(collection=collection, user=self.request.user, **values)

    def _ingest_files(self) -> IngestionRun:
        values = self.validated(inputs.FilesInput)
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

    @extend_schema(summary="Read a document")
    def retrieve(self, *args: Any, **kwargs: Any) -> Response:
        return self.answer(self.get_object())

    @extend_schema(
        summary="Change what is said of a document",
        description="Title, metadata and access that are set here go before what the source says,"
        " also when that is ingested again. Passages follow at once.",
        request=inputs.DocumentInput,
        responses={200: DocumentSerializer, 409: ErrorSerializer, 503: ErrorSerializer},
        examples=[examples.CORRECTION],
    )
    def partial_update(self, *args: Any, **kwargs: Any) -> Response:
        document = self.get_object()
        self.require_editor(document.workspace)
        values = self.validated(inputs.DocumentInput, partial=True)
        services.update_document(document=document, user=self.request.user, **values)
        return self.answer(self.get_object())

    @extend_schema(
        summary="Delete a document",
        description="With all its versions: afterwards no table and no stored file holds its text."
        " With `versions=this` only this one, if it is superseded.",
    )
    def destroy(self, *args: Any, **kwargs: Any) -> Response:
        document = self.get_object()
        self.require_editor(document.workspace)
        if self.parameters["versions"] == "this":
            services.delete_version(document=document)
        else:
            services.delete_document(document=document)
        return Response(status=204)

    @extend_schema(
        summary="List a document's chunks in order", responses=ChunkSerializer(many=True)
    )
    @action(detail=True, serializer_class=ChunkSerializer, pagination_class=OrdinalPagination)
    def chunks(self, *args: Any, **kwargs: Any) -> Response:
        return self.page(reads.chunks(self.request.user, self.get_object()))

    @extend_schema(
        summary="List what people changed in a document's passages, newest first",
        responses=EditSerializer(many=True),
    )
    @action(detail=True, serializer_class=EditSerializer)
    def edits(self, *args: Any, **kwargs: Any) -> Response:
        document = self.get_object()
        return self.page(edits_seen_by(self.request.user).filter(document=document.text_id))

    @extend_schema(
        summary="Download the original file",
        description="As it was brought. 404 where it is not stored here: what commands and programs"
        " bring is read and let go.",
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
    )
    @action(detail=True, content_negotiation_class=ErrorsAsJson)
    def file(self, *args: Any, **kwargs: Any) -> FileResponse:
        return sent(services.open_original(self.get_object()))
