"""What load balancers and containers are told: quickly, seldom, and no stranger too much."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from redis import Redis

from documents import services
from documents.tests.factories import UserFactory
from inference import query_cache
from ragsite import health, presence
from ragsite.checks import check_monitoring
from ragsite.health import HealthMonitor, Outcome, Probe
from tests.plugin import wait_until

READY = "/health/ready"
TOKEN = "observers-token"
SHOWN = {"Authorization": f"Bearer {TOKEN}"}
PROBES = [
    *("database", "extensions", "migrations", "broker"),
    *("queue_ingest", "queue_embed", "queue_default", "model", "storage"),
]


@pytest.fixture(autouse=True)
def _looked_at_anew(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setattr(health, "monitor", HealthMonitor(health.monitor._listed))
    settings.METRICS_TOKEN = TOKEN


def ready(client: Client, **headers: str) -> dict[str, Any]:
    told: dict[str, Any] = client.get(READY, headers=headers).json()
    return told


def test_a_process_that_answers_lives_and_asks_no_database(client: Client) -> None:
    answer = client.get("/health/live", headers={"Cookie": "sessionid=abcdefgh"})  # none is open

    assert answer.status_code == 200
    assert answer.json() == {"status": "ok"}
    assert "Set-Cookie" not in answer.headers
    assert "no-store" in answer.headers["Cache-Control"]
    assert client.post("/health/live").status_code == 405


@pytest.mark.django_db(transaction=True)
class TestReady:
    def test_strangers_are_told_what_works_and_no_more(self, client: Client) -> None:
        answer = client.get(READY)
        told = answer.json()

        assert answer.status_code == 200
        assert list(told["probes"]) == PROBES
        assert all(list(each) == ["ok"] for each in told["probes"].values())
        assert "Set-Cookie" not in answer.headers

    def test_those_who_run_the_site_are_told_more(self, client: Client) -> None:
        told = ready(client, **SHOWN)["probes"]

        assert told["database"]["detail"].startswith("PostgreSQL 1")
        assert told["extensions"]["detail"].startswith("vector 0.")
        assert told["migrations"]["detail"].endswith(" applied")
        assert told["broker"]["detail"].startswith("Valkey ")
        client.force_login(UserFactory(is_staff=True))
        assert ready(client)["probes"]["database"] == told["database"]

    @pytest.mark.parametrize("shown", ["Bearer other", "Bearer ", "Basic b2JzOg=="])
    def test_another_token_is_none(self, client: Client, shown: str) -> None:
        assert "detail" not in ready(client, Authorization=shown)["probes"]["database"]

    def test_without_a_token_set_none_is_right(self, client: Client, settings: Any) -> None:
        settings.METRICS_TOKEN = ""
        assert "detail" not in ready(client, Authorization="Bearer ")["probes"]["database"]

    def test_people_who_are_no_staff_are_strangers(self, client: Client) -> None:
        client.force_login(UserFactory())
        assert "detail" not in ready(client)["probes"]["database"]

    def test_without_workers_the_site_is_ready_and_does_less(self, client: Client) -> None:
        answer = client.get(READY)

        assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
        assert answer.json()["probes"]["queue_embed"] == {"ok": False}

    def test_without_the_broker_likewise(self, client: Client, settings: Any) -> None:
        settings.REDIS_URL = "redis://127.0.0.1:1/0"
        answer = client.get(READY, headers=SHOWN)

        assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
        assert answer.json()["probes"]["broker"]["ok"] is False

    def test_without_the_database_nothing_is_ready_and_nobody_is_known(
        self, client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        client.force_login(UserFactory(is_staff=True))
        monkeypatch.setitem(connection.settings_dict, "HOST", str(tmp_path))
        answer = client.get(READY)

        assert (answer.status_code, answer.json()["status"]) == (503, "unready")
        assert answer.json()["probes"]["database"] == {"ok": False}

    def test_tables_that_lack_a_migration_are_not_ready(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        newer = health.known_migrations() | {("documents", "9999_of_tomorrow")}
        monkeypatch.setattr(health, "known_migrations", lambda: newer)
        answer = client.get(READY, headers=SHOWN)

        assert answer.status_code == 503
        assert answer.json()["probes"]["migrations"]["detail"].startswith("1 to apply")


def test_an_extension_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    monkeypatch.setattr(health, "EXTENSIONS", ("vector", "telepathy"))
    found = health.check_extensions()
    assert not found.ok
    assert "telepathy" in found.detail


def test_a_disk_without_room_for_an_upload_is_told(settings: Any, media_root: Path) -> None:
    assert health.check_storage().ok  # its directory is made when it is needed
    settings.MAX_UPLOAD_BYTES = 2**62
    assert "less than one upload" in health.check_storage().detail


def test_a_model_that_failed_of_late_is_told(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_cache, "_failures", {})
    assert health.check_models().ok
    query_cache.record_failure("default", RuntimeError("no weights"))
    assert health.check_models() == Outcome(ok=False, detail="default: no weights")
    query_cache.record_success("default")
    assert health.check_models() == Outcome(ok=True, detail="default")


class TestWatch:
    @pytest.fixture
    def never(self) -> Iterator[Event]:
        """For what hangs until the test is over."""
        event = Event()
        yield event
        event.set()

    def test_who_asks_often_is_told_the_same_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        looks: list[int] = []

        def look_at() -> Outcome:
            looks.append(1)
            return Outcome(ok=True, detail="")

        watch = HealthMonitor(lambda: [Probe("one", look_at)])
        assert {watch.report().state for _ in range(10)} == {"ok"}
        assert len(looks) == 1
        monkeypatch.setattr(health, "CACHE_SECONDS", -1.0)
        watch.report()
        assert len(looks) == 2

    def test_one_that_hangs_keeps_nobody_waiting_and_is_not_begun_again(
        self, monkeypatch: pytest.MonkeyPatch, never: Event
    ) -> None:
        monkeypatch.setattr(health, "PROBE_TIMEOUT_SECONDS", 0.05)
        monkeypatch.setattr(health, "CACHE_SECONDS", -1.0)
        begun: list[int] = []

        def hang() -> Outcome:
            begun.append(1)
            never.wait(60)
            return Outcome(ok=True, detail="late")

        watch = HealthMonitor(lambda: [Probe("slow", hang, is_required=True)])
        for _ in range(3):
            assert watch.report().state == "unready"
        assert len(begun) == 1
        never.set()
        wait_until(lambda: watch.report().is_ready, what="its answer is taken after all")

    def test_what_a_probe_raises_is_told_without_its_secrets(self) -> None:
        def fail() -> Outcome:
            raise RuntimeError("no postgresql://site:hunter22@db/x\nand more")

        told = HealthMonitor(lambda: [Probe("one", fail)]).report().outcomes["one"]
        assert told == Outcome(ok=False, detail="no postgresql://…@db/x")


def test_a_web_server_that_starts_before_its_database_asks_for_it_again(
    monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    monkeypatch.setenv("RAGSITE_DATABASE_POOL_SIZE", "0")  # which the module sets else
    from ragsite import gunicorn

    given, pauses = [OperationalError("away"), OperationalError("starting up"), ["default"]], []

    def asked() -> list[str]:
        answer = given.pop(0)
        if isinstance(answer, OperationalError):
            raise answer
        return answer

    monkeypatch.setattr(services, "live_embedders", asked)
    monkeypatch.setattr(gunicorn, "sleep", pauses.append)
    monkeypatch.setattr(connection, "close", lambda: None)  # the test's transaction
    assert gunicorn._live_aliases() == ["default"]
    assert pauses == [1.0, 2.0]


@pytest.mark.parametrize(
    ("setting", "value", "found"),
    [
        ("LOG_FORMAT", "xml", ["ragsite.E001"]),
        ("LOG_FORMAT", "json", []),
        ("METRICS_TOKEN", "short", ["ragsite.E002"]),
        ("METRICS_TOKEN", "long enough but with spaces", ["ragsite.E002"]),
        ("METRICS_TOKEN", "a-token-of-random-characters", []),
        ("METRICS_TOKEN", "", []),
    ],
)
def test_wrong_settings_of_watching_are_found(
    settings: Any, setting: str, value: str, found: list[str]
) -> None:
    settings.METRICS_TOKEN = ""
    setattr(settings, setting, value)
    assert [message.id for message in check_monitoring(None)] == found


def test_a_worker_is_seen_while_it_lives() -> None:
    client = Redis.from_url(health.settings.REDIS_URL)
    worker = presence.WorkerHeartbeat(client, name="embed@here", queues=["embed"])
    worker.start()
    wait_until(lambda: presence.live_workers(client, "embed"), what="it has said so")
    assert presence.live_workers(client, "embed") == ["embed@here"]
    assert health.check_queue("embed") == Outcome(ok=True, detail="1 at work")
    assert not health.check_queue("ingest").ok
    worker.stop()
    assert presence.live_workers(client, "embed") == []


def test_a_worker_that_says_nothing_is_not_seen() -> None:
    client = Redis.from_url(health.settings.REDIS_URL)
    client.zadd(presence._key("embed"), {"embed@dead": 1.0})
    assert presence.live_workers(client, "embed") == []
    client.delete(presence._key("embed"))
