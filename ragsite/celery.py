"""The Celery application; its settings are Django's `CELERY_*`."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_ready, worker_shutdown

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")

app = Celery("ragsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_ready.connect
def serve_models(sender: Any = None, **kwargs: Any) -> None:
    """A worker that embeds documents answers queries too, beside its tasks."""
    if sender is None or "embed" not in sender.app.amqp.queues.consume_from:
        return
    from inference.serving.site import server  # noqa: PLC0415 (Django is set up by now)

    serving = server()
    serving.start()
    worker_shutdown.connect(lambda **kwargs: serving.stop(), weak=False)
