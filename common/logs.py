"""Logs: the request or task that each record belongs to, formatters, and redaction of secrets."""

import json
import logging
import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import LazyObject, empty

from common.leases import is_lost_connection

REDACTED = "…"
#: Of our settings and of the libraries that read the environment themselves.
_VARIABLES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PGPASSWORD", "OTEL_EXPORTER_OTLP_HEADERS")
#: Shorter secrets occur in texts by chance.
_MIN_SECRET_CHARACTERS = 6
_PATTERNS = (
    (re.compile(r"://[^\s/@:]*:[^\s/@]+@"), f"://{REDACTED}@"),  # the login in an address
    (re.compile(r"\b(rs_|sk-)[A-Za-z0-9_-]{8,}"), rf"\1{REDACTED}"),
    (re.compile(r"\b(bearer|basic) [A-Za-z0-9._~+/=-]{16,}", re.I), rf"\1 {REDACTED}"),
    (
        re.compile(r"\b(password|api_key|secret|token)(['\"]?[=:] ?)[^\s,;&)}\]]+", re.I),
        rf"\1\2{REDACTED}",
    ),
    # PostgreSQL quotes the row that it refuses, and so a document.
    (re.compile(r"^(\s*(?:DETAIL|CONTEXT|LINE \d+):).*$", re.M), rf"\1 {REDACTED}"),
)


def redact(text: str) -> str:
    """`text` with secrets, and values of rows quoted by PostgreSQL, replaced by `…`."""
    for secret in _secrets():
        text = text.replace(secret, REDACTED)
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


@lru_cache(maxsize=1)
def _secrets() -> tuple[str, ...]:
    """Longest first, so that no rest of a longer one remains."""
    known = {settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS, settings.METRICS_TOKEN}
    known |= {str(each.get("PASSWORD", "")) for each in settings.DATABASES.values()}
    known |= {unquote(urlsplit(settings.REDIS_URL).password or "")}
    known |= {os.environ.get(name, "") for name in _VARIABLES}
    known |= set(_api_keys(settings.INFERENCE))
    return tuple(
        sorted(
            (each for each in known if len(each) >= _MIN_SECRET_CHARACTERS), key=len, reverse=True
        )
    )


def _api_keys(data: Any) -> list[str]:
    if not isinstance(data, dict):
        return []
    own = [str(value) for name, value in data.items() if name == "api_key" and value]
    return own + [key for value in data.values() for key in _api_keys(value)]


P = ParamSpec("P")
T = TypeVar("T")

#: Accepted from a caller: nothing that could forge a line or fill a disk.
_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class LogContext:
    """The work of a thread. `request_id` is also that of the request which caused a task. The
    request is kept for its user and URL name, which are known only later.
    """

    request_id: str = ""
    task: str = ""
    task_id: str = ""
    request: HttpRequest | None = None

    def fields(self) -> dict[str, Any]:
        """The known values, by their names in the log."""
        known = {
            "request_id": self.request_id,
            "user_id": request_user_id(self.request),
            "route": route_name(self.request),
            "task": self.task,
            "task_id": self.task_id,
        }
        return {name: value for name, value in known.items() if value}


NO_CONTEXT = LogContext()
_context: ContextVar[LogContext] = ContextVar("work", default=NO_CONTEXT)


def current_log_context() -> LogContext:
    """The log context of this thread or task."""
    return _context.get()


def set_log_context(work: LogContext) -> None:
    """Set the log context of this thread from now on."""
    _context.set(work)


@contextmanager
def log_context(work: LogContext) -> Iterator[None]:
    """Set the log context within the block."""
    before = _context.get()
    _context.set(work)
    try:
        yield
    finally:
        _context.set(before)  # not by its token: it may end in another context than it began in


def with_log_context(function: Callable[P, T]) -> Callable[P, T]:
    """`function` for another thread, whose log lines get this thread's context.

    Nothing else is copied, unlike `copy_context`: neither actor nor cancellation.
    """
    work = _context.get()

    @wraps(function)
    def carried(*args: P.args, **kwargs: P.kwargs) -> T:
        with log_context(work):
            return function(*args, **kwargs)

    return carried


def accepted_request_id(client_id: str) -> str:
    """The client's request id where it is well formed, else a new one."""
    return client_id if _REQUEST_ID.fullmatch(client_id) else uuid4().hex


def route_name(request: HttpRequest | None) -> str:
    """The URL name, never text from the URL itself."""
    match = getattr(request, "resolver_match", None)
    return (match.view_name or match.route) if match else ""


def request_user_id(request: HttpRequest | None) -> int | None:
    """The user's id if already known; never queries the database."""
    user = getattr(request, "__dict__", {}).get("user")
    if isinstance(user, LazyObject) and user.__dict__.get("_wrapped") is empty:
        return None
    return getattr(user, "pk", None)


#: A message is one line whatever is quoted in it, and moves no cursor.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}
_CONTROLS |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}


class AddLogContext(logging.Filter):
    """Adds the log context as `work` to each record."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "work"):
            record.work = current_log_context().fields()
        return True


class DropTaskReceived(logging.Filter):
    """Drops Celery's “task received” lines of these tasks."""

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
    """Time, level, logger, message, and the log context."""

    def __init__(self, **options: Any) -> None:
        super().__init__("{asctime} {levelname} {name}: {message}", style="{")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (its name)
        record.message = record.message.translate(_CONTROLS)
        work = " ".join(f"{name}={value}" for name, value in _context_fields(record).items())
        return super().formatMessage(record) + (f" [{work}]" if work else "")

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object a record: `at` in UTC, `level`, `logger`, `message`, the log context, the
    record's `fields`, and `error`, a traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage()),
            **_context_fields(record),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            said["error"] = redact(self.formatException(record.exc_info))
        return json.dumps(said, default=str)


def _context_fields(record: logging.LogRecord) -> dict[str, Any]:
    work: dict[str, Any] = getattr(record, "work", {})
    return work
