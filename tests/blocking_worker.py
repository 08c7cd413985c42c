"""Ragsite's Celery application with a task that takes as long as a test wants."""

from django.conf import settings
from redis import Redis

from ragsite.celery import app

BEGUN, ENOUGH = "blocking-task:begun", "blocking-task:enough"


@app.task(name="tests.block")
def block() -> None:
    """Says that it has begun and goes on until it is told that it is enough."""
    broker = Redis.from_url(settings.REDIS_URL, socket_timeout=90)
    broker.rpush(BEGUN, "now")
    broker.blpop([ENOUGH], timeout=60)
