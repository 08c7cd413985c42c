"""What was removed because a quota was used up."""

from django.db import models
from django.utils import timezone

from accounts.models import Workspace
from memory.querysets import RememberedQuerySet
from memory.scopes import MAX_USER_ID_CHARACTERS


class Pruning(models.Model):
    """How many of a user's oldest contexts were removed, and why. It says nothing of what they
    said."""

    class Reason(models.TextChoices):
        USER = "user", "the user's quota"
        WORKSPACE = "workspace", "the workspace's quota"

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user_id = models.CharField("user", max_length=MAX_USER_ID_CHARACTERS)
    reason = models.CharField(max_length=9, choices=Reason)
    rows = models.PositiveIntegerField()
    bytes = models.PositiveBigIntegerField()
    until = models.DateTimeField(help_text="The last one removed was said then.")
    created_at = models.DateTimeField(default=timezone.now)

    objects = RememberedQuerySet["Pruning"].as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["workspace", "user_id", "created_at"], name="pruning_user_index")
        ]

    def __str__(self) -> str:
        return f"Pruning {self.pk}"
