"""The inverted index of chunks: posting lists in segments, as search engines keep them, in rows.

`documents/lexical_index.py` writes these tables and tells how they work together.
"""

from django.contrib.postgres.indexes import GinIndex
from django.db import models

from accounts.models import Workspace, WorkspaceOwnedQuerySet
from common.fields import LexemeField, RegConfigField
from documents.models.collection import Collection


class LexicalSegment(models.Model):
    """A batch of a collection's chunks in one language, indexed together and immutable.

    `is_current` segments hold chunks of current versions, the others those of superseded ones.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="lexical_segments")
    language = RegConfigField(max_length=63)
    is_current = models.BooleanField()
    chunk_count = models.PositiveIntegerField(
        help_text="Chunks with words, those since removed among them."
    )
    wordless_count = models.PositiveIntegerField(help_text="Chunks without: vectors alone.")
    total_length = models.PositiveBigIntegerField(help_text="Sum of the chunks' lengths.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WorkspaceOwnedQuerySet["LexicalSegment"].as_manager()

    class Meta:
        verbose_name = "search index segment"

    def __str__(self) -> str:
        return f"{self.collection} · {self.language} · {self.pk}"


class Posting(models.Model):  # noqa: DJ008 (no page shows one)
    """A lexeme's occurrences in the chunks of a segment whose index ids begin with `base`.

    `data` is `common.bm25.pack`'s. The lexeme '' lists all chunks of the segment.
    """

    pk = models.CompositePrimaryKey("segment_id", "lexeme", "base", "workspace_id")
    workspace = models.ForeignKey(
        Workspace, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    segment_id = models.BigIntegerField()
    lexeme = LexemeField()
    base = models.BigIntegerField(help_text="Index id of the block's beginning, by 65,536.")
    data = models.BinaryField()


class PendingChunk(models.Model):  # noqa: DJ008
    """A chunk that is in no segment yet: searches use its search vector."""

    pk = models.CompositePrimaryKey("collection_id", "index_id", "workspace_id")
    workspace = models.ForeignKey(
        Workspace, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    collection_id = models.BigIntegerField()
    index_id = models.BigIntegerField()


class RemovedChunk(models.Model):  # noqa: DJ008
    """An index id without a chunk: searches skip its postings.

    `length` is the chunk's length as its segment counts it.
    """

    pk = models.CompositePrimaryKey("collection_id", "index_id", "workspace_id")
    workspace = models.ForeignKey(
        Workspace, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    collection_id = models.BigIntegerField()
    index_id = models.BigIntegerField()
    language = RegConfigField(max_length=63)
    is_current = models.BooleanField()
    length = models.PositiveIntegerField()


class Lexeme(models.Model):  # noqa: DJ008
    """A lexeme in some segment of a collection: the vocabulary for “did you mean”."""

    pk = models.CompositePrimaryKey("collection_id", "language", "lexeme", "workspace_id")
    workspace = models.ForeignKey(
        Workspace, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    collection_id = models.BigIntegerField()
    language = RegConfigField(max_length=63)
    lexeme = LexemeField()

    class Meta:
        indexes = [
            GinIndex(fields=["lexeme"], opclasses=["gin_trgm_ops"], name="lexeme_similar_index")
        ]
