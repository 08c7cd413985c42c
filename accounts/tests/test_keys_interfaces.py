"""API keys over the API, by `manage.py apikeys` and on their page."""

import html
import json
import re
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from accounts.api_keys import authenticate_key, revoke_key
from accounts.models import ApiKey, IdempotencyRecord
from accounts.tests.keys import client_with, make_key
from documents.tests.factories import MembershipFactory, UserFactory
from tests.kit import client_of

pytestmark = pytest.mark.django_db
KEYS = "/api/v1/keys/"
COLLECTIONS = "/api/v1/collections/"


def test_the_answer_that_makes_a_key_is_the_only_one_with_its_secret() -> None:
    member = MembershipFactory()
    client = client_of(member)
    asked = {"name": "nightly import", "scopes": ["write", "read"]}

    answer = client.post(KEYS, asked)

    made = answer.json()
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    assert client_with(made["secret"]).get(COLLECTIONS).status_code == 200
    assert made["scopes"] == ["read", "write"]
    assert (made["user"], made["workspace"]) == (member.user.username, member.workspace.slug)
    assert (made["expires_at"], made["last_used_at"], made["is_live"]) == (None, None, True)
    for shown in (client.get(KEYS), client.get(f"{KEYS}{made['id']}/")):
        assert made["prefix"] in shown.content.decode()
        assert made["secret"] not in shown.content.decode()
        assert "digest" not in shown.content.decode()


def test_an_idempotency_key_keeps_no_secret() -> None:
    headers = {"Idempotency-Key": "same"}
    client = client_of(MembershipFactory())
    asked = {"name": "n", "scopes": ["read"]}

    made = [client.post(KEYS, asked, headers=headers).json()["secret"] for _ in range(2)]

    assert made[0] != made[1]
    assert not IdempotencyRecord.objects.exists()


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


PAGE = "/keys/"
FORM = {"name": "nightly import", "scopes": ["read", "write"], "days": "90"}


@pytest.fixture
def member() -> Any:
    return MembershipFactory()


@pytest.fixture
def page(client: Client, member: Any) -> Client:
    client.force_login(member.user)
    return client


def test_a_new_key_shows_its_secret_once_and_a_command_to_try(page: Client) -> None:
    answer = page.post(PAGE, FORM)

    codes = [html.unescape(each) for each in re.findall(r"<code>([^<]+)</code>", answer.text)]
    secret = next(code for code in codes if code.startswith("rs_"))
    key = authenticate_key(secret)
    assert key is not None
    assert key.scopes == ["read", "write"]
    assert (key.expires_at - key.created_at).days in (89, 90)
    command = f"curl -H 'Authorization: Bearer {secret}' 'http://testserver/api/v1/search/?q=hello'"
    assert command in codes
    assert answer.headers["Cache-Control"] == "no-store"
    again = page.get(PAGE).text
    assert secret not in again
    assert "nightly import" in again


@pytest.mark.parametrize("scope", ["read", "write", "chat", "memory", "admin"])
def test_there_is_something_to_try_with_each_scope(page: Client, scope: str) -> None:
    text = html.unescape(page.post(PAGE, {**FORM, "scopes": [scope]}).text)
    address = re.search(
        r"curl -H 'Authorization: Bearer rs_[^']+' .*?'http://testserver(/[^']+)'", text
    )
    assert address is not None


def test_a_key_may_last_until_it_is_revoked(page: Client) -> None:
    page.post(PAGE, {**FORM, "days": ""})
    assert ApiKey.objects.get().expires_at is None


@pytest.mark.parametrize("wrong", [{"name": ""}, {"scopes": []}, {"scopes": ["x"]}, {"days": "7"}])
def test_a_wrong_form_makes_no_key_and_says_where(page: Client, wrong: dict[str, Any]) -> None:
    answer = page.post(PAGE, {**FORM, **wrong})

    assert answer.status_code == 400
    assert 'class="errorlist"' in answer.text
    assert not ApiKey.objects.exists()


def test_revoking_asks_first(page: Client, member: Any) -> None:
    key, secret = make_key(member, name="<b>old</b>")
    address = f"{PAGE}{key.pk}/revoke/"

    asked = page.get(address).text
    assert "&lt;b&gt;old&lt;/b&gt;" in asked
    assert authenticate_key(secret) == key

    assert page.post(address).url == PAGE
    assert authenticate_key(secret) is None
    assert "Revoked" in page.get(PAGE).text


def test_keys_that_work_come_before_those_that_are_revoked(page: Client, member: Any) -> None:
    for name in ("first", "second", "third"):
        make_key(member, name=f"the {name}")
    revoke_key(key=ApiKey.objects.get(name="the third"))

    shown = re.findall(r"the (?:first|second|third)(?=<p)", page.get(PAGE).text)

    assert shown == ["the second", "the first", "the third"]


def test_the_admin_deletes_a_user_together_with_the_keys(client: Client) -> None:
    member = MembershipFactory()
    _, secret = make_key(member)
    client.force_login(UserFactory(is_superuser=True))

    client.post(reverse("admin:accounts_user_delete", args=[member.user.pk]), {"post": "yes"})

    assert authenticate_key(secret) is None
    assert not ApiKey.objects.exists()


def test_the_admin_shows_keys_without_secrets_and_revokes_them(client: Client) -> None:
    key, secret = make_key(MembershipFactory(), name="to end")
    client.force_login(UserFactory(is_superuser=True))
    listed = reverse("admin:accounts_apikey_changelist")

    for shown in (client.get(listed), client.get(f"{listed}{key.pk}/change/")):
        assert "to end" in shown.text
        assert key.digest not in shown.text
    assert client.get(f"{listed}add/").status_code == 403
    client.post(listed, {"action": "revoke", "_selected_action": [key.pk]})

    assert authenticate_key(secret) is None
