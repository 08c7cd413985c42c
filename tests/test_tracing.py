"""OpenTelemetry is not needed; where it is installed it is told of requests and what they cause."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings

from tests.plugin import database_url_of_tests

#: As if they were not installed.
ABSENT = "import sys; sys.modules['opentelemetry.sdk'] = None; "
SET_UP = "import django; django.setup(); "
IN_MEMORY = """
import django, json
from django.conf import settings
django.setup()
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from ragsite import tracing
memory = InMemorySpanExporter()
tracing.instrument(SimpleSpanProcessor(memory))
from django.test import Client
Client().get("/login/?q=secretquestion")
Client().post("/login/", {"username": "nobody", "password": "secretquestion"})
print(json.dumps([[each.name, dict(each.attributes)] for each in memory.get_finished_spans()]))
"""


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "ragsite.settings", **variables}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_an_address_without_the_packages_is_a_warning_and_the_site_starts() -> None:
    asked = ABSENT + SET_UP + "from ragsite import tracing; print(tracing.start_tracing())"
    done = run(asked, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1")

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False"
    assert "requirements-otel.txt" in done.stderr


@pytest.mark.nightly
@pytest.mark.django_db
def test_requests_and_their_statements_are_told_without_what_was_asked() -> None:
    done = run(IN_MEMORY, DATABASE_URL=database_url_of_tests())
    assert done.returncode == 0, done.stderr
    spans: list[tuple[str, dict[str, Any]]] = json.loads(done.stdout)

    assert any("login" in name for name, _ in spans)
    assert any("SELECT" in str(told) for _, told in spans)
    assert "secretquestion" not in done.stdout
