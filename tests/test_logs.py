"""A line of the log: which request or task it belongs to, and what it never holds."""

import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from typing import Any

import psycopg
import pytest
from celery.worker.request import Request
from django.db import OperationalError
from django.test import Client
from kombu.transport.base import Message

import rag.tasks
from common import logs
from common.celery import REQUEST_ID_HEADER, app, log_task, set_task_context
from common.logs import (
    NO_CONTEXT,
    AddLogContext,
    JsonFormatter,
    LineFormatter,
    LogContext,
    ShortenOutages,
    current_log_context,
    log_context,
    redact,
    with_log_context,
)
from documents.tests.factories import MembershipFactory


class Log:
    """What was written, as operators see it."""

    def __init__(self, formatter: logging.Formatter) -> None:
        self.stream = StringIO()
        self.handler = logging.StreamHandler(self.stream)
        self.handler.addFilter(AddLogContext())
        self.handler.setFormatter(formatter)

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture(params=[JsonFormatter, LineFormatter])
def log(request: pytest.FixtureRequest) -> Iterator[Log]:
    yield from listening(Log(request.param()))


@pytest.fixture
def told() -> Iterator[Log]:
    yield from listening(Log(JsonFormatter()))


def listening(log: Log) -> Iterator[Log]:
    logger = logging.getLogger("ragsite")
    level = logger.level
    logger.addHandler(log.handler)
    logger.setLevel(logging.DEBUG)
    yield log
    logger.removeHandler(log.handler)
    logger.setLevel(level)


# --- requests -------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["abc-123", "7f3.x_Y", "a" * 64])
def test_the_id_of_a_caller_is_taken_over(client: Client, told: Log, given: str) -> None:
    answer = client.get("/health/live", headers={"X-Request-ID": given})
    assert answer.headers["X-Request-ID"] == given
    assert told.records[-1]["request_id"] == given


@pytest.mark.parametrize("given", ["", "a b", "a\nb", "x" * 65, "../x", "é", "-a", '{"a":1}'])
def test_one_that_could_forge_a_line_is_not(client: Client, given: str) -> None:
    made = client.get("/health/live", headers={"X-Request-ID": given}).headers["X-Request-ID"]
    assert made != given
    assert len(made) == 32


@pytest.mark.django_db
def test_one_line_tells_of_a_request_and_none_of_what_was_asked(client: Client, told: Log) -> None:
    member = MembershipFactory()
    client.force_login(member.user)
    client.get("/api/v1/documents/999999/?q=secretquestion")
    (line,) = [each for each in told.records if each["logger"] == "ragsite.access"]

    assert line["status"] == 400  # the API knows no q here
    assert line["method"] == "GET"
    assert line["path"] == "/api/v1/documents/999999/"
    assert line["user_id"] == member.user_id
    assert line["route"]
    assert line["milliseconds"] > 0
    assert "secretquestion" not in told.text


@pytest.mark.django_db
def test_a_stream_is_told_of_at_its_end(client: Client, told: Log) -> None:
    answer = client.get("/docs/images/architecture.svg")
    before = len(told.records)
    assert b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    answer.close()
    lines = told.records
    assert (before, len(lines)) == (0, 1)
    assert (lines[0]["level"], lines[0]["status"]) == ("INFO", 200)
    assert current_log_context() == NO_CONTEXT


@pytest.mark.django_db
def test_words_in_an_address_are_not_told(client: Client, log: Log) -> None:
    member = MembershipFactory()
    client.force_login(member.user)
    client.get("/graph/nodes/Mrs-Confidential/")
    client.get("/nowhere/Mrs-Confidential/")
    assert "Confidential" not in log.text
    assert "404" in log.text


def test_nothing_is_left_for_the_next_one(client: Client) -> None:
    client.get("/health/live")
    assert current_log_context() == NO_CONTEXT


# --- threads and tasks ----------------------------------------------------------------------------


def test_another_thread_is_known_by_the_work_that_it_was_begun_for() -> None:
    with ThreadPoolExecutor(1) as pool:
        with log_context(LogContext(request_id="abc")):
            waiting = pool.submit(with_log_context(current_log_context))
        assert waiting.result().request_id == "abc"
        assert pool.submit(current_log_context).result() == NO_CONTEXT


@app.task(name="tests.tell", queue="tests-of-logs")
def tell() -> None:
    """Says something, and sends one more."""
    logging.getLogger("ragsite.tests").info("at work")
    seen.append(current_log_context())


seen: list[LogContext] = []


def sent(log: Log) -> Message:
    """The message that waits in the broker."""
    with app.connection_for_read() as broker:
        queue = broker.SimpleQueue("tests-of-logs")
        message = queue.get(block=True, timeout=10)
        message.ack()
        queue.close()
    return message


def test_a_task_is_known_by_the_request_that_caused_it(told: Log) -> None:
    seen.clear()
    with log_context(LogContext(request_id="from-a-page")):
        tell.delay()
    message = sent(told)
    Request(message, app=app, task=tell, hostname="here").execute()

    assert [(work.request_id, work.task) for work in seen] == [("from-a-page", "tests.tell")]
    line = next(each for each in told.records if each["message"] == "at work")
    assert line["request_id"] == "from-a-page"
    assert line["task"] == "tests.tell"
    assert line["task_id"] == seen[0].task_id == message.headers["id"]
    assert current_log_context() == NO_CONTEXT


def test_a_task_of_nobody_has_no_request(told: Log) -> None:
    seen.clear()
    tell.delay()
    message = sent(told)
    assert REQUEST_ID_HEADER not in message.headers
    Request(message, app=app, task=tell, hostname="here").execute()
    assert [work.request_id for work in seen] == [""]


@pytest.mark.parametrize(("done", "level"), [(0, "DEBUG"), (3, "INFO")])
def test_a_periodic_task_is_news_where_it_did_something(told: Log, done: int, level: str) -> None:
    task = rag.tasks.end_lost_runs
    set_task_context(task_id="t", task=task)
    log_task(state="SUCCESS", task=task, retval=done)
    (line,) = told.records
    assert (line["level"], line["task"]) == (level, task.name)
    assert ("end_lost_runs did 3" in line["message"]) is (done > 0)


def test_that_a_periodic_task_was_received_is_no_line_of_the_log() -> None:
    received = logging.getLogger("celery.worker.strategy")
    assert [
        bool(received.filter(logging.makeLogRecord({"data": {"name": name}})))
        for name in ("rag.tasks.end_lost_runs", "documents.tasks.ingest_documents")
    ] == [False, True]


@pytest.mark.parametrize(
    ("reason", "traceback"),
    [
        (
            psycopg.OperationalError("connection failed: FATAL: it is shutting down"),
            False,
        ),
        (psycopg.errors.AdminShutdown("terminating connection"), False),
        (psycopg.errors.DeadlockDetected("deadlock detected"), True),
        (ZeroDivisionError("a mistake"), True),
    ],
)
def test_a_database_that_is_away_is_one_line_and_no_traceback(
    log: Log, reason: Exception, traceback: bool
) -> None:
    log.handler.addFilter(ShortenOutages())
    try:
        try:
            raise reason
        except psycopg.Error as error:
            raise OperationalError(str(error)) from error
    except (OperationalError, ZeroDivisionError):
        logging.getLogger("ragsite").exception("the request failed")
    assert str(reason) in log.text
    assert ("Traceback" in log.text) is traceback
    assert len(log.text.splitlines()) == 1 or traceback


# --- what is never told ---------------------------------------------------------------------------


@pytest.fixture
def secrets(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    settings.SECRET_KEY = "the-key-that-signs"
    settings.METRICS_TOKEN = "observers-token"
    monkeypatch.setenv("OPENAI_API_KEY", "plain-openai-key")
    settings.INFERENCE = {"chat": {"default": {"OPTIONS": {"api_key": "key-of-options"}}}}
    logs._secrets.cache_clear()
    yield [settings.SECRET_KEY, settings.METRICS_TOKEN, "plain-openai-key", "key-of-options"]
    logs._secrets.cache_clear()


def test_no_secret_of_the_site_is_told(secrets: list[str], log: Log) -> None:
    for secret in secrets:
        logging.getLogger("ragsite").info("it is %s, isn't it", secret)
        try:
            raise RuntimeError(f"wrong: {secret}")
        except RuntimeError:
            logging.getLogger("ragsite").exception("failed")
    assert not [secret for secret in secrets if secret in log.text]
    assert log.text.count("RuntimeError") >= len(secrets)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("cannot reach postgresql://site:hunter22@db:5432/x", "hunter22"),
        ("redis://:hunter22@cache/0 is away", "hunter22"),
        ("key rs_Abcdefgh12345678 expired", "Abcdefgh12345678"),
        ("key sk-proj-Abcdefgh12345678 expired", "Abcdefgh12345678"),
        ("sent Authorization: Bearer Abcdefgh12345678", "Abcdefgh12345678"),
        ("host=db password=hunter22 dbname=x", "hunter22"),
        ('{"api_key": "hunter22"}', "hunter22"),
        ("duplicate key\nDETAIL:  Key (text)=(a confidential passage) exists", "confidential"),
        ("bad\nLINE 1: SELECT 'a confidential passage'", "confidential"),
    ],
)
def test_no_secret_of_others_is_told(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in redact(text)


def test_plain_words_stay() -> None:
    text = "Basic questions about tokens: 3 of 4 at http://localhost:8000/a@b"
    assert redact(text) == text


def test_a_message_is_one_line_whatever_it_quotes(log: Log) -> None:
    logging.getLogger("ragsite").warning("file %s", "a\n2026 ERROR forged\x1b[2J\u2028b")
    assert log.text.count("\n") == 1
    assert "\x1b" not in log.text
    assert "forged" in log.text
