"""The application of `celery -A ragsite`, and what its workers do beside tasks."""

import os
from typing import Any

from celery.signals import worker_ready, worker_shutdown

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
# Celery would import every page and report nothing; commands check the settings.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")

from common.celery import app

__all__ = ["app"]


@worker_ready.connect
def start_heartbeat(sender: Any = None, **kwargs: Any) -> None:
    """Start the heartbeat by which others see the worker's queues."""
    if sender is None:
        return
    from django.conf import settings  # noqa: PLC0415 (of this worker's process)
    from redis import Redis  # noqa: PLC0415

    from ragsite.presence import WorkerHeartbeat  # noqa: PLC0415

    client = Redis.from_url(settings.REDIS_URL, socket_timeout=5, socket_connect_timeout=5)
    queues = sorted(sender.app.amqp.queues.consume_from)
    presence = WorkerHeartbeat(client, name=sender.hostname, queues=queues)
    presence.start()
    worker_shutdown.connect(lambda **kwargs: presence.stop(), weak=False)


@worker_ready.connect
def serve_models(sender: Any = None, **kwargs: Any) -> None:
    """A worker that embeds documents also answers queries, in threads beside its tasks."""
    if sender is None or "embed" not in sender.app.amqp.queues.consume_from:
        return
    from inference.serving.server import site_server  # noqa: PLC0415 (Django is set up by now)

    serving = site_server()
    serving.start()
    worker_shutdown.connect(lambda **kwargs: serving.stop(), weak=False)
