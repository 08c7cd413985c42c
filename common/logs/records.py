"""Log records as lines for people or as JSON for programs: `LOG_FORMAT`."""

import json
import logging
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from common.logs.context import current_work
from common.logs.redaction import clean
from common.outages import is_lost_connection

#: A message is one line whatever is quoted in it, and moves no cursor.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}
_CONTROLS |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}


class AddWork(logging.Filter):
    """Gives each record `work`: what its request and its task are called."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "work"):
            record.work = current_work().fields()
        return True


class DropTasks(logging.Filter):
    """Drops Celery's line that a task of these names was received."""

    def __init__(self, tasks: Collection[str]) -> None:
        super().__init__()
        self._tasks = tasks

    def filter(self, record: logging.LogRecord) -> bool:
        received = getattr(record, "data", {})
        return received.get("name") not in self._tasks


class ShortenOutages(logging.Filter):
    """Says in one line, without a traceback, that PostgreSQL was away: while it restarts every
    request and every task fails at whatever statement comes first."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if is_lost_connection(error):
            record.msg, record.args = f"{record.getMessage()} ({str(error).strip()})", ()
            record.exc_info = record.exc_text = None
        return True


class LineFormatter(logging.Formatter):
    """Time, level, logger, message, and what is known of the work."""

    def __init__(self, **given: Any) -> None:
        super().__init__("{asctime} {levelname} {name}: {message}", style="{")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (its name)
        record.message = record.message.translate(_CONTROLS)
        work = " ".join(f"{name}={value}" for name, value in _work(record).items())
        return super().formatMessage(record) + (f" [{work}]" if work else "")

    def format(self, record: logging.LogRecord) -> str:
        return clean(super().format(record))


class JsonFormatter(logging.Formatter):
    """One object a record: `at` in UTC, `level`, `logger`, `message`, the work, what the record
    says in `fields`, and `error`, a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": clean(record.getMessage()),
            **_work(record),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            said["error"] = clean(self.formatException(record.exc_info))
        return json.dumps(said, default=str)


def _work(record: logging.LogRecord) -> dict[str, Any]:
    work: dict[str, Any] = getattr(record, "work", {})
    return work
