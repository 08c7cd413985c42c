"""The Celery application; its settings are Django's `CELERY_*`."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_ready, worker_shutdown
from kombu.exceptions import OperationalError

from ragsite import task_work

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")


class Sender(Celery):
    """Says that the broker is away where kombu says that something is None: so it looks to a
    thread when another one has just closed the connection that both publish on."""

    def send_task(self, *args: Any, **kwargs: Any) -> Any:
        """Raises kombu's OperationalError."""
        try:
            return super().send_task(*args, **kwargs)
        except AttributeError:
            pass  # by now there is another connection
        try:
            return super().send_task(*args, **kwargs)
        except AttributeError as error:
            raise OperationalError("the connection to the broker was closed") from error


app = Sender("ragsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
task_work.connect()


@worker_ready.connect
def show_presence(sender: Any = None, **kwargs: Any) -> None:
    """Others see which queues have a worker."""
    if sender is None:
        return
    from django.conf import settings  # noqa: PLC0415 (of this worker's process)
    from redis import Redis  # noqa: PLC0415

    from ragsite.presence import Presence  # noqa: PLC0415

    client = Redis.from_url(settings.REDIS_URL, socket_timeout=5, socket_connect_timeout=5)
    queues = sorted(sender.app.amqp.queues.consume_from)
    presence = Presence(client, name=sender.hostname, queues=queues)
    presence.start()
    worker_shutdown.connect(lambda **kwargs: presence.stop(), weak=False)


@worker_ready.connect
def serve_models(sender: Any = None, **kwargs: Any) -> None:
    """A worker that embeds documents answers queries too, beside its tasks."""
    if sender is None or "embed" not in sender.app.amqp.queues.consume_from:
        return
    from inference.serving.site import server  # noqa: PLC0415 (Django is set up by now)

    serving = server()
    serving.start()
    worker_shutdown.connect(lambda **kwargs: serving.stop(), weak=False)
