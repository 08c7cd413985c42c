"""Figures: of one workspace, of its time, and nobody's words but one's own."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import Membership, Role
from dashboard.figures import range_of, read_dashboard, unanswered_questions
from dashboard.models import Sample
from dashboard.samples import (
    BACKFILL_PERIOD,
    FULL_DETAIL_PERIOD,
    SAMPLE_INTERVAL,
    prune_samples,
    take_samples,
)
from documents.models import Document
from documents.tests.factories import (
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
    RunFactory,
)
from search.models import Evaluation, SearchLog

pytestmark = pytest.mark.django_db


def asked(member: Membership, query: str, *, hours: float = 0, **fields: Any) -> SearchLog:
    row = SearchLog.objects.create(
        **{
            "workspace": member.workspace,
            "user": member.user,
            "query": query,
            "mode": "hybrid",
            "total": 3,
            "milliseconds": 10.0,
            "source": "web",
            **fields,
        }
    )
    SearchLog.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(hours=hours))
    return row


def documents(member: Membership, *statuses: str, **fields: Any) -> None:
    collection = CollectionFactory(workspace=member.workspace)
    for status in statuses:
        DocumentFactory(collection=collection, status=status, **fields)


def today() -> Any:
    return range_of("24h", now=timezone.localtime())


def test_searches_are_counted_in_their_part_of_the_time(alice: Membership) -> None:
    asked(alice, "now", milliseconds=20.0)
    asked(alice, "now", milliseconds=40.0)
    asked(alice, "nothing", hours=5, total=0, source="api")
    asked(alice, "refused", hours=5, refused=True, source="chat")
    asked(alice, "long ago", hours=30)
    asked(MembershipFactory(), "elsewhere")
    searched = read_dashboard(workspace=alice.workspace, range_name="24h")["searched"]
    assert searched["count"][-1] == 2
    assert searched["count"][-6] == 2
    assert sum(searched["count"]) == 4
    assert (searched["nothing"][-6], sum(searched["nothing"])) == (2, 2)
    assert (sum(searched["asked"]), sum(searched["refused"])) == (1, 1)
    assert (searched["p50_ms"][-1], searched["p95_ms"][-1]) == (30.0, 39.0)
    assert searched["p50_ms"][-2] is None
    assert {door["source"]: sum(door["count"]) for door in searched["doors"]} == {
        "web": 2,
        "api": 1,
        "chat": 1,
        "command": 0,
    }


def test_stock_is_what_was_there_and_what_is_there_now(alice: Membership) -> None:
    now = timezone.now()
    for hours, number in ((30, 1), (5, 4)):
        Sample.objects.create(
            workspace=alice.workspace,
            at=now - timedelta(hours=hours),
            documents=number,
            chunks=10 * number,
            waiting=number,
        )
    documents(alice, "ready", "queued", chunk_count=7)
    board = read_dashboard(workspace=alice.workspace, range_name="24h")
    assert board["stock"]["documents"][0] == 1
    assert board["stock"]["documents"][-6:] == (4, 4, 4, 4, 4, 2)
    assert board["stock"]["chunks"][-1] == 14
    assert board["stock"]["waiting"][-6] == 4
    assert board["stock"]["waiting"][-1] == 1
    assert board["now"]["waiting"] == 1


def test_files_are_counted_when_their_run_ended(alice: Membership) -> None:
    now = timezone.now()
    collection = CollectionFactory(workspace=alice.workspace)
    RunFactory(
        collection=collection,
        ready=8,
        failed=1,
        chunks=400,
        started_at=now - timedelta(seconds=10),
        finished_at=now,
    )
    RunFactory(ready=99, finished_at=now)
    ingested = read_dashboard(workspace=alice.workspace, range_name="24h")["ingested"]
    assert (ingested["ready"][-1], ingested["failed"][-1], sum(ingested["chunks"])) == (8, 1, 400)
    assert ingested["rate"] == 40.0


def test_quality_is_the_last_figure_of_each_part(alice: Membership) -> None:
    collection = CollectionFactory(workspace=alice.workspace, name="Leaflets")
    for hours, ndcg in ((3, 0.5), (0, 0.7), (0, 0.8)):
        row = Evaluation.objects.create(
            workspace=alice.workspace, collection=collection, state="done", ndcg=ndcg, questions=9
        )
        Evaluation.objects.filter(pk=row.pk).update(
            created_at=F("created_at") - timedelta(hours=hours)
        )
    Evaluation.objects.create(workspace=alice.workspace, collection=collection, state="failed")
    (line,) = read_dashboard(workspace=alice.workspace, range_name="24h")["quality"]
    assert (line["name"], line["latest"], line["questions"]) == ("Leaflets", 0.8, 9)
    assert (line["ndcg"][-4], line["ndcg"][-1]) == (0.5, 0.8)
    assert line["ndcg"][-2] is None


def test_the_same_questions_stand_together(alice: Membership) -> None:
    bob = MembershipFactory(workspace=alice.workspace, role=Role.VIEWER)
    asked(alice, "Price of copper", total=0)
    asked(bob, "  price of COPPER ", total=0, hours=1)
    asked(bob, "cat enzymes", refused=True, source="chat")
    asked(alice, "found")
    asked(MembershipFactory(), "elsewhere", total=0)
    rows, different = unanswered_questions(
        workspace=alice.workspace, user=alice.user, range=today()
    )
    assert [
        (row["question"].lower(), row["times"], row["people"], row["refused"]) for row in rows
    ] == [
        ("price of copper", 2, 2, False),
        ("cat enzymes", 1, 1, True),
    ]
    assert different == 2
    one, different = unanswered_questions(
        workspace=alice.workspace, user=alice.user, range=today(), most=1
    )
    assert (len(one), different) == (1, 2)


def test_viewers_see_their_own_questions_only(alice: Membership) -> None:
    bob = MembershipFactory(workspace=alice.workspace, role=Role.VIEWER)
    asked(alice, "a secret of alice", total=0)
    asked(bob, "mine", total=0)
    rows, _ = unanswered_questions(workspace=alice.workspace, user=bob.user, range=today())
    assert [row["question"] for row in rows] == ["mine"]


def test_a_sample_is_taken_once_in_five_minutes(alice: Membership) -> None:
    MembershipFactory()  # of a workspace without anything
    documents(alice, "ready", "failed", "queued")
    now = timezone.now()
    assert take_samples(now=now) == 1
    assert take_samples(now=now) == 0
    assert take_samples(now=now + SAMPLE_INTERVAL) == 1
    row = Sample.objects.first()
    assert row is not None
    assert (row.waiting, row.failed, row.at.minute % 5) == (1, 1, 0)


def test_an_emptied_workspace_falls_to_nothing_once(alice: Membership) -> None:
    documents(alice, "ready")
    now = timezone.now()
    take_samples(now=now)
    Document.objects.all().delete()
    assert take_samples(now=now + SAMPLE_INTERVAL) == 1
    assert take_samples(now=now + 2 * SAMPLE_INTERVAL) == 0
    assert Sample.objects.order_by("-at").values_list("documents", flat=True)[0] == 0


def test_the_time_before_is_counted_from_what_is_there(alice: Membership) -> None:
    now = timezone.now()
    for days in (400, 10, 3):
        documents(alice, "ready", chunk_count=2, indexed_at=now - timedelta(days=days))
    take_samples(now=now)
    estimated = Sample.objects.filter(is_estimated=True).order_by("at")

    def on(moment: datetime) -> tuple[int, int]:
        row = estimated.filter(at__lte=moment).last()
        assert row is not None
        return row.documents, row.chunks

    assert estimated[0].at >= now - BACKFILL_PERIOD - timedelta(hours=2)
    assert on(now - timedelta(days=20)) == (1, 2)
    assert on(now - timedelta(days=5)) == (2, 4)
    assert on(now) == (3, 6)


def test_old_samples_are_thinned_and_very_old_ones_go(alice: Membership, settings: Any) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    for at in (
        hour,
        hour - FULL_DETAIL_PERIOD + timedelta(minutes=125),
        hour - FULL_DETAIL_PERIOD - timedelta(hours=2),
        hour - FULL_DETAIL_PERIOD - timedelta(hours=2, minutes=5),
        hour - timedelta(days=settings.SEARCH_LOG_DAYS + 1),
    ):
        Sample.objects.create(workspace=alice.workspace, at=at)
    assert prune_samples() == 2
    assert Sample.objects.count() == 3


def test_the_api_tells_the_same_to_members_alone(alice: Membership) -> None:
    asked(alice, "in vain", total=0)
    client, outsider = APIClient(), APIClient()
    client.force_login(alice.user)
    outsider.force_login(MembershipFactory().user)
    told = client.get("/api/v1/dashboard/", {"range": "24h"}).json()
    assert len(told["starts"]) == len(told["searched"]["count"]) == 24
    assert told["searched"]["nothing"][-1] == 1
    assert [row["question"] for row in told["unanswered"]] == ["in vain"]
    assert sum(outsider.get("/api/v1/dashboard/").json()["searched"]["count"]) == 0
    named = outsider.get("/api/v1/dashboard/", {"workspace": alice.workspace.slug})
    assert named.status_code == 404
    assert client.get("/api/v1/dashboard/", {"range": "1y"}).status_code == 400
