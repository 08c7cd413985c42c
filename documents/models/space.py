"""Embedding spaces: which model made a vector, and how the vectors are indexed."""

from django.db import models

from common.models import TimestampedModel
from documents.spaces import SpaceSql


class EmbeddingSpace(TimestampedModel):
    """Vectors of one model.

    Every chunk has a space, because vectors of two models cannot be compared. A space has its own
    partial expression index, so that models of different dimensions share one column. Spaces belong
    to the site, not to a workspace.
    """

    class Metric(models.TextChoices):
        COSINE = "cosine", "Cosine"
        L2 = "l2", "L2"
        INNER_PRODUCT = "ip", "Inner product"

    class IndexType(models.TextChoices):
        HNSW = "hnsw", "HNSW"
        IVFFLAT = "ivfflat", "IVFFlat"
        NONE = "none", "None (exact)"

    class Precision(models.TextChoices):
        FULL = "full"
        HALF = "half"
        BINARY = "binary"

    class State(models.TextChoices):
        LIVE = "live"
        RETIRED = "retired"

    name = models.SlugField(max_length=63)
    embedder = models.CharField(
        max_length=63, default="default", help_text="Its alias: “default”, or one of EMBEDDERS."
    )
    model_name = models.CharField(max_length=200)
    dimensions = models.PositiveIntegerField()
    metric = models.CharField(max_length=10, choices=Metric, default=Metric.COSINE)
    query_instruction = models.TextField(blank=True)
    index_type = models.CharField(max_length=10, choices=IndexType, default=IndexType.HNSW)
    index_options = models.JSONField(default=dict, blank=True)
    precision = models.CharField(max_length=10, choices=Precision, default=Precision.FULL)
    state = models.CharField(max_length=10, choices=State, default=State.LIVE)
    is_default = models.BooleanField(
        default=False, verbose_name="default", help_text="New collections use it."
    )

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"],
                condition=models.Q(is_default=True),
                name="embeddingspace_default_unique",
            ),
            models.UniqueConstraint(fields=["name"], name="embeddingspace_name_unique"),
            models.CheckConstraint(
                condition=models.Q(dimensions__gt=0), name="embeddingspace_dimensions_check"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.model_name}, {self.dimensions})"

    @property
    def sql(self) -> SpaceSql:
        """SQL fragments of this space's distance, predicate and index."""
        return SpaceSql(
            space_id=self.pk,
            dimensions=self.dimensions,
            metric=self.metric,
            index_type=self.index_type,
            precision=self.precision,
            options=self.index_options,
        )
