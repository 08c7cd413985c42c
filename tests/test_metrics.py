"""What Prometheus reads: figures of all processes, in few series, and for nobody else."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site_settings
from django.db import transaction
from django.test import Client
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from common import valkey
from documents.ingestion.jobs import add_timings
from documents.tests.factories import CollectionFactory, DocumentFactory, RunFactory
from ragsite import health, metrics_directory
from ragsite import metrics as metrics_views
from ragsite.health import HealthMonitor
from search.query_options import site_scope
from search.services import search

TOKEN = "observers-token"


@pytest.fixture(autouse=True)
def _read_anew(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    watch = HealthMonitor(health.monitor._listed)
    monkeypatch.setattr(metrics_views, "monitor", watch)
    monkeypatch.setattr(metrics_views, "CACHE_SECONDS", -1.0)
    settings.METRICS_TOKEN = TOKEN


def scraped(client: Client) -> dict[str, Metric]:
    """As Prometheus understands it."""
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200, answer.content
    assert "Set-Cookie" not in answer.headers
    return {each.name: each for each in text_string_to_metric_families(answer.content.decode())}


def samples(metric: Metric, suffix: str = "") -> dict[tuple[str, ...], float]:
    return {
        tuple(each.labels.values()): each.value
        for each in metric.samples
        if each.name == metric.name + suffix
    }


def test_strangers_are_told_nothing(client: Client) -> None:
    for headers in ({}, {"Authorization": "Bearer other"}, {"Authorization": "Bearer "}):
        answer = client.get("/metrics", headers=headers)
        assert answer.status_code == 401
        assert "ragsite_" not in answer.content.decode()
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert "Set-Cookie" not in answer.headers


@pytest.mark.nightly
@pytest.mark.django_db
def test_requests_are_counted_by_the_name_of_their_address(client: Client) -> None:
    before = samples(scraped(client)["ragsite_request_seconds"], "_count")
    client.get("/login/")
    for number in range(3):
        client.get(f"/nowhere/{number}/")
    client.generic("BREW", "/nowhere/")
    after = samples(scraped(client)["ragsite_request_seconds"], "_count")

    def more(*labels: str) -> float:
        return after[labels] - before.get(labels, 0.0)

    assert more("GET", "login", "200") == 1
    assert more("GET", "unknown", "404") == 3
    assert more("other", "unknown", "404") == 1
    assert not [labels for labels in after if any("nowhere" in each for each in labels)]


@pytest.mark.django_db
def test_searches_are_timed_stage_by_stage(client: Client) -> None:
    stages = ("plan", "database", "total")
    before = samples(scraped(client)["ragsite_search_stage_seconds"], "_count")
    collection = CollectionFactory()
    search("anything", scope=site_scope(workspace=collection.workspace), mode="lexical")
    after = samples(scraped(client)["ragsite_search_stage_seconds"], "_count")
    for stage in stages:
        assert after[(stage,)] - before.get((stage,), 0.0) == 1


@pytest.mark.django_db(transaction=True)
def test_what_the_site_holds_is_read_from_it(client: Client) -> None:
    DocumentFactory(status="ready")
    DocumentFactory(status="failed")
    found = scraped(client)

    assert samples(found["ragsite_documents"])[("ready",)] == 1
    assert samples(found["ragsite_documents"])[("failed",)] == 1
    assert samples(found["ragsite_healthy"])[("database",)] == 1
    assert set(samples(found["ragsite_queue_length"])) == {("ingest",), ("embed",), ("default",)}
    assert samples(found["ragsite_workers"])[("embed",)] == 0


@pytest.mark.django_db(transaction=True)
def test_stages_are_timed_wherever_workers_run_once_they_are_committed(client: Client) -> None:
    run = RunFactory()
    before = _stages(client)
    for seconds in (0.03, 0.05, 7.0, 4000.0):
        add_timings([run.id], {"parse": seconds})
    with transaction.atomic():
        add_timings([run.id], {"parse": 1.0})
        transaction.set_rollback(True)
    after = _stages(client)
    more = {bound: int(after[bound] - before.get(bound, 0)) for bound in after}

    assert (more["0.01"], more["0.05"], more["5.0"], more["10.0"]) == (0, 2, 2, 3)
    assert (more["300.0"], more["+Inf"]) == (3, 4)
    run.refresh_from_db()
    assert run.timings == {"parse": 4007.08}


def _stages(client: Client) -> dict[str, float]:
    """How many pieces of parsing took no longer than each bound."""
    metric = scraped(client)["ragsite_ingest_stage_seconds"]
    return {
        each.labels["le"]: each.value
        for each in metric.samples
        if each.name.endswith("_bucket") and each.labels["stage"] == "parse"
    }


@pytest.mark.django_db
def test_without_the_broker_the_rest_is_told(client: Client, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    valkey.observe_durations({"parse": 1.0})  # the work goes on
    found = scraped(client)
    assert "ragsite_queue_length" not in found
    assert samples(found["ragsite_healthy"])[("broker",)] == 0
    assert "ragsite_documents" in found


COUNT = """
from common.metrics import POOL_IN_USE, REQUEST_SECONDS
REQUEST_SECONDS.labels("GET", "login", "200").observe(0.2)
POOL_IN_USE.inc(3)
"""


def test_one_process_tells_what_all_have_counted_and_the_dead_hold_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prometheus_client import generate_latest, multiprocess

    monkeypatch.setenv(metrics_directory.VARIABLE, "")
    own = metrics_directory.create_directory(tmp_path)
    assert os.environ[metrics_directory.VARIABLE] == str(own)
    workers = [
        subprocess.Popen([sys.executable, "-c", COUNT], cwd=site_settings.BASE_DIR)
        for _ in range(2)
    ]
    assert [worker.wait(60) for worker in workers] == [0, 0]

    def told() -> dict[str, Metric]:
        from ragsite.metrics import process_registry

        text = generate_latest(process_registry()).decode()
        return {each.name: each for each in text_string_to_metric_families(text)}

    assert samples(told()["ragsite_database_pool_in_use"]) == {(): 6.0}
    for worker in workers:
        multiprocess.mark_process_dead(worker.pid)
    found = told()
    assert samples(found["ragsite_request_seconds"], "_count") == {("GET", "login", "200"): 2.0}
    assert "ragsite_database_pool_in_use" not in found
    metrics_directory.remove_directory(tmp_path)
    assert not own.exists()


def test_what_a_killed_server_left_goes_and_what_another_uses_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(metrics_directory.VARIABLE, "")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left, used = tmp_path / "metrics" / str(dead.pid), tmp_path / "metrics" / str(os.getppid())
    for each in (left, used):
        each.mkdir(parents=True)
    own = metrics_directory.create_directory(tmp_path)
    (own / "counter_1.db").touch()
    assert (
        metrics_directory.create_directory(tmp_path) == own
    )  # a container's server has the same number every time
    assert not left.exists()
    assert used.exists()
    assert list(own.iterdir()) == []
