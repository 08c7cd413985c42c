"""The tables of searching: what was asked, what people think of the answers, how good they are."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.utils.translation import gettext_lazy, gettext_noop

from accounts.models import User, Workspace
from common.models import TimestampedModel
from documents.models import Chunk, Collection, Document
from search.querysets import (
    EvaluatedQuestionQuerySet,
    EvaluationQuerySet,
    JudgementQuerySet,
    SavedSearchQuerySet,
    SearchLogQuerySet,
)


class Judgement(TimestampedModel):
    """A person's grade of one document as an answer to one question.

    The judgements of a collection are its golden set: the basis of evaluation and learned
    weights. Deleted with the document, of which it holds no text.
    """

    class Grade(models.IntegerChoices):
        """As in relevance measures: above 0 is relevant."""

        PINNED = 2, gettext_lazy("Pinned")
        GOOD = 1, gettext_lazy("Good")
        BAD = 0, gettext_lazy("Bad")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+", db_index=False)
    question = models.TextField()
    question_sha256 = models.CharField(
        max_length=64,
        editable=False,
        help_text=gettext_lazy("Of the question without regard to case."),
    )
    document = models.ForeignKey(Document, models.CASCADE, related_name="+")
    # Without a constraint, which would be checked for every replaced chunk; ids are never reused.
    chunk = models.ForeignKey(
        Chunk,
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
        verbose_name="passage",
        help_text=gettext_lazy("The passage that was shown when it was judged."),
    )
    grade = models.PositiveSmallIntegerField(choices=Grade)
    user = models.ForeignKey(
        User,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=gettext_lazy("judged by"),
    )
    note = models.TextField(blank=True)

    objects = JudgementQuerySet["Judgement"].as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "question_sha256", "document", "workspace"],
                name="judgement_question_document_unique",
            ),
            models.CheckConstraint(
                condition=models.Q(grade__in=[0, 1, 2]), name="judgement_grade_check"
            ),
        ]
        indexes = [models.Index(fields=["workspace"], name="judgement_workspace_index")]

    def __str__(self) -> str:
        return f"{self.get_grade_display()}: {self.question}"


class Evaluation(models.Model):
    """One measurement of a collection by its judgements, with the settings measured.

    The row exists before the work begins; a worker takes it by a lease.
    """

    class Cause(models.TextChoices):
        ASKED = "asked", gettext_lazy("asked for")
        JUDGED = "judged", gettext_lazy("after judging")
        WEIGHTS = "weights", gettext_lazy("other weights or model")
        NIGHTLY = "nightly", "daily"

    class State(models.TextChoices):
        WAITING = "waiting", gettext_lazy("Waiting")
        RUNNING = "running", gettext_lazy("Running")
        DONE = "done", gettext_lazy("Done")
        FAILED = "failed", gettext_lazy("Failed")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(
        User,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=gettext_lazy("asked by"),
    )
    cause = models.CharField(max_length=7, choices=Cause, default=Cause.ASKED)
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    error_code = models.CharField(max_length=40, blank=True)
    error = models.TextField(blank=True)
    leased_until = models.DateTimeField(null=True, blank=True, editable=False)

    mode = models.CharField(max_length=10, default="hybrid")
    k = models.PositiveSmallIntegerField(
        default=10, help_text=gettext_lazy("Depth of nDCG and recall.")
    )
    questions = models.PositiveIntegerField(
        default=0, help_text=gettext_lazy("With a good answer.")
    )
    judgements = models.PositiveIntegerField(
        default=0, help_text=gettext_lazy("All of the collection, when it was measured.")
    )
    judged_at = models.DateTimeField(
        null=True, blank=True, help_text=gettext_lazy("When the newest of them was given.")
    )
    documents = models.PositiveIntegerField(default=0)
    chunks = models.PositiveBigIntegerField(default=0)
    tuning = models.JSONField(
        null=True,
        blank=True,
        help_text=gettext_lazy("Weights that were learnt. Empty: the defaults."),
    )
    space = models.BigIntegerField(
        null=True, blank=True, help_text=gettext_lazy("Id of the embedding space.")
    )
    degraded = ArrayField(
        models.CharField(max_length=20),
        default=list,
        blank=True,
        help_text=gettext_lazy("What did not work."),
    )

    ndcg = models.FloatField(null=True, blank=True, verbose_name="nDCG")
    recall = models.FloatField(null=True, blank=True)
    mrr = models.FloatField(null=True, blank=True, verbose_name="MRR")
    p50_ms = models.FloatField(
        null=True, blank=True, verbose_name=gettext_lazy("median time in ms")
    )
    p95_ms = models.FloatField(null=True, blank=True, verbose_name=gettext_lazy("95 % within ms"))

    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = EvaluationQuerySet["Evaluation"].as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            # One waiting evaluation per collection.
            models.UniqueConstraint(
                fields=["collection", "workspace"],
                condition=models.Q(state="waiting"),
                name="evaluation_waiting_unique",
            ),
        ]
        indexes = [
            models.Index(fields=["collection", "-id"], name="evaluation_collection_index"),
            models.Index(fields=["workspace", "created_at"], name="evaluation_workspace_index"),
        ]

    def __str__(self) -> str:
        return f"Evaluation {self.pk}"

    @property
    def is_over(self) -> bool:
        """Whether it has finished or failed."""
        return self.state in (self.State.DONE, self.State.FAILED)


class EvaluatedQuestion(models.Model):
    """One question of an evaluation with its measures.

    The question's text is with the judgements: deleted there, it is gone here.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    evaluation = models.ForeignKey(Evaluation, models.CASCADE, related_name="rows", db_index=False)
    question_sha256 = models.CharField(max_length=64)
    ndcg = models.FloatField(verbose_name="nDCG")
    recall = models.FloatField()
    first_rank = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text=gettext_lazy("Of the first good document. Empty: none was found."),
    )
    good = models.PositiveIntegerField(help_text=gettext_lazy("Good documents that there are."))
    found = models.PositiveIntegerField(help_text=gettext_lazy("Those among the first ones."))

    objects = EvaluatedQuestionQuerySet["EvaluatedQuestion"].as_manager()

    class Meta:
        ordering = ["evaluation", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["evaluation", "question_sha256", "workspace"],
                name="evaluatedquestion_question_unique",
            ),
        ]
        indexes = [models.Index(fields=["workspace"], name="evaluatedquestion_ws_index")]

    def __str__(self) -> str:
        return f"Question {self.pk} of evaluation {self.evaluation_id}"

    @property
    def reciprocal_rank(self) -> float:
        """1 / rank of the first relevant document, 0 without one."""
        return 1 / self.first_rank if self.first_rank else 0.0


class SearchLog(models.Model):
    """One search and how it went, without any document text.

    Deletions reach it: rows are deleted with their user or workspace, ids of documents and
    collections removed by triggers (migration 0001). Searches of deleted collections only are
    deleted too.
    """

    class Source(models.TextChoices):
        WEB = "web", gettext_lazy("Web")
        API = "api", "API"
        COMMAND = "command", gettext_lazy("Command")
        CHAT = "chat", gettext_lazy("Chat")

    class Confidence(models.TextChoices):
        HIGH = "high", gettext_lazy("Sure")
        LOW = "low", gettext_lazy("Not sure")
        NONE = "none", gettext_lazy("No answer")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(User, models.CASCADE, null=True, blank=True, related_name="+")
    query = models.TextField(verbose_name="question")
    mode = models.CharField(max_length=10)
    filter = models.JSONField(
        null=True, blank=True, help_text=gettext_lazy("In JSON form. Empty: none.")
    )
    collections = ArrayField(
        models.BigIntegerField(),
        default=list,
        help_text=gettext_lazy("Ids of those that were searched."),
    )
    documents = ArrayField(
        models.BigIntegerField(),
        default=list,
        help_text=gettext_lazy("Ids of the best ones found, in order."),
    )
    total = models.PositiveIntegerField(help_text=gettext_lazy("Hits that were ranked."))
    lexical_total = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text=gettext_lazy("Passages found by words. Empty: words did not count."),
    )
    similarity = models.FloatField(
        null=True,
        blank=True,
        help_text=gettext_lazy("Of the nearest hit, −1 to 1. Empty: not known."),
    )
    refused = models.BooleanField(
        default=False,
        help_text=gettext_lazy("Asked in a chat, and answered that the sources do not say."),
    )
    confidence = models.CharField(  # noqa: DJ001 (a column that an earlier release leaves out)
        max_length=4,
        null=True,
        blank=True,
        choices=Confidence,
        help_text=gettext_lazy("Of the answer to a question. Empty: a search, or an old row."),
    )
    degraded = ArrayField(
        models.CharField(max_length=20),
        default=list,
        help_text=gettext_lazy("What should have worked."),
    )
    tables = ArrayField(
        models.BigIntegerField(),
        null=True,
        blank=True,
        help_text=gettext_lazy("Ids of those that the answer was computed from. Empty: quoted."),
    )
    milliseconds = models.FloatField()
    source = models.CharField(max_length=10, choices=Source)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SearchLogQuerySet["SearchLog"].as_manager()

    class Meta:
        verbose_name = gettext_noop("logged search")
        verbose_name_plural = gettext_noop("logged searches")
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["created_at"], name="searchlog_created_at_index"),
            models.Index(fields=["workspace", "created_at"], name="searchlog_workspace_index"),
            models.Index(
                fields=["workspace", "created_at"],
                condition=models.Q(total=0) | models.Q(refused=True),
                name="searchlog_found_nothing_index",
            ),
            GinIndex(fields=["documents"], name="searchlog_documents_index"),
        ]

    def __str__(self) -> str:
        return self.query


class SavedSearch(TimestampedModel):
    """A saved search of one user: `parameters` is the query string of the search page."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    name = models.CharField(max_length=100)
    parameters = models.TextField()

    objects = SavedSearchQuerySet["SavedSearch"].as_manager()

    class Meta:
        ordering = ["name", "id"]
        verbose_name_plural = gettext_noop("saved searches")
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "user", "name"], name="savedsearch_name_unique"
            )
        ]

    def __str__(self) -> str:
        return self.name


__all__ = ["EvaluatedQuestion", "Evaluation", "Judgement", "SavedSearch", "SearchLog"]
