"""docker-compose.yml: what is published, what is looked after, and what reaches the site."""

import http.client
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
SITE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = SITE["services"]
APP = ("web", "worker", "embed", "beat", "migrate")


def test_only_the_web_server_is_published_and_only_to_this_machine() -> None:
    published = {name: each["ports"] for name, each in SERVICES.items() if "ports" in each}
    assert list(published) == ["web"]
    assert published["web"][0].startswith("${BIND:-127.0.0.1}:")


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "migrate"])
def test_each_service_comes_back_and_is_looked_after(name: str) -> None:
    service = SERVICES[name]
    assert service["restart"] == "unless-stopped"
    assert "test" in service["healthcheck"] or (name, service["healthcheck"]["disable"]) == (
        "embed",
        True,
    )


def test_a_migration_is_tried_again_and_not_for_ever() -> None:
    assert SERVICES["migrate"]["restart"] == "on-failure:5"


def test_what_waits_for_another_waits_until_it_is_well() -> None:
    for name in ("web", "worker", "embed", "beat"):
        waits = SERVICES[name]["depends_on"]
        assert waits["migrate"]["condition"] == "service_completed_successfully"
        assert waits["broker"]["condition"] == "service_healthy"
    assert SERVICES["migrate"]["depends_on"]["db"]["condition"] == "service_healthy"


@pytest.mark.parametrize("name", APP)
def test_no_service_of_ours_has_rights_that_it_does_not_need(name: str) -> None:
    assert SERVICES[name]["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in SERVICES[name]["security_opt"]


@pytest.mark.parametrize(
    "variable",
    [
        *("RAGSITE_LOGIN_RATE", "RAGSITE_LOGIN_ADDRESS_RATE", "RAGSITE_API_RATE"),
        *("RAGSITE_API_MODEL_RATE", "RAGSITE_METRICS_TOKEN", "LOG_FORMAT", "LOG_LEVEL"),
        *("RAGSITE_MODEL_TOKENS_PER_WORKSPACE", "RAGSITE_MODEL_TOKENS_PER_USER"),
        *("RAGSITE_HTTPS", "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS"),
    ],
)
def test_what_operators_set_reaches_the_site(variable: str) -> None:
    assert all(variable in SERVICES[name]["environment"] for name in APP)
    described = (ROOT / "docs" / "reference" / "settings.md").read_text()
    assert f"`{variable}`" in described


def test_every_variable_of_the_file_is_one_that_somebody_reads() -> None:
    known = (ROOT / "docs" / "reference" / "settings.md").read_text()
    unknown = [name for name in SERVICES["web"]["environment"] if f"`{name}`" not in known]
    assert unknown == []


def test_no_secret_has_a_default() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    for name in ("SECRET_KEY", "POSTGRES_PASSWORD"):
        uses = re.findall(rf"\$\{{{name}(:.)", text)
        assert uses
        assert set(uses) == {":?"}


@pytest.mark.django_db(transaction=True)
def test_the_web_servers_healthcheck_tells_ready_from_not(
    live_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, _, flag, program = SERVICES["web"]["healthcheck"]["test"]
    assert (kind, flag) == ("CMD", "-c")
    host, port = live_server.url.removeprefix("http://").split(":")
    assert '"localhost", 8000' in program
    program = program.replace('"localhost", 8000', f'"{host}", {port}')

    def code() -> int:
        return subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode

    assert code() == 0
    site = http.client.HTTPConnection(host, int(port))
    site.request("GET", "/health/live")
    assert site.getresponse().status == 200
    site.close()
    assert subprocess.run(
        [sys.executable, "-c", program.replace("/health/ready", "/health/nowhere")],
        timeout=60,
        check=False,
    ).returncode


def test_containers_of_the_site_write_only_to_volumes_and_tmp() -> None:
    image = (ROOT / "Dockerfile").read_text()
    volumes = set(re.findall(r'"(/\w+)"', re.findall(r"^VOLUME .*", image, re.MULTILINE)[0]))
    for name in APP:
        service = SERVICES[name]
        assert service["read_only"] is True
        assert service["tmpfs"] == ["/tmp"]
        assert {volume.rpartition(":")[2] for volume in service["volumes"]} == volumes
    own = dict(re.findall(r"\b([A-Z_]+)=(/\w+)(?= |$)", image, re.MULTILINE))
    assert {own["RAGSITE_VAR_DIR"], own["MEDIA_ROOT"]} == volumes
