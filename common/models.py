"""Base models. Django sends `post_migrate` only to apps with a module of models, and row-level
security is set up then (`common.rls`).
"""

from django.db import models


class TimestampedModel(models.Model):
    """Rows with the times of creation and last change."""

    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
