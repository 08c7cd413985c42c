"""What contexts and facts have in common: whose they are, and how they are found."""

from typing import Any

from django.db import models
from django.db.models import F, Func
from pgvector.django import VectorField

from accounts.models import Workspace
from common.fields import RegConfigField
from documents.models import EmbeddingSpace
from memory.scopes import MAX_USER_ID_CHARACTERS

#: A text that the model refused so often is found by its words only.
MAX_EMBED_ATTEMPTS = 5


class Origin(models.TextChoices):
    """How it came to be remembered."""

    TURN = "turn", "a turn of a conversation"
    GIVEN = "given", "given by a person or program"
    RULES = "rules", "extracted by rules"
    MODEL = "model", "extracted by a chat model"


class Remembered(models.Model):
    """A row of one user, found by its words at once and by its meaning when it is embedded.

    `space` says which model made `embedding`; both are empty until then.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user_id = models.CharField("user", max_length=MAX_USER_ID_CHARACTERS)
    origin = models.CharField(max_length=5, choices=Origin, default=Origin.GIVEN)
    language = RegConfigField(max_length=63, default="simple")
    space = models.ForeignKey(
        EmbeddingSpace, models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    embedding = VectorField(null=True, blank=True)
    embed_attempts = models.PositiveSmallIntegerField(default=0)

    class Meta:
        abstract = True


class OctetLength(Func):
    """Bytes of a text."""

    function = "octet_length"
    output_field = models.PositiveIntegerField()


def byte_size(*fields: str) -> models.GeneratedField:
    """A stored column: the bytes of these texts together, for quotas."""
    expression: Any = sum((OctetLength(F(name)) for name in fields[1:]), OctetLength(F(fields[0])))
    return models.GeneratedField(
        expression=expression, output_field=models.PositiveIntegerField(), db_persist=True
    )
