"""Connections to models of servers, and which of them answers in a workspace."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy

from accounts.models import User, Workspace, WorkspaceOwnedQuerySet
from common.models import TimestampedModel


class ModelConnection(TimestampedModel):
    """A model of a server: the site's, or that of one workspace whose owner brought the key."""

    class Purpose(models.TextChoices):
        """As `inference.model_registry` calls the kinds of models."""

        CHAT = "chat", gettext_lazy("Answers")
        EMBEDDER = "embedder", gettext_lazy("Search by meaning")
        RERANKER = "reranker", gettext_lazy("Reranking")

    class Kind(models.TextChoices):
        OLLAMA = "ollama", "Ollama"
        OPENAI = "openai", "OpenAI-compatible"
        ANTHROPIC = "anthropic", "Anthropic"

    workspace = models.ForeignKey(
        Workspace,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="Whose it is. Empty: the site's.",
    )
    purpose = models.CharField(
        max_length=20,
        choices=Purpose,
        default=Purpose.CHAT,
        db_default=Purpose.CHAT,
        help_text="What the model is for.",
    )
    name = models.CharField(max_length=200, help_text="By which people choose it.")
    kind = models.CharField(max_length=20, choices=Kind, help_text="The protocol of its server.")
    address = models.CharField(max_length=500)
    model = models.CharField(max_length=200, help_text="As the server calls it.")
    credentials = models.BinaryField(
        default=bytes, editable=False, help_text="The key of the server, encrypted."
    )
    context_tokens = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Into which prompts fit. Ollama: empty for 8,192; others report theirs.",
    )
    input_price = models.FloatField(
        null=True, blank=True, help_text="Of a million tokens that it reads."
    )
    output_price = models.FloatField(
        null=True, blank=True, help_text="Of a million tokens that it writes."
    )
    dimensions = models.PositiveIntegerField(
        null=True, blank=True, help_text="Of an embedder: the length of its vectors."
    )
    is_default = models.BooleanField(
        default=False,
        help_text="It answers, or reranks, on the site where nothing else is chosen. Which embedder"
        " is the default is kept with the embedding spaces.",
    )
    workspaces = ArrayField(
        models.BigIntegerField(),
        null=True,
        blank=True,
        help_text="Ids of the workspaces that may use it. Empty: all.",
    )

    objects = WorkspaceOwnedQuerySet["ModelConnection"].as_manager()

    class Meta:
        ordering = ["name", "id"]
        verbose_name = "model connection"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "name"],
                name="modelconnection_name_unique",
                nulls_distinct=False,
            ),
            models.UniqueConstraint(
                fields=["purpose"],
                condition=models.Q(is_default=True),
                name="modelconnection_purpose_default_unique",
            ),
            models.CheckConstraint(
                condition=models.Q(is_default=False) | models.Q(workspace=None, workspaces=None),
                name="modelconnection_default_check",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def alias(self) -> str:
        """By which settings of collections and embedding spaces name it, whatever it is called."""
        return self.name if self.purpose == self.Purpose.CHAT else f"connection-{self.pk}"

    @property
    def has_key(self) -> bool:
        return bool(self.credentials)


class WorkspaceModel(TimestampedModel):
    """The connected model that answers in a workspace instead of the site's default."""

    workspace = models.OneToOneField(Workspace, models.CASCADE, related_name="+")
    connection = models.ForeignKey(ModelConnection, models.CASCADE, related_name="choices")

    objects = WorkspaceOwnedQuerySet["WorkspaceModel"].as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = "model of a workspace"
        verbose_name_plural = "models of workspaces"

    def __str__(self) -> str:
        return f"{self.connection} in {self.workspace}"


class ModelUsage(models.Model):
    """What a language model read and wrote on one day, in a workspace, for one user and purpose."""

    class Purpose(models.TextChoices):
        ANSWER = "answer", gettext_lazy("Answers")
        CHAT = "chat", gettext_lazy("Chats without documents")
        PIPELINE = "pipeline", gettext_lazy("Pipelines")
        SUMMARY = "summary", gettext_lazy("Summaries")
        GRAPH = "graph", gettext_lazy("Graph")
        MEMORY = "memory", gettext_lazy("Memory")
        TABLES = "tables", gettext_lazy("Questions to tables")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    # The number of a deleted user stays: a sum must not change when somebody leaves.
    user = models.ForeignKey(
        User,
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
        help_text="Empty: the site itself, as for the graph.",
    )
    model = models.CharField(max_length=200, help_text="As its server calls it.")
    purpose = models.CharField(max_length=10, choices=Purpose)
    day = models.DateField()
    calls = models.PositiveIntegerField()
    estimated_calls = models.PositiveIntegerField(
        help_text="Calls of which the server did not say how many tokens they took."
    )
    input_tokens = models.PositiveBigIntegerField()
    output_tokens = models.PositiveBigIntegerField()
    cost = models.FloatField(
        null=True, blank=True, help_text="Of the calls of models with a price."
    )

    objects = WorkspaceOwnedQuerySet["ModelUsage"].as_manager()

    class Meta:
        ordering = ["-day", "id"]
        verbose_name = "usage of a model"
        verbose_name_plural = "usage of models"
        constraints = [
            models.UniqueConstraint(
                fields=["day", "workspace", "user", "model", "purpose"],
                name="modelusage_day_workspace_user_model_purpose_unique",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.model}, {self.day}"
