"""Sessions, one-time links, passwords for owners only, and the header of a proxy."""

from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.audit import Action, Kind
from accounts.models import (
    Change,
    Identity,
    LoginSession,
    Membership,
    SecondFactor,
    User,
    Workspace,
)
from accounts.sign_in import prune_sessions
from accounts.tests.keys import basic_header

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quick_passwords")]
PASSWORD = "correct horse battery staple"
PHONE = "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/120.0 Mobile Safari/537.36"
DESK = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"


@pytest.fixture(autouse=True)
def lab(settings: Any) -> Workspace:
    settings.LOGIN_ADDRESS_RATE = "0"  # so many failures come from one address
    return Workspace.objects.create(slug="lab", name="The lab")


@pytest.fixture
def alice(lab: Workspace) -> User:
    user = User.objects.create_user("alice", password=PASSWORD)
    Membership.objects.create(user=user, workspace=lab, role="owner")
    return user


def browser(agent: str = DESK, username: str = "alice") -> Client:
    """A browser in which somebody has logged in."""
    client = Client(HTTP_USER_AGENT=agent, REMOTE_ADDR="192.0.2.7")
    client.post("/login/", {"username": username, "password": PASSWORD})
    return client


def is_open(client: Client) -> bool:
    return client.get("/documents/").status_code == 200


# --- sessions ----------------------------------------------------------------------------------


def test_sessions_are_listed_with_where_and_by_what(alice: User) -> None:
    browser(PHONE)
    page = browser(DESK).get("/account/security/")

    assert [(each["where"], each["is_this"]) for each in page.context["sessions"]] == [
        ("Firefox, Linux", True),
        ("Chrome, Android", False),
    ]
    assert "192.0.2.7 · by password" in page.text
    assert not any(row.session_id in page.text for row in LoginSession.objects.all())


def test_one_session_is_ended(alice: User) -> None:
    phone, desk = browser(PHONE), browser(DESK)
    row = LoginSession.objects.get(agent=PHONE)

    desk.post(f"/account/sessions/{row.pk}/end/")
    assert (is_open(phone), is_open(desk)) == (False, True)
    change = Change.objects.get(action=Action.ENDED)
    assert (change.kind, change.user, change.thing) == (Kind.SESSION, alice, row.pk)


def test_all_others_are_ended(alice: User) -> None:
    phone, other, desk = browser(PHONE), browser(PHONE), browser(DESK)

    desk.post("/account/sessions/end-others/")
    assert [is_open(each) for each in (phone, other, desk)] == [False, False, True]


def test_nobody_ends_the_session_of_another(alice: User) -> None:
    User.objects.create_user("bob", password=PASSWORD)
    desk = browser()
    row = LoginSession.objects.get()

    assert browser(username="bob").post(f"/account/sessions/{row.pk}/end/").status_code == 404
    assert is_open(desk)


def test_a_new_password_ends_the_other_sessions_and_no_key(alice: User) -> None:
    phone, desk = browser(PHONE), browser(DESK)
    new = "another horse with staples"
    form = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}

    assert desk.post("/account/password/", form).url == "/account/security/"
    assert (is_open(phone), is_open(desk)) == (False, True)
    assert len(desk.get("/account/security/").context["sessions"]) == 1
    assert Change.objects.filter(kind=Kind.USER, details={"fields": ["password"]}).exists()


def test_a_new_password_needs_the_former_one(alice: User) -> None:
    new = "another horse with staples"
    form = {"old_password": "wrong", "new_password1": new, "new_password2": new}

    assert browser().post("/account/password/", form).status_code == 200
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)


def test_sessions_from_before_the_list_come_onto_it(client: Client, alice: User) -> None:
    client.force_login(alice)
    session = client.session
    del session["seen_at"]
    session.save()

    client.get("/documents/")
    assert LoginSession.objects.get().user == alice


def test_sessions_that_have_expired_are_deleted(alice: User) -> None:
    desk, phone = browser(), browser(PHONE)
    key = phone.session.session_key
    Session.objects.filter(pk=key).update(expire_date=timezone.now() - timedelta(minutes=1))

    assert prune_sessions() == 1
    assert LoginSession.objects.get().session_id == desk.session.session_key


def test_logging_out_takes_the_session_off_the_list(alice: User) -> None:
    desk = browser()
    desk.post("/logout/")

    assert not LoginSession.objects.exists()


# --- one-time links ----------------------------------------------------------------------------


def make_link(username: str = "alice") -> str:
    out = StringIO()
    call_command("loginlink", username, stdout=out)
    path = next(line for line in out.getvalue().splitlines() if "/login/link/" in line)
    return path[path.index("/login/link/") :].strip()


def test_a_link_logs_in_once_and_only_by_its_button(client: Client, alice: User) -> None:
    link = make_link()
    assert client.get(link).status_code == 200
    assert client.get(link).status_code == 200  # by a preview, say
    assert client.post(link).url == "/account/security/"
    assert client.session["_auth_user_id"] == str(alice.pk)

    other = Client()
    assert other.post(link).status_code == 403
    assert "_auth_user_id" not in other.session


def test_a_link_replaces_a_forgotten_password(client: Client, alice: User) -> None:
    client.post(make_link())
    new = "another horse with staples"

    client.post("/account/password/", {"new_password1": new, "new_password2": new})
    alice.refresh_from_db()
    assert alice.check_password(new)


def test_a_link_is_void_after_15_minutes(
    client: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = make_link()
    later = datetime.now() + timedelta(seconds=901)
    monkeypatch.setattr("accounts.sign_in._LinkTokens._now", lambda self: later)

    assert client.post(link).status_code == 403


@pytest.mark.parametrize(
    "path", ["x/y", "MQ/abc-def", "MQ/zzzzzzzzzzzzzzzz-1", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5/a-b"]
)
def test_a_link_that_nobody_made_opens_nothing(client: Client, alice: User, path: str) -> None:
    assert client.post(f"/login/link/{path}/").status_code == 403


def test_a_link_for_nobody_says_so() -> None:
    with pytest.raises(CommandError, match="no user"):
        call_command("loginlink", "nobody")


def test_a_link_opens_an_account_whose_second_factor_is_lost(
    client: Client, alice: User, settings: Any
) -> None:
    settings.SECOND_FACTOR = "all"
    factor = SecondFactor.objects.create(user=alice, kind="totp", secret=b"lost")
    client.post(make_link())

    assert client.post(f"/account/factors/{factor.pk}/remove/").status_code == 302
    assert not SecondFactor.objects.exists()


# --- passwords for owners ----------------------------------------------------------------------


def test_passwords_may_be_for_owners_only(alice: User, lab: Workspace, settings: Any) -> None:
    settings.LOCAL_LOGIN = "owners"
    bob = User.objects.create_user("bob", password=PASSWORD)
    Membership.objects.create(user=bob, workspace=lab, role="editor")
    answer = Client().post("/login/", {"username": "bob", "password": PASSWORD})

    assert "Only owners can log in with a password here" in answer.text
    assert "Only owners" not in Client().post("/login/", {"username": "bob", "password": "x"}).text
    assert is_open(browser())
    api = APIClient(headers=basic_header("bob", PASSWORD))
    assert api.get("/api/v1/collections/").status_code == 401
    reasons = {row.details["values"]["reason"] for row in Change.objects.filter(user=bob)}
    assert reasons == {"local_login"}


# --- the header of a proxy ---------------------------------------------------------------------


@pytest.fixture
def proxy(settings: Any) -> None:
    settings.PROXY_SIGN_IN = {
        "proxy": {
            "header": "X-Remote-User",
            "groups": "X-Remote-Groups",
            "email": "X-Remote-Email",
            "addresses": ["10.1.0.0/16"],
            "workspace": "lab",
        }
    }
    place = settings.MIDDLEWARE.index("accounts.middleware.workspace_rls")
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE[:place],
        "accounts.proxy_sign_in.proxy_sign_in",
        *settings.MIDDLEWARE[place:],
    ]


def behind_proxy(user: str = "", address: str = "10.1.2.3", **headers: str) -> Client:
    named = {"HTTP_X_REMOTE_USER": user} if user else {}
    return Client(REMOTE_ADDR=address, **named, **headers)


@pytest.mark.usefixtures("proxy")
def test_a_proxy_signs_in_whom_it_names() -> None:
    client = behind_proxy("carla", HTTP_X_REMOTE_GROUPS="crane, harbour")

    assert is_open(client)
    assert Identity.objects.get().groups == ["crane", "harbour"]
    assert Membership.objects.get().role == "viewer"
    assert is_open(client)
    assert Change.objects.filter(action=Action.SIGNED_IN).count() == 1


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize("address", ["192.0.2.1", "", "10.2.0.1", "::1"])
def test_the_header_from_elsewhere_is_refused(address: str) -> None:
    client = behind_proxy("carla", address, HTTP_X_FORWARDED_FOR="10.1.2.3")

    assert client.get("/documents/").status_code == 403
    assert not User.objects.exists()


@pytest.mark.usefixtures("proxy")
def test_a_session_ends_when_the_proxy_names_somebody_else_or_nobody() -> None:
    client = behind_proxy("carla")
    assert is_open(client)
    client.defaults["HTTP_X_REMOTE_USER"] = "dora"
    assert is_open(client)
    assert client.session["_auth_user_id"] == str(User.objects.get(username="dora").pk)
    del client.defaults["HTTP_X_REMOTE_USER"]
    assert not is_open(client)


@pytest.mark.usefixtures("proxy")
def test_the_api_takes_no_header_for_a_key() -> None:
    assert behind_proxy("carla").get("/api/v1/collections/").status_code == 401


@pytest.mark.usefixtures("proxy")
def test_the_owner_logs_in_with_a_password_behind_the_proxy(alice: User) -> None:
    client = behind_proxy()
    client.post("/login/", {"username": "alice", "password": PASSWORD})

    assert is_open(client)


def test_the_header_is_nothing_where_no_proxy_is_trusted() -> None:
    assert not is_open(behind_proxy("carla"))
    assert not User.objects.exists()
