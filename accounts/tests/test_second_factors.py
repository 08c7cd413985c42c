"""Second factors: apps, recovery codes, who must have one, and what opens without one."""

import time
from base64 import b32decode
from typing import Any

import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.test import Client
from rest_framework.test import APIClient

from accounts.audit import Action, Kind
from accounts.models import Change, Membership, SecondFactor, User, Workspace
from accounts.tests.keys import basic_header, client_of_key

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quick_passwords")]
PASSWORD = "correct horse battery staple"


@pytest.fixture(autouse=True)
def optional(settings: Any) -> None:
    settings.SECOND_FACTOR = "optional"
    settings.LOGIN_ADDRESS_RATE = "0"  # so many failures come from one address


@pytest.fixture
def alice() -> User:
    user = User.objects.create_user("alice", password=PASSWORD)
    workspace = Workspace.objects.create(slug="lab", name="The lab")
    Membership.objects.create(user=user, workspace=workspace, role="owner")
    return user


@pytest.fixture
def code_clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of codes, which tests set forward by the seconds that they add."""
    ahead = [0.0]
    monkeypatch.setattr("accounts.second_factors.time", lambda: time.time() + ahead[0])
    return ahead


def log_in(client: Client, password: str = PASSWORD, **more: str) -> Any:
    return client.post("/login/", {"username": "alice", "password": password, **more})


def set_up_app(client: Client, clock: list[float]) -> tuple[bytes, list[str]]:
    """An app's secret, and the recovery codes that came with it."""
    page = client.get("/account/authenticator/")
    secret = b32decode(page.context["secret"].replace(" ", ""))
    answer = client.post("/account/authenticator/", {"code": code_of(secret, clock)})
    assert answer.status_code == 200, answer.url
    return secret, answer.context["codes"]


def code_of(secret: bytes, clock: list[float]) -> str:
    return TOTP(secret, 6, SHA1(), 30).generate(int(time.time() + clock[0])).decode()


@pytest.fixture
def app(client: Client, alice: User, code_clock: list[float]) -> tuple[bytes, list[str]]:
    """Alice's app and recovery codes; she is logged out again, and half a minute has passed."""
    log_in(client)
    made = set_up_app(client, code_clock)
    client.logout()
    code_clock[0] += 60
    return made


def is_logged_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_a_password_alone_does_not_open_an_account_with_an_app(
    client: Client, app: tuple[bytes, list[str]], code_clock: list[float]
) -> None:
    answer = log_in(client, next="/documents/")
    assert answer.url == "/login/second/"
    assert not is_logged_in(client)
    assert client.get("/documents/").status_code == 302

    answer = client.post("/login/second/", {"code": code_of(app[0], code_clock)})
    assert answer.url == "/documents/"
    assert is_logged_in(client)


def test_a_code_is_good_once(
    client: Client, app: tuple[bytes, list[str]], code_clock: list[float]
) -> None:
    code = code_of(app[0], code_clock)
    log_in(client)
    client.post("/login/second/", {"code": code})
    client.logout()
    log_in(client)

    answer = client.post("/login/second/", {"code": code})
    assert answer.status_code == 403
    assert "was already used" in answer.text
    assert not is_logged_in(client)


def test_a_code_of_two_minutes_ago_is_none(
    client: Client, app: tuple[bytes, list[str]], code_clock: list[float]
) -> None:
    code = code_of(app[0], code_clock)
    code_clock[0] += 120
    log_in(client)

    assert client.post("/login/second/", {"code": code}).status_code == 403


def test_a_recovery_code_is_good_once_however_it_is_typed(
    client: Client, app: tuple[bytes, list[str]]
) -> None:
    code = app[1][3].lower().replace("-", " ")
    log_in(client)
    assert client.post("/login/second/", {"code": code}).status_code == 302
    client.logout()
    log_in(client)

    assert client.post("/login/second/", {"code": code}).status_code == 403
    assert len(SecondFactor.objects.get(kind="recovery").codes) == 9


def test_no_secret_and_no_code_stands_in_the_database(app: tuple[bytes, list[str]]) -> None:
    secret, codes = app
    rows = SecondFactor.objects.all()
    stored = b"".join(bytes(row.secret) + ",".join(row.codes).encode() for row in rows)
    assert secret not in stored
    assert not any(code.replace("-", "").encode() in stored for code in codes)
    assert len(set(codes)) == 10


def test_wrong_codes_are_counted_for_the_account(
    client: Client, app: tuple[bytes, list[str]], code_clock: list[float], settings: Any
) -> None:
    settings.LOGIN_RATE = "3/hour"
    log_in(client)
    wrong = [client.post("/login/second/", {"code": "000000"}).status_code for _ in range(4)]

    assert wrong == [403, 403, 403, 429]
    answer = client.post("/login/second/", {"code": code_of(app[0], code_clock)})
    assert answer.status_code == 429
    assert not is_logged_in(client)
    refused = Change.objects.filter(action=Action.REFUSED, kind=Kind.SESSION)
    assert refused.first().details["values"]["reason"] == "second_factor"  # type: ignore[union-attr]


def test_the_second_step_needs_the_first(client: Client, app: tuple[bytes, list[str]]) -> None:
    assert client.get("/login/second/").url == "/login/"
    log_in(client)
    session = client.session
    session["second_step"] = {**session["second_step"], "at": time.time() - 601}
    session.save()

    assert client.post("/login/second/", {"code": app[1][0]}).url == "/login/"


def test_whoever_finds_an_open_browser_changes_no_factor(
    client: Client, app: tuple[bytes, list[str]], alice: User
) -> None:
    client.force_login(alice)
    factor = SecondFactor.objects.get(kind="totp")
    for path in (
        "/account/authenticator/",
        "/account/passkeys/new/",
        "/account/recovery-codes/",
        f"/account/factors/{factor.pk}/remove/",
    ):
        assert client.post(path, {"code": "1"}).url == f"/account/confirm/?next={path}", path
    answer = client.post("/account/confirm/", {"password": "wrong", "next": "/account/security/"})
    assert "not your password" in answer.text
    target = f"/account/factors/{factor.pk}/remove/"
    assert client.post("/account/confirm/", {"password": PASSWORD, "next": target}).url == target
    assert client.post(target).url == "/account/security/"
    assert not SecondFactor.objects.exists()


def test_nobody_removes_the_factor_of_another(client: Client, app: tuple[bytes, list[str]]) -> None:
    User.objects.create_user("bob", password=PASSWORD)
    client.post("/login/", {"username": "bob", "password": PASSWORD})
    factor = SecondFactor.objects.get(kind="totp")

    assert client.post(f"/account/factors/{factor.pk}/remove/").status_code == 404
    assert SecondFactor.objects.filter(pk=factor.pk).exists()


def test_http_basic_is_no_way_around_it_and_keys_work_on(
    app: tuple[bytes, list[str]], alice: User
) -> None:
    basic = APIClient(headers=basic_header("alice", PASSWORD))
    answer = basic.get("/api/v1/collections/")
    assert answer.status_code == 401
    assert "Use an API key" in answer.json()["errors"][0]["detail"]

    SecondFactor.objects.all().delete()
    assert basic.get("/api/v1/collections/").status_code == 200


def test_whoever_must_have_one_sets_it_up_before_anything_else(
    alice: User, code_clock: list[float], settings: Any
) -> None:
    settings.SECOND_FACTOR = "owners"
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE,
        "accounts.middleware.second_factor_required",
    ]
    client = Client()
    log_in(client)
    assert client.get("/documents/").url == "/account/security/"
    assert (
        "Set up an authenticator app or a passkey to continue"
        in client.get("/account/security/").text
    )
    assert client.get("/api/v1/collections/").status_code == 403
    assert client.get("/documents/", headers={"HX-Request": "true"}).headers["HX-Redirect"]
    program = client_of_key(Membership.objects.get(), "read")
    assert program.get("/api/v1/collections/").status_code == 200

    set_up_app(client, code_clock)
    assert client.get("/documents/").status_code == 200
    assert client.get("/api/v1/collections/").status_code == 200

    User.objects.create_user("viewer", password=PASSWORD)
    viewer = Client()
    viewer.post("/login/", {"username": "viewer", "password": PASSWORD})
    assert viewer.get("/documents/").status_code == 404  # a member of nothing, and let through


def test_switched_off_nothing_is_offered_or_asked(
    client: Client, app: tuple[bytes, list[str]], settings: Any
) -> None:
    settings.SECOND_FACTOR = "off"
    assert "passkey" not in client.get("/login/").text
    log_in(client)

    assert is_logged_in(client)
    assert client.get("/account/authenticator/").status_code == 404
    assert client.post("/login/passkey/begin/").status_code == 404


@pytest.mark.parametrize("answer", ["", "x", "{}", "[]", '{"id": "AA"}', '{"rawId": 1}', "null"])
def test_an_answer_that_is_no_passkey_lets_nobody_in(client: Client, answer: str) -> None:
    client.post("/login/passkey/begin/")

    refused = client.post("/login/passkey/", {"answer": answer})
    assert refused.status_code == 403
    assert not is_logged_in(client)


def test_a_removed_app_leaves_no_codes_behind_and_the_log_says_so(
    client: Client, app: tuple[bytes, list[str]], alice: User
) -> None:
    log_in(client)
    client.post("/login/second/", {"code": app[1][0]})
    client.post(f"/account/factors/{SecondFactor.objects.get(kind='totp').pk}/remove/")

    assert not SecondFactor.objects.exists()
    rows = Change.objects.filter(kind=Kind.FACTOR).order_by("id")
    assert [(row.action, row.details["values"]["kind"], row.user) for row in rows] == [
        (Action.MADE, "totp", alice),
        (Action.MADE, "recovery", alice),
        (Action.DELETED, "totp", alice),
    ]
