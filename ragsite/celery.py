"""The application of `celery -A ragsite`, and what its workers do beside tasks."""

import logging
import os
import threading
from typing import Any

from celery.beat import Service
from celery.bootsteps import StartStopStep
from celery.signals import worker_ready, worker_shutdown
from click import Option

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
# Celery would import every page and report nothing; commands check the settings.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")

from common.celery import app

__all__ = ["app"]

logger = logging.getLogger("ragsite")

#: Longest sleep of a scheduler in a worker, which ends no later than this.
_TICK_SECONDS = 1
_RESTART_SECONDS = 10.0


class SchedulerThread(threading.Thread):
    """Celery's beat in a thread of a worker. Begins again after an error."""

    def __init__(self, schedule_filename: str | None) -> None:
        super().__init__(name="scheduler", daemon=True)
        self._schedule_filename = schedule_filename
        self._service = self._make_service()
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.is_set():
            self._service = self._make_service()
            try:
                self._service.start()
            except Exception:
                logger.exception("the scheduler failed; it starts again")
                self._stopping.wait(_RESTART_SECONDS)

    def stop(self) -> None:
        """Save the schedule and end."""
        self._stopping.set()
        self._service.stop()
        self.join(timeout=5 * _TICK_SECONDS)

    def _make_service(self) -> Service:
        return Service(app, max_interval=_TICK_SECONDS, schedule_filename=self._schedule_filename)

    terminate = stop


class SchedulerStep(StartStopStep):
    """`celery worker --scheduler-thread`. Celery's own `--beat` forks a process, which outlives a
    worker that is killed."""

    def __init__(self, worker: Any, scheduler_thread: bool = False, **options: Any) -> None:
        super().__init__(worker, **options)
        self.enabled = scheduler_thread

    def create(self, worker: Any) -> SchedulerThread:  # type: ignore[override]  # wrong stubs
        return SchedulerThread(worker.schedule_filename)


app.steps["worker"].add(SchedulerStep)
app.user_options["worker"].add(
    Option(["--scheduler-thread"], is_flag=True, help="Run the scheduler (beat) in this worker.")
)


@worker_ready.connect
def start_heartbeat(sender: Any = None, **kwargs: Any) -> None:
    """Start the heartbeat by which others see the worker's queues; give idle memory back."""
    if sender is None:
        return
    from django.conf import settings  # noqa: PLC0415 (of this worker's process)
    from redis import Redis  # noqa: PLC0415

    from ragsite import idle_memory  # noqa: PLC0415
    from ragsite.presence import WorkerHeartbeat  # noqa: PLC0415

    idle_memory.start()
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
