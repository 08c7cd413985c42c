"""Following a run: its progress as server-sent events."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import Membership
from common import sse
from documents import run_progress
from documents.models import IngestionItem, IngestionRun
from documents.run_progress import stream_progress
from documents.tests.factories import CollectionFactory, ItemFactory, RunFactory
from tests.kit import logged_in

pytestmark = pytest.mark.django_db
State = IngestionItem.State


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_progress, "POLL_SECONDS", 0.0)


@pytest.fixture
def run(alice: Membership) -> IngestionRun:
    """Four files, ten seconds old: one ready, one embedded, one parsed, one waiting."""
    run = RunFactory(
        collection=CollectionFactory(workspace=alice.workspace),
        total=4,
        ready=1,
        chunks=5,
        tokens=200,
        timings={"parse": 1.5},
        started_at=timezone.now() - timedelta(seconds=10),
    )
    for state in (State.READY, State.EMBEDDING, State.PARSING, State.WAITING):
        ItemFactory(run=run, state=state)
    return run


def end(run: IngestionRun, state: str = "succeeded") -> None:
    IngestionRun.objects.filter(pk=run.pk).update(state=state, finished_at=timezone.now())


def parsed(chunk: bytes) -> dict[str, Any]:
    """An event's fields, its data read."""
    lines = [line.partition(": ")[::2] for line in chunk.decode().strip().splitlines()]
    fields: dict[str, Any] = dict(lines)
    if "data" in fields:
        fields["data"] = json.loads(fields["data"])
    return fields


def following(stream: Iterator[bytes], name: str) -> dict[str, Any]:
    """The next event of that name; anything else but heartbeats fails."""
    for chunk in stream:
        fields = parsed(chunk)
        if "event" in fields:
            assert fields["event"] == name
            return fields
    raise AssertionError(f"the stream ended without {name}")


def test_the_first_event_tells_everything(run: IngestionRun) -> None:
    told = stream_progress(run.pk)
    assert parsed(next(told)) == {"retry": "2000"}
    progress = following(told, "progress")
    figures = progress["data"]
    assert progress["id"]
    assert (figures["total"], figures["settled"], figures["percent"]) == (4, 1, 25)
    assert (figures["waiting"], figures["parsing"], figures["embedding"]) == (1, 1, 1)
    assert (figures["stage"], figures["timings"]) == ("embedding", {"parse": 1.5})
    assert figures["files_per_second"] == pytest.approx(0.1, rel=0.3)
    assert figures["tokens_per_second"] == pytest.approx(20, rel=0.3)
    assert figures["remaining_seconds"] == pytest.approx(30, rel=0.3)


def test_what_changes_is_told_and_then_the_end(run: IngestionRun) -> None:
    told = stream_progress(run.pk)
    first = following(told, "progress")
    IngestionRun.objects.filter(pk=run.pk).update(ready=2)
    second = following(told, "progress")
    assert (second["data"]["ready"], second["id"] != first["id"]) == (2, True)
    end(run, "partial")
    last = following(told, "progress")
    assert last["data"]["is_finished"]
    assert following(told, "end")["data"] == {"run": run.pk, "state": "partial"}
    assert list(told) == []


def test_who_comes_back_is_not_told_the_same_again(run: IngestionRun) -> None:
    seen = following(stream_progress(run.pk), "progress")["id"]
    told = stream_progress(run.pk, last_id=seen)
    next(told)
    end(run)
    assert following(told, "progress")["id"] != seen


def test_a_run_that_has_ended_is_told_in_one_go(run: IngestionRun) -> None:
    end(run)
    names = [parsed(chunk).get("event") for chunk in stream_progress(run.pk)]
    assert names == [None, "progress", "end"]


def test_a_run_that_is_deleted_ends_its_stream(run: IngestionRun) -> None:
    told = stream_progress(run.pk)
    following(told, "progress")
    run.delete()
    assert following(told, "end")["data"]["state"] == "deleted"


def test_a_stream_says_that_it_lives_and_ends_after_a_while(
    run: IngestionRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_progress, "HEARTBEAT_SECONDS", 0.0)
    monkeypatch.setattr(run_progress, "MAX_STREAM_SECONDS", 0.2)
    told = list(stream_progress(run.pk))
    assert told.count(sse.HEARTBEAT) == len(told) - 2 > 0


def test_however_many_follow_a_run_it_is_looked_at_once(
    run: IngestionRun, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(run_progress, "POLL_SECONDS", 60.0)
    with django_assert_num_queries(2):
        streams = [stream_progress(run.pk) for _ in range(10)]
        told = [following(stream, "progress") for stream in streams]
    assert len({each["id"] for each in told}) == 1


@pytest.mark.django_db(transaction=True)
def test_no_connection_is_held_between_two_looks(run: IngestionRun) -> None:
    told = stream_progress(run.pk)
    following(told, "progress")
    assert connection.connection is None


# --- over HTTP ---------------------------------------------------------------------------------


def paths(run: IngestionRun) -> list[str]:
    return [f"/runs/{run.pk}/events/", f"/api/v1/runs/{run.pk}/events/"]


def test_the_last_event_id_is_obeyed(alice: Membership, run: IngestionRun) -> None:
    end(run)
    client = logged_in(alice)
    for path in paths(run):
        first = [parsed(chunk) for chunk in client.get(path)]
        again = client.get(path, headers={"Last-Event-ID": first[1]["id"]})
        assert [parsed(chunk).get("event") for chunk in again] == [None, "end"]


@pytest.mark.django_db(transaction=True)
def test_more_streams_than_there_may_be_are_told_when_to_come(
    alice: Membership, run: IngestionRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "stream_slots", sse.StreamSlots(2))
    client = logged_in(alice)
    client.raise_request_exception = False
    for path in paths(run):
        held = [client.get(path) for _ in range(2)]
        refused = client.get(path)
        assert refused.status_code == 503
        assert int(refused["Retry-After"]) > 0
        for answer in held:
            answer.close()
        again = client.get(path)
        assert again.status_code == 200
        again.close()
    assert client.get(f"/runs/{run.pk}/").status_code == 200


def test_streams_can_be_switched_off(
    alice: Membership, run: IngestionRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "stream_slots", sse.StreamSlots(0))
    assert logged_in(alice).get(paths(run)[0]).status_code == 503
