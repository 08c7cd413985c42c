"""Single passages and their edits over HTTP."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.response import Response

from accounts.api import WorkspaceViewSet
from common.api import ErrorSerializer
from common.openapi import load_examples
from common.serializers import ReadOnlyModelSerializer, StrictSerializer, TextField
from documents import services
from documents.api.serializers import ChunkSerializer
from documents.ingestion.concurrency import share_collection_locks
from documents.models import Chunk, ChunkEdit, Document
from documents.services.chunk_edits import MAX_PASSAGE_CHARACTERS

examples = load_examples("documents.api")


class OneChunkSerializer(ChunkSerializer):
    """A passage with its document and content hash."""

    document = serializers.PrimaryKeyRelatedField[Document](read_only=True)

    class Meta(ChunkSerializer.Meta):
        fields = [*ChunkSerializer.Meta.fields, "document", "content_sha256"]
        extra_kwargs = {
            **ChunkSerializer.Meta.extra_kwargs,
            "content_sha256": {"help_text": "Of its context and text: changes with them."},
        }


class ChunkInput(StrictSerializer):
    """The new text of a passage."""

    text = TextField(
        max_length=MAX_PASSAGE_CHARACTERS,
        help_text="Leading and trailing white space is kept. With title and headings the"
        " text may have as many tokens as the model reads at once.",
    )


class EditSerializer(ReadOnlyModelSerializer[ChunkEdit]):
    """One change of one passage by a person."""

    user = serializers.CharField(
        source="user.username", default=None, read_only=True, allow_null=True, help_text="Who."
    )
    chunk = serializers.IntegerField(help_text="Id of the passage, which may have been deleted.")

    class Meta:
        model = ChunkEdit
        fields = ["id", "document", "chunk", "state", "before", "after", "user", "created_at"]
        extra_kwargs = {
            "state": {
                "help_text": "`applied`: it holds. `conflict`: the source was ingested again and"
                " says something else there. `undone` by a person. `closed`: dismissed, or the"
                " source says so itself by now."
            }
        }


@extend_schema(tags=["documents"])
class ChunkViewSet(RetrieveModelMixin, WorkspaceViewSet):
    """Passages, read and changed by id."""

    for_limited_keys = True
    summaries = {"retrieve": "Read a passage"}
    serializer_class = OneChunkSerializer
    lookup_value_converter = "int"

    @property
    def asks_model(self) -> bool:  # type: ignore[override]  # known with the request
        """Only changes need the embedder."""
        return self.request.method == "PATCH"

    def get_queryset(self) -> QuerySet[Chunk]:
        rows = Chunk.objects.visible_to(self.request.user).defer("embedding", "search_vector")
        return self.in_workspace(rows)

    def locked_rows(self) -> QuerySet[Document]:
        """The document's row, which every change of one of its passages writes."""
        ids = list(
            self.get_queryset().filter(pk=self.kwargs["pk"]).values_list("document", "collection")
        )
        share_collection_locks(
            [collection for _, collection in ids]
        )  # before any row, as everywhere
        return Document.objects.filter(pk__in=[document for document, _ in ids])

    @extend_schema(
        summary="Change a passage",
        description="Only this passage, and neighbors that contain the changed words, are"
        " embedded again. The change is kept when the document is ingested again,"
        " unless its source has another text there by then.",
        request=ChunkInput,
        responses={200: OneChunkSerializer, 409: ErrorSerializer, 503: ErrorSerializer},
        examples=[examples.PASSAGE],
    )
    def partial_update(self, *args: Any, **kwargs: Any) -> Response:
        chunk = self.editable_object()
        values = self.validated(ChunkInput, partial=True)
        if "text" in values:
            services.edit_chunk(chunk=chunk, text=values["text"], user=self.request.user)
        return self.answer(self.get_object())


@extend_schema(tags=["documents"])
class EditViewSet(RetrieveModelMixin, WorkspaceViewSet):
    """Edits of passages by people."""

    for_limited_keys = True
    summaries = {"retrieve": "Read a change of a passage"}
    serializer_class = EditSerializer
    lookup_value_converter = "int"

    def get_queryset(self) -> QuerySet[ChunkEdit]:
        return self.in_workspace(edits_visible_to(self.request.user))

    @extend_schema(
        summary="Undo a change of a passage",
        request=None,
        responses={200: EditSerializer, 409: ErrorSerializer, 503: ErrorSerializer},
    )
    @action(detail=True, methods=["post"])
    def undo(self, *args: Any, **kwargs: Any) -> Response:
        edit = self.editable_object()
        services.undo_edit(edit=edit, user=self.request.user)
        return self.answer(self.get_object())

    @extend_schema(
        summary="Dismiss a change that could not be kept",
        request=None,
        responses={200: EditSerializer, 409: ErrorSerializer},
    )
    @action(detail=True, methods=["post"])
    def dismiss(self, *args: Any, **kwargs: Any) -> Response:
        edit = self.editable_object()
        services.dismiss_edit(edit=edit, user=self.request.user)
        return self.answer(self.get_object())


def edits_visible_to(user: Any) -> QuerySet[ChunkEdit]:
    """Edits of documents that the user may see, because an edit contains their text."""
    documents = Document.objects.visible_to(user)
    rows = ChunkEdit.objects.visible_to(user).filter(document__in=documents.values("pk"))
    return rows.select_related("user", "workspace")
