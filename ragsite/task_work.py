"""Tasks are known in the log by their id, their name and the request that caused them."""

import logging
from contextvars import ContextVar
from time import perf_counter
from typing import Any

from celery.signals import before_task_publish, task_postrun, task_prerun

from common.logs.context import NOTHING, Work, begin, current_work

logger = logging.getLogger("ragsite.tasks")

#: Of a message. It goes on to the tasks that a task sends.
HEADER = "ragsite_request_id"

_before: ContextVar[tuple[Work, float]] = ContextVar("work_before", default=(NOTHING, 0.0))


def connect() -> None:
    """From now on, for all tasks of this process."""
    before_task_publish.connect(name_request, dispatch_uid="task_work.name_request")
    task_prerun.connect(begin_task, dispatch_uid="task_work.begin_task")
    task_postrun.connect(end_task, dispatch_uid="task_work.end_task")


def name_request(headers: dict[str, Any] | None = None, **kwargs: Any) -> None:
    """Say in the message which request it comes from."""
    request_id = current_work().request_id
    if headers is not None and request_id:
        headers.setdefault(HEADER, request_id)


def begin_task(task_id: str = "", task: Any = None, **kwargs: Any) -> None:
    """What is logged from here on belongs to the task."""
    before = current_work()
    _before.set((before, perf_counter()))
    given = getattr(task.request, HEADER, None)
    request_id = given if isinstance(given, str) else before.request_id
    begin(Work(request_id=request_id, task=task.name, task_id=task_id))


def end_task(state: str | None = None, **kwargs: Any) -> None:
    """One line for who debugs, and it is over."""
    before, began = _before.get()
    milliseconds = round((perf_counter() - began) * 1000, 1)
    fields = {"state": state or "", "milliseconds": milliseconds}
    logger.debug("%s in %.1f ms", fields["state"], milliseconds, extra={"fields": fields})
    begin(before)
