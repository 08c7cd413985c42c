"""Term statistics: what BM25 must know of a collection, kept beside its chunks."""

from django.contrib.postgres.indexes import GinIndex
from django.db import models

from accounts.models import Workspace
from accounts.querysets import WorkspaceOwnedQuerySet
from common.fields import RegConfigField
from documents.models.collection import Collection


class LexicalStatistics(models.Model):
    """Number and mean length of a collection's chunks in one language."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="lexical_statistics")
    language = RegConfigField(max_length=63)
    chunk_count = models.PositiveBigIntegerField()
    average_length = models.FloatField(help_text="Lexemes a chunk.")
    refreshed_at = models.DateTimeField(auto_now=True)

    objects = WorkspaceOwnedQuerySet["LexicalStatistics"].as_manager()

    class Meta:
        verbose_name_plural = "lexical statistics"
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "language", "workspace"],
                name="lexicalstatistics_collection_language_unique",
            )
        ]

    def __str__(self) -> str:
        return f"{self.collection} · {self.language}"


class LexemeFrequency(models.Model):
    """In how many chunks of a collection a lexeme stands."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(
        Collection, models.CASCADE, related_name="lexeme_frequencies", db_index=False
    )
    language = RegConfigField(max_length=63)
    lexeme = models.TextField()
    chunk_count = models.PositiveBigIntegerField()

    objects = WorkspaceOwnedQuerySet["LexemeFrequency"].as_manager()

    class Meta:
        verbose_name_plural = "lexeme frequencies"
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "language", "lexeme", "workspace"],
                name="lexemefrequency_lexeme_unique",
            )
        ]
        # Words that are spelt alike, for “did you mean”.
        indexes = [
            GinIndex(
                fields=["lexeme"],
                opclasses=["gin_trgm_ops"],
                name="lexemefrequency_similar_index",
                fastupdate=False,
            )
        ]

    def __str__(self) -> str:
        return self.lexeme
