"""The page of API keys, as somebody without JavaScript uses it, and the admin's."""

import html
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.api_keys import authenticate_key, revoke_key
from accounts.models import ApiKey
from accounts.tests.keys import make_key
from documents.tests.factories import MembershipFactory, UserFactory

pytestmark = pytest.mark.django_db
PAGE = "/keys/"
FORM = {"name": "nightly import", "scopes": ["read", "write"], "days": "90"}


@pytest.fixture
def member() -> Any:
    return MembershipFactory()


@pytest.fixture
def page(client: Client, member: Any) -> Client:
    client.force_login(member.user)
    return client


def test_every_page_leads_here(page: Client) -> None:
    assert f'href="{PAGE}"' in page.get("/").text


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
