"""Base models."""

from django.db import models


class TimestampedModel(models.Model):
    """Rows that say when they were made and last changed."""

    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
