"""Judgements: which documents answer a question, and which do not."""

from django.db import models

from accounts.models import User, Workspace
from common.models import TimestampedModel
from documents.models import Chunk, Collection, Document
from search.querysets import JudgementQuerySet


class Judgement(TimestampedModel):
    """What a person thinks of one document as an answer to one question.

    Those of a collection are its golden set: what it is measured by, and learns its weights from.
    It holds no text of the document and goes with it.
    """

    class Grade(models.IntegerChoices):
        """As measures use them: above 0 is relevant, and a higher one more so."""

        PINNED = 2
        GOOD = 1
        BAD = 0

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+", db_index=False)
    question = models.TextField()
    question_sha256 = models.CharField(
        max_length=64, editable=False, help_text="Of the question without regard to case."
    )
    document = models.ForeignKey(Document, models.CASCADE, related_name="+")
    # Without a constraint, which would look here for every chunk that is replaced; the id of one
    # that is gone is never given again.
    chunk = models.ForeignKey(
        Chunk,
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
        verbose_name="passage",
        help_text="The passage that was shown when it was judged.",
    )
    grade = models.PositiveSmallIntegerField(choices=Grade)
    user = models.ForeignKey(
        User, models.SET_NULL, null=True, blank=True, related_name="+", verbose_name="judged by"
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
