"""docker-compose.yml, and Django's advice for a site in public."""

import http.client
import os
import re
import subprocess
import sys
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.contrib.admin import site
from django.core.checks import Tags, run_checks
from django.core.checks.registry import registry
from django.urls import get_resolver

from documents.models import Document

ROOT = Path(settings.BASE_DIR)
SITE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = SITE["services"]
APP = ("web", "worker", "embed", "beat", "migrate")
PUBLIC = {
    "RAGSITE_HTTPS": "true",
    "ALLOWED_HOSTS": "docs.example.org",
    "CSRF_TRUSTED_ORIGINS": "https://docs.example.org",
    "DEBUG": "false",
}


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


#: What the containers have values of their own for: paths and ports inside of them.
OWN = {"BIND", "HF_HOME", "MEDIA_ROOT", "PORT", "RAGSITE_VAR_DIR", "STATIC_ROOT"}


SETTINGS = (ROOT / "docs" / "reference" / "settings.md").read_text()


def documented() -> set[str]:
    """The settings of the reference and of .env.example."""
    example = (ROOT / ".env.example").read_text()
    return {
        *re.findall(r"^#?([A-Z][A-Z0-9_]+)=", example, re.M),
        *re.findall(r"^\| `([A-Z][A-Z0-9_]+)` \|", SETTINGS, re.M),
    }


@pytest.mark.parametrize("name", APP)
def test_every_setting_of_env_reaches_the_site(name: str) -> None:
    service = SERVICES[name]
    assert service["env_file"] == [{"path": ".env", "required": False}]
    # What stands under `environment` goes before the file: it must hand on what is set there.
    fixed = {
        variable
        for variable, value in service["environment"].items()
        if not str(value).startswith(f"${{{variable}:")
    }
    assert len(documented()) > 100
    assert fixed & documented() <= OWN
    assert fixed <= OWN


@pytest.mark.parametrize("file", ["docker-compose.embed-on-host.yml", "docker-compose.shards.yml"])
def test_further_files_fix_only_what_they_are_for(file: str) -> None:
    services = yaml.safe_load((ROOT / file).read_text())["services"]
    fixed = {
        variable
        for name, service in services.items()
        for variable in (service.get("environment") or {})
        if name in APP
    }
    own = {"DATABASE_SHARD_URLS", "RAGSITE_SHARED_MODELS"}
    assert all(each in own or each.startswith("EMBEDDER") for each in fixed)


def test_every_variable_of_the_file_is_one_that_somebody_reads() -> None:
    names = set(SERVICES["web"]["environment"]) - {"HF_HOME"}
    assert [name for name in names if f"`{name}`" not in SETTINGS] == []


def test_images_are_pinned_to_a_version() -> None:
    images = [service["image"] for service in SERVICES.values() if service["image"] != "ragsite"]
    recipe = (ROOT / "Dockerfile").read_text()
    images += re.findall(r"^FROM (\S+)", recipe, re.M)
    assert len(images) == 5
    assert [image for image in images if not re.search(r":\d+\.\d+\.\d+(-[\w.-]+)?$", image)] == []


def test_weights_of_models_are_in_a_volume_that_all_containers_share() -> None:
    recipe = (ROOT / "Dockerfile").read_text()
    (home,) = re.findall(r"\bHF_HOME=(\S+)", recipe)
    assert "models" in SITE["volumes"]
    for name in APP:
        assert SERVICES[name]["environment"]["HF_HOME"] == home
        assert f"models:{home}" in SERVICES[name]["volumes"]
    assert re.search(rf"install -d .*{home}\b", recipe)


def test_the_images_recipe_takes_only_what_is_there() -> None:
    recipe = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    requirements = set(re.findall(r"requirements[\w-]*\.txt", recipe))
    assert {name for name in requirements if not (ROOT / name).exists()} == set()
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert not {name for name in requirements if name in ignored}
    assert {".env", ".git", "var"} <= set(ignored)
    stages = re.findall(r"^FROM \S+(?: AS (\w+))?", recipe, re.M)
    assert set(re.findall(r"--from=(\w+)", recipe)) <= set(stages)
    assert recipe.rindex("USER ragsite") < recipe.rindex("CMD [")
    programs = re.findall(r'^CMD \["(\w+)", "([\w.]+):', recipe, re.M)
    assert programs == [("gunicorn", "ragsite.wsgi")]


def test_files_with_hashes_are_installed_by_a_command_of_their_own() -> None:
    """pip refuses to install what has no hash beside what has one."""
    recipe = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    installs = [part for part in re.split(r"&&|\n", recipe) if "pip " in part and " -r " in part]
    mixed = []
    for install in installs:
        names = re.findall(r"requirements[\w-]*\.txt", install)
        if len({"--hash=" in (ROOT / name).read_text() for name in names}) > 1:
            mixed.append(names)
    assert mixed == []
    assert installs


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
    program = program.replace("timeout=4", "timeout=60")  # the first request imports all views

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
    assert {own["RAGSITE_VAR_DIR"], own["MEDIA_ROOT"], own["HF_HOME"]} == volumes


def advice(**variables: str) -> subprocess.CompletedProcess[str]:
    """What `check --deploy` says, advice that is not even a warning included."""
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "INFO"]
    environment = {**os.environ, "SECRET_KEY": token_urlsafe(50), **PUBLIC, **variables}
    return subprocess.run(
        command,
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_there_is_no_advice_for_a_site_behind_https() -> None:
    said = advice()
    assert said.returncode == 0, said.stderr
    assert "no issues (0 silenced)" in said.stdout


@pytest.mark.nightly
def test_plain_http_and_debugging_are_advised_against() -> None:
    said = advice(RAGSITE_HTTPS="false", DEBUG="true")
    assert said.returncode == 1
    for number in ("security.W004", "security.W008", "security.W012", "security.W018"):
        assert number in said.stderr


def test_pages_are_checked_with_deploy_alone() -> None:
    pages = {Tags.urls, Tags.admin, Tags.templates}
    assert not pages & registry.tags_available()
    assert pages <= registry.tags_available(deployment_checks=True)


def test_what_is_wrong_with_an_admin_page_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    _ = get_resolver().url_patterns  # registers them
    monkeypatch.setattr(type(site.get_model_admin(Document)), "list_display", ["nothing_of_it"])
    found = run_checks(tags=[Tags.admin], include_deployment_checks=True)
    assert [message.id for message in found] == ["admin.E108"]
