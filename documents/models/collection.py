"""Collections: documents that are cut, embedded and searched alike."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.models import Workspace, WorkspaceOwnedQuerySet
from common.models import TimestampedModel
from documents.models.space import EmbeddingSpace


class Collection(TimestampedModel):
    """A set of documents with one embedding space and one chunker."""

    class Graph(models.TextChoices):
        """How its documents are read for the knowledge graph."""

        OFF = "off"
        RULES = "rules", "by rules"
        LLM = "llm", "by the chat model"

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
        help_text="Spaces that still hold chunks of it while it is re-embedded: searched too.",
    )
    chunker = models.CharField(max_length=20, default="auto")
    chunker_options = models.JSONField(default=dict, blank=True)
    default_language = models.CharField(
        max_length=20,
        blank=True,
        help_text="ISO code, such as “de”. Empty: each document's language is detected.",
    )
    graph = models.CharField(
        max_length=5,
        choices=Graph,
        default=Graph.RULES,
        help_text="How documents are read for what they mention and how it is related.",
    )
    reranker = models.CharField(
        max_length=63,
        blank=True,
        help_text="An entry of RERANKERS that reads the best hits again. Empty: the site's own.",
    )
    rerank_instruction = models.TextField(
        blank=True, help_text="What the reranker is to look for. Empty: what it was trained on."
    )
    fusion = models.JSONField(
        default=dict,
        blank=True,
        help_text="How searches join words and meaning, such as {“method”: “rrf”, “rrf_k”: 60}."
        " Empty: as the site does.",
    )
    facets = ArrayField(
        models.CharField(max_length=200),
        default=list,
        blank=True,
        help_text="Fields of the metadata, such as “author” or “topic.area”, whose values are"
        " counted beside the results. Empty: those that tell the found passages apart best.",
    )
    tuning = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="Weights learnt from judgements, with what they gained. Empty: the defaults.",
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
