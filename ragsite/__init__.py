"""The project: wiring only. The Celery application is loaded with Django, so that tasks find it."""

from ragsite.celery import app as celery_app

__all__ = ["celery_app"]
