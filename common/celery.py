"""The Celery application, configured by Django's `CELERY_*` settings, and logging of its tasks.

Task modules import `app` from here, so that only processes that send or run tasks load Celery.
"""

import logging
from contextvars import ContextVar
from time import perf_counter
from typing import Any

from celery import Celery, Task
from celery.signals import before_task_publish, task_postrun, task_prerun, worker_init
from celery.states import SUCCESS
from django.conf import settings
from kombu.exceptions import OperationalError

from common.logs import NO_CONTEXT, LogContext, current_log_context, set_log_context
from common.shards import MAIN, current_shard, each_shard, on_shard

logger = logging.getLogger("ragsite.tasks")

#: Message header with the request id, passed on to tasks that a task sends.
REQUEST_ID_HEADER = "ragsite_request_id"
#: Message header with the shard that a task works on.
SHARD_HEADER = "ragsite_shard"

_previous: ContextVar[tuple[LogContext, float]] = ContextVar(
    "work_before", default=(NO_CONTEXT, 0.0)
)


class ShardedTask(Task):  # type: ignore[type-arg]  # generic in the stubs alone
    """A task works on the shard that it was sent from. One that the scheduler sends works on each
    shard in turn, and returns the sum of what it did; a shard that does not answer is left out."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        is_here = self.request.called_directly or self.request.is_eager
        if is_here or not settings.DATABASE_SHARDS:
            return self.run(*args, **kwargs)
        shard = getattr(self.request, SHARD_HEADER, None)
        if shard is not None or self.name not in _periodic_tasks():
            with on_shard(shard or MAIN):
                return self.run(*args, **kwargs)
        results = [self.run(*args, **kwargs) for _ in each_shard()]
        return sum(results) if all(isinstance(each, int) for each in results) else None


def _periodic_tasks() -> set[str]:
    return {entry["task"] for entry in app.conf.beat_schedule.values()}


class CeleryApp(Celery):
    """Celery with a clear error where another thread has just closed the shared broker connection,
    for which kombu raises an AttributeError on None.
    """

    def send_task(self, *args: Any, **kwargs: Any) -> Any:
        """Send the task. Raises kombu's OperationalError where the broker is down."""
        try:
            return super().send_task(*args, **kwargs)
        except AttributeError:
            pass  # by now there is another connection
        try:
            return super().send_task(*args, **kwargs)
        except AttributeError as error:
            raise OperationalError("the connection to the broker was closed") from error


app = CeleryApp("ragsite", task_cls=ShardedTask)
app.config_from_object("django.conf:settings", namespace="CELERY")


def send_or_wait(task: Task | str, *args: Any, **options: Any) -> bool:  # type: ignore[type-arg]
    """Send a task, or the one of this name, with the `options` of `apply_async`; False where the
    broker does not answer. Rows say what is to do, and a periodic task finds them later."""
    name = task if isinstance(task, str) else task.name
    try:
        if isinstance(task, str):
            app.send_task(name, args, **options)
        else:
            task.apply_async(args, **options)
    except OperationalError as error:
        logger.warning("the broker does not answer, %s waits for it: %s", name, error)
        return False
    return True


@worker_init.connect
def import_tasks(**kwargs: Any) -> None:
    """Import all task modules. The scheduler sends tasks by name and needs none of them."""
    app.autodiscover_tasks(force=True)


@before_task_publish.connect
def add_origin(headers: dict[str, Any] | None = None, **kwargs: Any) -> None:
    """Add the id of the causing request and its shard to the message."""
    request_id = current_log_context().request_id
    if headers is not None and request_id:
        headers.setdefault(REQUEST_ID_HEADER, request_id)
    if headers is not None and (shard := current_shard()):
        headers.setdefault(SHARD_HEADER, shard)


@task_prerun.connect
def set_task_context(task_id: str = "", task: Any = None, **kwargs: Any) -> None:
    """Attribute what is logged from now on to the task."""
    before = current_log_context()
    _previous.set((before, perf_counter()))
    given = getattr(task.request, REQUEST_ID_HEADER, None)
    request_id = given if isinstance(given, str) else before.request_id
    set_log_context(LogContext(request_id=request_id, task=task.name, task_id=task_id))


@task_postrun.connect
def log_task(state: str | None = None, task: Any = None, retval: Any = None, **kwargs: Any) -> None:
    """Log one line; at DEBUG for a periodic task that found nothing to do."""
    before, began = _previous.get()
    milliseconds = round((perf_counter() - began) * 1000, 1)
    fields: dict[str, Any] = {"state": state or "", "milliseconds": milliseconds}
    if state == SUCCESS and task is not None and task.name in _periodic_tasks() and retval:
        fields["count"] = retval
        message, level = f"{task.name} did {retval}", logging.INFO
    else:
        message, level = fields["state"], logging.DEBUG
    logger.log(level, "%s in %.1f ms", message, milliseconds, extra={"fields": fields})
    set_log_context(before)
