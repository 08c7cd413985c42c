"""The Celery application, whose settings are Django's `CELERY_*`, and what is logged of its tasks:
they are known by their id, their name and the request that caused them.

Modules of tasks take `app` from here, so that only who sends or runs a task loads Celery.
"""

import logging
from contextvars import ContextVar
from functools import cache
from time import perf_counter
from typing import Any

from celery import Celery
from celery.signals import before_task_publish, task_postrun, task_prerun, worker_init
from celery.states import SUCCESS
from kombu.exceptions import OperationalError

from common.logs.context import NOTHING, Work, begin, current_work

logger = logging.getLogger("ragsite.tasks")

#: Of a message. It goes on to the tasks that a task sends.
HEADER = "ragsite_request_id"

_before: ContextVar[tuple[Work, float]] = ContextVar("work_before", default=(NOTHING, 0.0))


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


@worker_init.connect
def find_tasks(**kwargs: Any) -> None:
    """Import the modules of tasks, and all that they work with. The scheduler sends them by name
    and needs none of it."""
    app.autodiscover_tasks(force=True)


@before_task_publish.connect
def name_request(headers: dict[str, Any] | None = None, **kwargs: Any) -> None:
    """Say in the message which request it comes from."""
    request_id = current_work().request_id
    if headers is not None and request_id:
        headers.setdefault(HEADER, request_id)


@task_prerun.connect
def begin_task(task_id: str = "", task: Any = None, **kwargs: Any) -> None:
    """What is logged from here on belongs to the task."""
    before = current_work()
    _before.set((before, perf_counter()))
    given = getattr(task.request, HEADER, None)
    request_id = given if isinstance(given, str) else before.request_id
    begin(Work(request_id=request_id, task=task.name, task_id=task_id))


@task_postrun.connect
def end_task(state: str | None = None, task: Any = None, retval: Any = None, **kwargs: Any) -> None:
    """One line, and it is over: for who debugs, unless a periodic task found something to do, of
    which it returns how many."""
    before, began = _before.get()
    milliseconds = round((perf_counter() - began) * 1000, 1)
    fields: dict[str, Any] = {"state": state or "", "milliseconds": milliseconds}
    if state == SUCCESS and task is not None and task.name in _periodic() and retval:
        fields["count"] = retval
        message, level = f"{task.name} did {retval}", logging.INFO
    else:
        message, level = fields["state"], logging.DEBUG
    logger.log(level, "%s in %.1f ms", message, milliseconds, extra={"fields": fields})
    begin(before)


@cache
def _periodic() -> frozenset[str]:
    """Names of the tasks that the scheduler sends."""
    return frozenset(entry["task"] for entry in app.conf.beat_schedule.values())
