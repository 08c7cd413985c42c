"""`manage.py apikeys`."""

import json
import re
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.api_keys import authenticate_key
from accounts.models import ApiKey
from accounts.tests.keys import make_key
from documents.tests.factories import MembershipFactory

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> Any:
    out = StringIO()
    call_command("apikeys", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def create(member: Any, *more: str) -> tuple[str, ...]:
    whose = ("--user", member.user.username, "--workspace", member.workspace.slug)
    return ("create", *whose, "--name", "nightly", *more)


def test_a_key_is_made_and_opens_what_it_was_made_for() -> None:
    member = MembershipFactory()

    made = run(*create(member, "--scope", "read", "--scope", "chat", "--expires-days", "3"))

    key = authenticate_key(made["secret"])
    assert key is not None
    assert (key.user, key.workspace, key.scopes) == (
        member.user,
        member.workspace,
        ["read", "chat"],
    )
    assert (key.expires_at - key.created_at).days in (2, 3)


def test_people_are_shown_the_secret_on_a_line_of_its_own() -> None:
    out = StringIO()
    call_command("apikeys", *create(MembershipFactory(), "--scope", "read"), stdout=out)

    assert authenticate_key(out.getvalue().splitlines()[-1]) == ApiKey.objects.get()


def test_the_list_holds_no_secret_and_is_narrowed() -> None:
    member, other = MembershipFactory(), MembershipFactory()
    key, secret = make_key(member)
    make_key(other)

    assert [each["id"] for each in run("list", "--user", member.user.username)] == [key.pk]
    assert len(run("list")) == 2
    assert secret not in json.dumps(run("list"))
    assert run("list", "--workspace", other.workspace.slug)[0]["user"] == other.user.username


def test_on_a_terminal_of_80_columns_the_list_breaks_no_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal then
    member = MembershipFactory(user__username="demo", workspace__slug="default")
    key, _ = make_key(member, name="a notebook that reads and writes documents")

    call_command("apikeys", "list")

    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert len(lines) > 3  # it did not fit on one line
    assert max(map(len, lines)) <= 80
    words = " ".join(lines).split()
    assert {f"{key.prefix}…", *key.name.split(), "memory,", "admin", "live"} <= set(words)


def test_a_revoked_key_opens_nothing() -> None:
    key, secret = make_key(MembershipFactory())

    assert run("revoke", str(key.pk))["is_live"] is False
    assert authenticate_key(secret) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("revoke", "999999"), "There is no key 999999"),
        (("list", "--user", "nobody"), "no user “nobody”"),
        (("list", "--workspace", "nowhere"), "no workspace “nowhere”"),
    ],
)
def test_what_is_not_there_is_named(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandError, match=said) as failed:
        run(*arguments)
    assert failed.value.returncode == 2


@pytest.mark.parametrize("days", ["0", "-1", "40000", "x"])
def test_a_lifetime_that_cannot_be_is_refused(days: str) -> None:
    with pytest.raises(CommandError, match="number of days"):
        run(*create(MembershipFactory(), "--scope", "read", "--expires-days", days))
