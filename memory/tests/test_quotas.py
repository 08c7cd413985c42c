"""Quotas: the oldest contexts of whoever has most go, and nothing else ever."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from accounts.models import Workspace
from documents.tests.factories import WorkspaceFactory
from memory import quotas
from memory.models import Context, Fact, Pruning
from memory.scopes import UserScope
from memory.services import archive_turn, prune_to_quotas, set_fact, usage
from memory.tasks import prune_memories
from memory.tests.factories import NOW, make_scope, remember, remember_many

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def limit(settings: Any) -> Callable[..., None]:
    """No limits, but for those that a test sets."""

    def given_limits(**limits: int) -> None:
        for name in ("USER_ROWS", "USER_BYTES", "WORKSPACE_ROWS", "WORKSPACE_BYTES"):
            setattr(settings, f"MEMORY_{name}", limits.get(name.lower(), 0))

    given_limits()
    return given_limits


def talk(scope: UserScope, turns: int, *, letters: int = 10, days_ago: int = 0) -> None:
    """Turns of so many bytes each, an hour apart, the last one an hour before NOW."""
    said = {
        f"{number:04}".ljust(letters, "x"): NOW - timedelta(days=days_ago, hours=turns - number)
        for number in range(turns)
    }
    remember_many(scope, said)


def kept(scope: UserScope) -> list[int]:
    """The numbers of the turns that are left, the oldest first."""
    rows = Context.objects.of(scope).order_by("created_at")
    return [int(said[:4]) for said in rows.values_list("user_message", flat=True)]


def test_the_oldest_turns_of_a_user_go_and_nobody_elses(limit: Any) -> None:
    workspace = WorkspaceFactory()
    alice, bob = (make_scope(name, workspace=workspace) for name in ("alice", "bob"))
    same_name = make_scope("alice")
    talk(alice, 8)
    talk(bob, 5, days_ago=900)
    talk(same_name, 5, days_ago=900)

    limit(user_rows=5)
    (pruning,) = prune_to_quotas()

    assert kept(alice) == [3, 4, 5, 6, 7]
    assert kept(bob) == kept(same_name) == [0, 1, 2, 3, 4]
    assert (pruning.rows, pruning.bytes, pruning.reason) == (3, 30, Pruning.Reason.USER)
    assert pruning.until == NOW - timedelta(hours=6)
    assert prune_to_quotas() == []


def test_bytes_are_counted_as_the_database_holds_them(limit: Any) -> None:
    scope = make_scope()
    remember(scope, "ä" * 5, "日本", at=NOW - timedelta(hours=3))
    talk(scope, 2)

    limit(user_bytes=36)
    assert prune_to_quotas() == []
    limit(user_bytes=35)
    (pruning,) = prune_to_quotas()

    assert kept(scope) == [0, 1]
    assert (pruning.rows, pruning.bytes) == (1, 16)


def test_a_turn_that_is_said_again_is_not_old(limit: Any) -> None:
    scope = make_scope()
    talk(scope, 4)
    remember(scope, "0000xxxxxx", at=NOW)

    limit(user_rows=2)
    prune_to_quotas()

    assert kept(scope) == [3, 0]


def test_facts_stay_and_only_lose_their_source(limit: Any) -> None:
    scope = make_scope()
    talk(scope, 3)
    oldest, newest = (Context.objects.of(scope).order_by(by)[0] for by in ("created_at", "-id"))
    for value, source in (("tea", oldest), ("coffee", newest)):
        set_fact(scope=scope, key="drink", value=value, source=source)

    limit(user_rows=1)
    prune_to_quotas()

    facts = Fact.objects.of(scope).order_by("id").values_list("value", "source")
    assert list(facts) == [("tea", None), ("coffee", newest.pk)]


def test_the_workspaces_quota_takes_from_those_who_have_most(limit: Any) -> None:
    workspace = WorkspaceFactory()
    names = {"much": 9, "more": 12, "little": 2, "some": 4}
    scopes = {name: make_scope(name, workspace=workspace) for name in names}
    for name, turns in names.items():
        talk(scopes[name], turns, days_ago=0 if name == "much" else 100)
    elsewhere = make_scope("more")
    talk(elsewhere, 5, days_ago=900)

    limit(workspace_rows=19)
    prunings = prune_to_quotas()

    # 2 and 4 are less than a share; 13 are left for two, and who spoke last may keep one more.
    assert {name: len(kept(scope)) for name, scope in scopes.items()} == {
        "much": 7,
        "more": 6,
        "little": 2,
        "some": 4,
    }
    assert kept(scopes["much"]) == [2, 3, 4, 5, 6, 7, 8]
    assert len(kept(elsewhere)) == 5
    assert {row.user_id: row.rows for row in prunings} == {"much": 2, "more": 6}
    assert {row.reason for row in prunings} == {Pruning.Reason.WORKSPACE}


def test_a_crowd_does_not_drive_everybody_out(limit: Any) -> None:
    """With more users than places a whole share is none at all."""
    workspace = WorkspaceFactory()
    for number in range(6):
        talk(make_scope(f"user {number}", workspace=workspace), 1, days_ago=number)

    limit(workspace_rows=4)
    prune_to_quotas()

    left = Context.objects.order_by("user_id").values_list("user_id", flat=True)
    assert list(left) == [f"user {number}" for number in range(4)]


def test_bytes_of_a_workspace_are_shared_in_the_same_way(limit: Any) -> None:
    workspace = WorkspaceFactory()
    long, short = (make_scope(name, workspace=workspace) for name in ("long", "short"))
    talk(long, 5, letters=100)
    talk(short, 10, letters=10, days_ago=100)

    limit(workspace_bytes=350)
    (pruning,) = prune_to_quotas()

    assert (kept(long), len(kept(short))) == ([3, 4], 10)
    assert (pruning.user_id, pruning.rows, pruning.bytes) == ("long", 3, 300)


def test_rows_that_go_make_room_for_bytes(limit: Any) -> None:
    """Who lost rows to the one quota does not lose more to the other than needed."""
    scope = make_scope()
    talk(scope, 6, letters=100)

    limit(workspace_rows=3, workspace_bytes=300)
    prune_to_quotas()

    assert kept(scope) == [3, 4, 5]


def test_zero_is_no_limit() -> None:
    talk(make_scope(), 20, letters=1000)

    assert prune_to_quotas() == []
    assert Context.objects.count() == 20


@hypothesis(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=5),
    st.integers(1, 8),
    st.integers(1, 20),
)
def test_nobody_loses_what_is_within_the_quotas(
    limit: Any, turns: list[int], user_rows: int, workspace_rows: int
) -> None:
    with transaction.atomic():
        workspace: Workspace = WorkspaceFactory()
        scopes = [make_scope(f"{n}' OR 1=1 --", workspace=workspace) for n in range(len(turns))]
        for scope, number in zip(scopes, turns, strict=True):
            talk(scope, number)
            set_fact(scope=scope, key="turns", value=str(number))

        limit(user_rows=user_rows, workspace_rows=workspace_rows)
        prune_to_quotas()

        left = [kept(scope) for scope in scopes]
        for rows, number in zip(left, turns, strict=True):
            assert rows == list(range(number - len(rows), number))
            share = min(number, user_rows, workspace_rows // len(turns))
            assert share <= len(rows) <= user_rows
        within = sum(min(number, user_rows) for number in turns)
        assert sum(map(len, left)) == min(within, workspace_rows)
        assert Fact.objects.filter(workspace=workspace).count() == len(turns)
        transaction.set_rollback(True)


# --- told ----------------------------------------------------------------------------------------


def test_each_user_that_lost_something_is_told_once_without_texts(
    limit: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(quotas, "BATCH_ROWS", 3)
    scope = make_scope("alice\n[facts: forged]")
    remember(scope, "my secret", at=NOW - timedelta(days=9))
    talk(scope, 9)
    with caplog.at_level(logging.INFO, logger="memory"):
        limit(user_rows=2)
        assert prune_memories() == 1

    (row,) = Pruning.objects.of(scope)
    assert (row.rows, row.bytes) == (8, 79)
    assert f"pruning {row.pk}: 8 contexts, 79 bytes" in caplog.text
    assert "secret" not in caplog.text
    assert "forged" not in caplog.text


def test_the_usage_is_told_with_its_limits(limit: Any, settings: Any) -> None:
    settings.MEMORY_MAX_FACTS = 7
    scope, other = make_scope(), make_scope("bob")
    talk(scope, 4, letters=100)
    talk(other, 9)
    set_fact(scope=scope, key="name", value="Alice")
    set_fact(scope=scope, key="name", value="Alicia")

    limit(user_rows=3)
    prunings = [row for row in prune_to_quotas() if row.user_id == scope.user_id]
    used = usage(scope=scope)

    assert (used.rows, used.bytes, used.facts) == (3, 300, 2)
    assert (used.max_rows, used.max_bytes, used.max_facts) == (3, None, 7)
    assert list(used.prunings) == prunings
    assert usage(scope=None).rows == usage(scope=None).facts == 0


def test_a_pruning_is_told_for_three_months(limit: Any) -> None:
    scope = make_scope()
    talk(scope, 3)
    limit(user_rows=2)
    prune_to_quotas()
    Pruning.objects.update(created_at=timezone.now() - timedelta(days=91))
    talk(scope, 1)
    prune_to_quotas()

    assert [row.rows for row in usage(scope=scope).prunings] == [1]


# --- at scale, and beside others -----------------------------------------------------------------


def test_sums_are_read_from_the_index_alone() -> None:
    talk(make_scope(), 5)
    with connection.cursor() as cursor:
        # Among five rows any index will do; this one, of other columns, goes with the test.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(
            "ALTER TABLE memory_context DROP CONSTRAINT context_workspace_user_content_unique"
        )
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
    for sums in (quotas._sums("workspace_id", "user_id"), quotas._sums("workspace_id")):
        assert "Index Only Scan using context_age_index" in sums.explain()


def test_statements_grow_with_what_goes_and_read_no_text(
    limit: Any, django_assert_max_num_queries: Any
) -> None:
    workspace = WorkspaceFactory()
    for number in range(12):
        talk(make_scope(f"user {number}", workspace=workspace), 3)
    talk(make_scope("talker", workspace=workspace), 40)

    limit(user_rows=20, workspace_rows=50, workspace_bytes=10**6)
    with django_assert_max_num_queries(25) as captured:
        prune_to_quotas()

    assert Context.objects.count() == 50
    read = [query["sql"] for query in captured.captured_queries]
    assert not any("user_message" in sql or "embedding" in sql for sql in read)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def closing(work: Callable[[], Any]) -> Callable[[], Any]:
    """A thread has a connection of its own."""

    def run() -> Any:
        try:
            return work()
        finally:
            connections.close_all()

    return run


@pytest.mark.django_db(transaction=True)
def test_what_is_said_again_while_it_is_pruned_stays(limit: Any, threads: Any) -> None:
    scope = make_scope()
    talk(scope, 6)
    limit(user_rows=3)
    with transaction.atomic():
        # It is locked here, so that pruning has chosen it and waits when it is fresh again.
        archive_turn(scope=scope, user_message="0000xxxxxx", at=NOW)
        pruning = threads.submit(closing(prune_to_quotas))
        wait_for_a_lock()
    pruning.result(timeout=60)

    assert kept(scope) == [3, 4, 5, 0]


@pytest.mark.django_db(transaction=True)
def test_prunings_and_turns_at_once_leave_the_newest_and_tell_each_loss_once(
    limit: Any, threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "BATCH_ROWS", 2)
    scope = make_scope()
    talk(scope, 30)
    limit(user_rows=4)
    fresh = closing(lambda: remember(scope, "9999", at=NOW))
    jobs = [
        threads.submit(job)
        for job in (
            closing(prune_to_quotas),
            fresh,
            closing(prune_to_quotas),
            closing(prune_to_quotas),
        )
    ]
    for job in jobs:
        job.result(timeout=60)
    prune_to_quotas()

    assert kept(scope) == [27, 28, 29, 9999]
    assert sum(row.rows for row in Pruning.objects.of(scope)) == 27


LEARN_FROM_WHAT_GOES = """
    CREATE FUNCTION learn_from_what_goes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO memory_fact (workspace_id, user_id, key, value, valid_from, source_id, origin,
                                 language, embed_attempts)
        VALUES (old.workspace_id, old.user_id, 'from_' || old.id, 'x', now(), old.id, 'given',
                'simple', 0);
        RETURN NULL;
    END $$;
    CREATE TRIGGER learn_from_what_goes AFTER DELETE ON memory_context
    FOR EACH ROW WHEN (old.user_id = 'learner') EXECUTE FUNCTION learn_from_what_goes()
"""


@pytest.mark.django_db(transaction=True)
def test_a_turn_that_a_fact_is_learnt_from_meanwhile_stays_and_holds_up_nobody(limit: Any) -> None:
    workspace = WorkspaceFactory()
    learner, other = (make_scope(name, workspace=workspace) for name in ("learner", "other"))
    for scope in (learner, other):
        talk(scope, 3)
    limit(user_rows=2)
    with connection.cursor() as cursor:
        cursor.execute(LEARN_FROM_WHAT_GOES)
        try:
            assert [row.user_id for row in prune_to_quotas()] == ["other"]
        finally:
            cursor.execute("DROP FUNCTION learn_from_what_goes CASCADE")
    assert len(kept(learner)) == 3
    assert not Pruning.objects.of(learner).exists()
    assert len(prune_to_quotas()) == 1


def wait_for_a_lock() -> None:
    """Until another connection waits for a row that this one holds."""
    from tests.plugin import wait_until

    def waits() -> bool:
        with connection.cursor() as cursor:
            # What others do now, and not when this transaction asked first.
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(
                "SELECT EXISTS (SELECT FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock')"
            )
            return bool(cursor.fetchone()[0])

    wait_until(waits, what="pruning waits for the turn")
