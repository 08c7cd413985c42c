"""Evaluations: how good a collection's answers were on its golden set, and when."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.models import User, Workspace
from documents.models import Collection
from search.querysets import EvaluatedQuestionQuerySet, EvaluationQuerySet


class Evaluation(models.Model):
    """One measurement of a collection by its judgements, and what it was measured with.

    A row is there before the work begins and is the truth about it: a worker takes it by a lease.
    """

    class Cause(models.TextChoices):
        ASKED = "asked", "asked for"
        JUDGED = "judged", "after judging"
        WEIGHTS = "weights", "other weights or model"
        NIGHTLY = "nightly", "daily"

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(
        User, models.SET_NULL, null=True, blank=True, related_name="+", verbose_name="asked by"
    )
    cause = models.CharField(max_length=7, choices=Cause, default=Cause.ASKED)
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    error_code = models.CharField(max_length=40, blank=True)
    error = models.TextField(blank=True)
    leased_until = models.DateTimeField(null=True, blank=True, editable=False)

    mode = models.CharField(max_length=10, default="hybrid")
    k = models.PositiveSmallIntegerField(default=10, help_text="Depth of nDCG and recall.")
    questions = models.PositiveIntegerField(default=0, help_text="With a good answer.")
    judgements = models.PositiveIntegerField(
        default=0, help_text="All of the collection, when it was measured."
    )
    judged_at = models.DateTimeField(
        null=True, blank=True, help_text="When the newest of them was given."
    )
    documents = models.PositiveIntegerField(default=0)
    chunks = models.PositiveBigIntegerField(default=0)
    tuning = models.JSONField(
        null=True, blank=True, help_text="Weights that were learnt. Empty: the defaults."
    )
    space = models.BigIntegerField(null=True, blank=True, help_text="Id of the embedding space.")
    degraded = ArrayField(
        models.CharField(max_length=20), default=list, blank=True, help_text="What did not work."
    )

    ndcg = models.FloatField(null=True, blank=True, verbose_name="nDCG")
    recall = models.FloatField(null=True, blank=True)
    mrr = models.FloatField(null=True, blank=True, verbose_name="MRR")
    p50_ms = models.FloatField(null=True, blank=True, verbose_name="median time in ms")
    p95_ms = models.FloatField(null=True, blank=True, verbose_name="95 % within ms")

    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = EvaluationQuerySet["Evaluation"].as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            # Whoever asks twice gets the one that waits.
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
        """Whether nothing more will come of it."""
        return self.state in (self.State.DONE, self.State.FAILED)


class EvaluatedQuestion(models.Model):
    """One question of an evaluation and how it was answered.

    Without the question itself, which its judgements hold: what is deleted there is gone here.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    evaluation = models.ForeignKey(Evaluation, models.CASCADE, related_name="rows", db_index=False)
    question_sha256 = models.CharField(max_length=64)
    ndcg = models.FloatField(verbose_name="nDCG")
    recall = models.FloatField()
    first_rank = models.PositiveIntegerField(
        null=True, blank=True, help_text="Of the first good document. Empty: none was found."
    )
    good = models.PositiveIntegerField(help_text="Good documents that there are.")
    found = models.PositiveIntegerField(help_text="Those among the first ones.")

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
        """One divided by the place of the first good document, 0 without."""
        return 1 / self.first_rank if self.first_rank else 0.0
