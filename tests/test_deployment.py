"""A site in public: Django's own advice for it, on the settings that operators are told to make."""

import os
import subprocess
import sys
from secrets import token_urlsafe

import pytest
from django.conf import settings
from django.contrib.admin import site
from django.core.checks import Tags, run_checks
from django.core.checks.registry import registry
from django.urls import get_resolver

from documents.models import Document

PUBLIC = {
    "RAGSITE_HTTPS": "true",
    "ALLOWED_HOSTS": "docs.example.org",
    "CSRF_TRUSTED_ORIGINS": "https://docs.example.org",
    "DEBUG": "false",
}


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
