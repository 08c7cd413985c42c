"""The Celery application, configured by Django's `CELERY_*` settings, and logging of its tasks.

Task modules import `app` from here, so that only processes that send or run tasks load Celery.
"""

import logging
from contextvars import ContextVar
from time import perf_counter
from typing import Any

from celery import Celery
from celery.signals import before_task_publish, task_postrun, task_prerun, worker_init
from celery.states import SUCCESS
from kombu.exceptions import OperationalError

from common.logs import NO_CONTEXT, LogContext, current_log_context, set_log_context

logger = logging.getLogger("ragsite.tasks")

#: Message header with the request id, passed on to tasks that a task sends.
REQUEST_ID_HEADER = "ragsite_request_id"

_previous: ContextVar[tuple[LogContext, float]] = ContextVar(
    "work_before", default=(NO_CONTEXT, 0.0)
)


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


app = CeleryApp("ragsite")
app.config_from_object("django.conf:settings", namespace="CELERY")


@worker_init.connect
def import_tasks(**kwargs: Any) -> None:
    """Import all task modules. The scheduler sends tasks by name and needs none of them."""
    app.autodiscover_tasks(force=True)


@before_task_publish.connect
def add_request_id(headers: dict[str, Any] | None = None, **kwargs: Any) -> None:
    """Add the id of the causing request to the message."""
    request_id = current_log_context().request_id
    if headers is not None and request_id:
        headers.setdefault(REQUEST_ID_HEADER, request_id)


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
    periodic = {entry["task"] for entry in app.conf.beat_schedule.values()}
    if state == SUCCESS and task is not None and task.name in periodic and retval:
        fields["count"] = retval
        message, level = f"{task.name} did {retval}", logging.INFO
    else:
        message, level = fields["state"], logging.DEBUG
    logger.log(level, "%s in %.1f ms", message, milliseconds, extra={"fields": fields})
    set_log_context(before)
