"""How long a statement may take, and how long a command waits for the database at its start."""

from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test import Client

from common import rls
from common.postgresql.base import StatementTimeout
from common.rls import bypass_rls, workspace_context
from common.sql import fetch_rows
from documents.tests.factories import MembershipFactory
from ragsite import bootstrap

SLOW = "SELECT pg_sleep(30)"


@pytest.fixture(autouse=True)
def _limit(transactional_db: None, settings: Any) -> None:
    settings.DATABASE_STATEMENT_SECONDS = 0.1


def shown() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        return str(cursor.fetchone()[0])


def run_slow(*args: Any, **kwargs: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(SLOW)


def test_only_work_for_a_request_is_limited_and_only_as_long_as_it_is_that() -> None:
    assert shown() == "0"
    with workspace_context(1):
        assert shown() == "100ms"
        with bypass_rls():
            assert shown() == "100ms"
            assert fetch_rows(connection, "SELECT current_setting('statement_timeout')") == [
                ("100ms",)
            ]
    with transaction.atomic():
        with workspace_context(1):
            assert shown() == "100ms"
        assert shown() == "0"
    assert shown() == "0"


def test_zero_is_no_limit(settings: Any) -> None:
    settings.DATABASE_STATEMENT_SECONDS = 0.0
    with workspace_context(1):
        assert shown() == "0"


def test_every_way_of_asking_is_stopped() -> None:
    for ask in (run_slow, lambda: fetch_rows(connection, SLOW)):
        with workspace_context(1), pytest.raises(StatementTimeout, match=r"than 0\.1 seconds"):
            ask()
        with workspace_context(1), bypass_rls(), pytest.raises(StatementTimeout):
            ask()
    with workspace_context(1):
        assert shown() == "100ms"  # the connection can be used on


@pytest.mark.parametrize(
    ("address", "module"),
    [("/api/v1/search/?q=otter", "search.api.views"), ("/?q=otter", "search.views")],
)
def test_requests_are_answered_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, settings: Any, address: str, module: str
) -> None:
    settings.DATABASE_STATEMENT_SECONDS = 1.0  # enough for all but the slow one
    monkeypatch.setattr(f"{module}.search", run_slow)
    client = Client(raise_request_exception=False)
    client.force_login(MembershipFactory().user)
    answer = client.get(address)
    assert answer.status_code == 503
    assert "longer than 1 seconds" in answer.content.decode()
    if address.startswith("/api/"):
        assert answer.json()["code"] == "statement_timeout"


def test_a_short_command_ends_with_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rls, "_limits_commands", True)
    with pytest.raises(SystemExit) as ended:
        bootstrap.run(run_slow, [])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("ragsite: The database query took longer")
    assert said.count("\n") == 1


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch, settings: Any) -> list[float]:
    """Pauses between tries, which are over at once."""
    pauses: list[float] = []
    settings.DATABASE_START_SECONDS = 60.0
    monkeypatch.setattr(bootstrap, "sleep", pauses.append)
    return pauses


def test_a_database_that_comes_later_is_waited_for(
    tries: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ensure_connection() -> None:
        if len(tries) < 6:
            raise OperationalError("connection refused")

    said: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(connection, "ensure_connection", ensure_connection)
        bootstrap.check_server(to_migrate=False, migrates=False, say=said.append)
    assert tries == [0.25, 0.5, 1, 2, 4, 4]
    assert said == ["the database does not answer yet; trying again for 60 seconds"]


def test_a_wrong_password_is_not_tried_again(
    tries: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ensure_connection() -> None:
        raise OperationalError("password authentication failed")

    with monkeypatch.context() as patched:
        patched.setattr(connection, "ensure_connection", ensure_connection)
        with pytest.raises(
            bootstrap.UnusableDatabaseError, match="Check the user and the password"
        ):
            bootstrap.check_server(to_migrate=False, migrates=False, say=lambda line: None)
    assert tries == []
