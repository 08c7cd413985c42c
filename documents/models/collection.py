"""Collections: documents that are cut, embedded and searched alike; and their embedding spaces:
which model made a vector, and how the vectors are indexed."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext, gettext_lazy

from accounts.models import Workspace, WorkspaceOwnedQuerySet
from common import features
from common.models import TimestampedModel
from documents.spaces import SpaceSql
from inference.model_languages import model_languages
from inference.model_registry import alias_of


class EmbeddingSpace(TimestampedModel):
    """Vectors of one model.

    Every chunk has a space, because vectors of two models cannot be compared. A space has its own
    partial expression index, so that models of different dimensions share one column. Spaces belong
    to the site, not to a workspace.
    """

    class Metric(models.TextChoices):
        COSINE = "cosine", gettext_lazy("Cosine")
        L2 = "l2", "L2"
        INNER_PRODUCT = "ip", gettext_lazy("Inner product")

    class IndexType(models.TextChoices):
        HNSW = "hnsw", "HNSW"
        IVFFLAT = "ivfflat", "IVFFlat"
        NONE = "none", gettext_lazy("None (exact)")

    class Precision(models.TextChoices):
        FULL = "full", gettext_lazy("Full")
        HALF = "half", gettext_lazy("Half")
        BINARY = "binary", gettext_lazy("Binary")

    class State(models.TextChoices):
        LIVE = "live", gettext_lazy("Live")
        RETIRED = "retired", gettext_lazy("Retired")

    name = models.SlugField(max_length=63)
    embedder = models.CharField(
        max_length=63,
        default="default",
        help_text=gettext_lazy("Its alias: “default”, or one of EMBEDDERS."),
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
        default=False, verbose_name="default", help_text=gettext_lazy("New collections use it.")
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
    def languages(self) -> frozenset[str]:
        """ISO codes that its model was made for; `EVERY` for many, empty where unknown."""
        return model_languages(alias_of(self.embedder, self.model_name), self.model_name)

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


class Collection(TimestampedModel):
    """A set of documents with one embedding space and one chunker."""

    class Graph(models.TextChoices):
        """How its documents are read for the knowledge graph."""

        OFF = "off", gettext_lazy("Off")
        RULES = "rules", gettext_lazy("by rules")
        LLM = "llm", gettext_lazy("by the chat model")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="collections")
    slug = models.SlugField(max_length=63)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    space = models.ForeignKey(EmbeddingSpace, models.PROTECT, related_name="collections")
    former_spaces = ArrayField(
        models.BigIntegerField(),
        default=list,
        blank=True,
        editable=False,
        help_text=gettext_lazy(
            "Spaces that still hold chunks of it while it is re-embedded: searched too."
        ),
    )
    automatic_model = models.BooleanField(
        default=True,
        db_default=True,
        verbose_name=gettext_lazy("model by language"),
        help_text=gettext_lazy(
            "The languages of its documents choose the model. Off where somebody chose one, or"
            " stores vectors of it: that one stays."
        ),
    )
    vectors = models.BooleanField(
        default=True,
        db_default=True,
        help_text=gettext_lazy(
            "Whether its passages are embedded and found by meaning, or by words only. Vectors that"
            " are there are kept."
        ),
    )
    chunker = models.CharField(max_length=20, default="auto")
    chunker_options = models.JSONField(default=dict, blank=True)
    default_language = models.CharField(
        max_length=20,
        blank=True,
        help_text=gettext_lazy(
            "ISO code, such as “de”. Empty: each document's language is detected."
        ),
    )
    graph = models.CharField(
        max_length=5,
        choices=Graph,
        default=Graph.RULES,
        help_text=gettext_lazy(
            "How documents are read for what they mention and how it is related."
        ),
    )
    reranker = models.CharField(
        max_length=63,
        blank=True,
        help_text=gettext_lazy(
            "An entry of RERANKERS that reads the best hits again. Empty: the site's own."
        ),
    )
    rerank_instruction = models.TextField(
        blank=True,
        help_text=gettext_lazy("What the reranker is to look for. Empty: what it was trained on."),
    )
    fusion = models.JSONField(
        default=dict,
        blank=True,
        help_text=gettext_lazy(
            "How searches join words and meaning, such as {“method”: “rrf”, “rrf_k”: 60}."
            " Empty: as the site does."
        ),
    )
    facets = ArrayField(
        models.CharField(max_length=200),
        default=list,
        blank=True,
        help_text=gettext_lazy(
            "Fields of the metadata, such as “author” or “topic.area”, whose values are"
            " counted beside the results. Empty: those that tell the found passages apart best."
        ),
    )
    tuning = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text=gettext_lazy(
            "Weights learnt from judgements, with what they gained. Empty: the defaults."
        ),
    )

    objects = WorkspaceOwnedQuerySet["Collection"].as_manager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "slug"], name="collection_workspace_slug_unique"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def has_vectors(self) -> bool:
        """Whether its passages are embedded and found by meaning."""
        return self.vectors and features.is_on("vectors")

    def require_vectors(self) -> None:
        """Raise SwitchedOff where it has none."""
        features.require("vectors")
        if not self.vectors:
            raise features.SwitchedOff(
                gettext(
                    "Vectors of “{slug}” are switched off. Search it by words, or switch them on"
                    " on its page."
                ).format(slug=self.slug)
            )
