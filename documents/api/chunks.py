"""Single passages and their edits over HTTP."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin

from accounts.api import WorkspaceViewSet, operation
from common.serializers import ReadOnlyModelSerializer, StrictSerializer, TextField, UsernameField
from documents import services
from documents.api.serializers import ChunkSerializer
from documents.ingestion.concurrency import share_collection_locks
from documents.models import Chunk, ChunkEdit, Document
from documents.services.chunk_edits import MAX_PASSAGE_CHARACTERS


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

    user = UsernameField(read_only=True, help_text="Who.")
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


class ChunkViewSet(RetrieveModelMixin, WorkspaceViewSet):
    """Passages, read and changed by id."""

    tag = "documents"
    for_limited_keys = True
    nouns = ("passage", "passages")
    queryset = Chunk.objects.defer("embedding", "search_vector")
    serializer_class = OneChunkSerializer
    editors_only = True

    @property
    def asks_model(self) -> bool:  # type: ignore[override]  # known with the request
        """Only changes need the embedder."""
        return self.request.method == "PATCH"

    def locked_rows(self) -> QuerySet[Document]:
        """The document's row, which every change of one of its passages writes."""
        ids = list(
            self.get_queryset().filter(pk=self.kwargs["pk"]).values_list("document", "collection")
        )
        share_collection_locks(
            [collection for _, collection in ids]
        )  # before any row, as everywhere
        return Document.objects.filter(pk__in=[document for document, _ in ids])

    @operation(takes=ChunkInput, errors=(409,))
    def partial_update(self, chunk: Chunk, *, text: str | None = None) -> None:
        """Change a passage.

        Only this passage, and neighbors that contain the changed words, are embedded again. The
        change is kept when the document is ingested again, unless its source has another text there
        by then.
        """
        if text is not None:
            services.edit_chunk(chunk=chunk, text=text, user=self.request.user)


class EditViewSet(RetrieveModelMixin, WorkspaceViewSet):
    """Edits of passages by people."""

    tag = "documents"
    for_limited_keys = True
    nouns = ("change of a passage", "changes of passages")
    serializer_class = EditSerializer
    editors_only = True

    def get_queryset(self) -> QuerySet[ChunkEdit]:
        return self.in_workspace(edits_visible_to(self.request.user))

    @action(detail=True, methods=["post"])
    @operation(errors=(409,))
    def undo(self, edit: ChunkEdit) -> None:
        """Undo a change of a passage."""
        services.undo_edit(edit=edit, user=self.request.user)

    @action(detail=True, methods=["post"])
    @operation(errors=(409,))
    def dismiss(self, edit: ChunkEdit) -> None:
        """Dismiss a change that could not be kept."""
        services.dismiss_edit(edit=edit, user=self.request.user)


def edits_visible_to(user: Any) -> QuerySet[ChunkEdit]:
    """Edits of documents that the user may see, because an edit contains their text."""
    documents = Document.objects.visible_to(user)
    rows = ChunkEdit.objects.visible_to(user).filter(document__in=documents.values("pk"))
    return rows.select_related("user", "workspace")
