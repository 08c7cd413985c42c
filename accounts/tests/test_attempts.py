"""Who fails to log in too often has to wait."""

import logging
import socket
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client, RequestFactory
from redis import Redis

from accounts import rate_limits
from accounts.backends import AccountBackend
from accounts.models import Membership, User
from accounts.rate_limits import client_address, format_wait
from accounts.tests.keys import basic_header, client_of_key, client_with
from documents.tests.factories import MembershipFactory

PASSWORD = "correct horse battery staple"
COLLECTIONS = "/api/v1/collections/"


@pytest.fixture(autouse=True)
def _counts(settings: Any, quick_passwords: None) -> None:
    """Two attempts an account, three an address."""
    rate_limits._Outage.asleep_until = 0.0
    settings.LOGIN_RATE, settings.LOGIN_ADDRESS_RATE = "2/day", "3/day"


@pytest.fixture
def alice(db: None) -> Membership:
    member = MembershipFactory()
    member.user.set_password(PASSWORD)
    member.user.save()
    return member


def log_in(name: str, password: str = "wrong", *, address: str = "192.0.2.1", **extra: Any) -> Any:
    data = {"username": name, "password": password}
    return Client().post("/login/", data, REMOTE_ADDR=address, **extra)


def ask(name: str, password: str = "wrong", *, address: str = "192.0.2.1", path: str = "") -> Any:
    headers = basic_header(name, password)
    return Client().get(path or COLLECTIONS, REMOTE_ADDR=address, headers=headers)


def test_after_too_many_the_right_password_waits_too(alice: Membership) -> None:
    name = alice.user.username
    assert [log_in(name).status_code for _ in range(2)] == [200, 200]

    refused = log_in(name, PASSWORD)

    assert refused.status_code == 429
    assert 43_100 < int(refused["Retry-After"]) <= 43_200
    assert "Too many failed attempts to log in. Try again in 12 hours." in refused.text
    assert f'value="{name}"' in refused.text
    assert "sessionid" not in refused.cookies
    assert log_in(name, PASSWORD, address="198.51.100.7").status_code == 429, "wherever from"


def test_others_log_in_meanwhile(alice: Membership) -> None:
    bob = User.objects.create_user("bob", password=PASSWORD)
    for _ in range(4):
        log_in(alice.user.username)

    assert log_in(bob.username, PASSWORD).status_code == 302, "the address has one attempt left"


def test_using_the_site_counts_for_nothing(alice: Membership) -> None:
    answers = [ask(alice.user.username, PASSWORD) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200] * 5
    assert log_in(alice.user.username, PASSWORD).status_code == 302
    assert [log_in(alice.user.username).status_code for _ in range(2)] == [200, 200]


def test_to_log_in_gives_nobody_new_attempts(alice: Membership) -> None:
    name = alice.user.username
    log_in(name)
    assert log_in(name, PASSWORD).status_code == 302
    log_in(name)
    assert log_in(name, PASSWORD).status_code == 429


@pytest.mark.django_db
def test_accounts_that_do_not_exist_wait_alike() -> None:
    User.objects.create_user("bob", password=PASSWORD, is_active=False)
    for name in ("nobody", "bob"):
        answers = [log_in(name, address=f"192.0.2.{number}") for number in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert "Try again in 12 hours" in answers[2].text


@pytest.mark.django_db
def test_an_address_that_tries_many_accounts_waits(alice: Membership) -> None:
    assert [log_in(f"user-{number}").status_code for number in range(3)] == [200] * 3
    assert log_in(alice.user.username, PASSWORD).status_code == 429
    assert log_in(alice.user.username, PASSWORD, address="198.51.100.7").status_code == 302


def test_the_page_the_admin_and_the_api_count_together(alice: Membership) -> None:
    name = alice.user.username
    into_admin = Client().get("/admin/", follow=True)
    assert into_admin.redirect_chain[-1][0] == "/login/?next=/admin/"
    assert log_in(name).status_code == 200
    assert ask(name).status_code == 401
    refused = ask(name, PASSWORD)
    assert refused.status_code == 429
    assert (refused.json()["type"], refused.json()["code"]) == ("client_error", "throttled")
    assert 43_100 < int(refused["Retry-After"]) <= 43_200
    of_openai = ask(name, PASSWORD, path="/v1/models")
    assert (of_openai.status_code, of_openai.json()["error"]["type"]) == (429, "rate_limit_error")
    assert log_in(name, PASSWORD).status_code == 429


def test_who_is_logged_in_may_not_yet_see_the_admin(client: Client, alice: Membership) -> None:
    client.force_login(alice.user)
    refused = client.get("/admin/", follow=True)
    assert refused.status_code == 403
    assert f"You are logged in as {alice.user.username}" in refused.text

    User.objects.update(is_staff=True)
    assert client.get("/admin/login/").url == "/admin/"


def test_wrong_keys_wait_and_right_ones_do_not(alice: Membership) -> None:
    wrong, right = client_with(f"rs_{'x' * 43}"), client_of_key(alice)
    answers = [wrong.get(COLLECTIONS) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [401, 401, 401, 429]
    assert "WWW-Authenticate" in answers[0]
    assert answers[3].json()["code"] == "throttled"
    assert int(answers[3]["Retry-After"]) > 0
    assert right.get(COLLECTIONS).status_code == 200
    assert ask(alice.user.username, PASSWORD, address="127.0.0.1").status_code == 200


def test_attempts_at_the_same_time_win_nothing(alice: Membership) -> None:
    """The others fail while the right password is being looked at."""
    name = alice.user.username
    request = RequestFactory().post("/login/")

    class Slow(AccountBackend):
        def user_can_authenticate(self, user: Any) -> bool:
            for _ in range(2):
                AccountBackend().authenticate(request, name, "wrong")
            return super().user_can_authenticate(user)

    with pytest.raises(rate_limits.TooManyRequests):
        Slow().authenticate(request, name, PASSWORD)


@pytest.mark.parametrize(
    ("meta", "trusted", "address"),
    [
        ({"REMOTE_ADDR": "192.0.2.1", "HTTP_X_FORWARDED_FOR": "1.1.1.1"}, False, "192.0.2.1"),
        ({"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": "1.1.1.1, 8.8.8.8"}, True, "8.8.8.8"),
        ({"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": "x" * 9000}, True, "10.0.0.1"),
        ({"REMOTE_ADDR": "10.0.0.1"}, True, "10.0.0.1"),
        ({"REMOTE_ADDR": "2001:db8:1:2:3:4:5:6"}, False, "2001:db8:1:2::"),
        ({"REMOTE_ADDR": "::ffff:192.0.2.1"}, False, "192.0.2.1"),
        ({"REMOTE_ADDR": ""}, False, "unknown"),
        ({}, True, "unknown"),
    ],
)
def test_an_address_is_what_the_site_or_its_proxy_saw(
    meta: dict[str, str], trusted: bool, address: str, settings: Any
) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if trusted else None
    request = RequestFactory().get("/")
    request.META = meta
    assert client_address(request) == address


@pytest.mark.django_db
def test_counters_are_small_tell_no_name_and_end(settings: Any) -> None:
    log_in("hunter2" * 1000)
    log_in("hunter2")
    valkey = Redis.from_url(settings.REDIS_URL)
    names = list(valkey.scan_iter("ragsite:rate:*"))
    assert len(names) == 3, "two accounts and the address"
    for name in names:
        assert len(name) < 100
        assert b"hunter2" not in name
        assert valkey.ttl(name) > 0


@pytest.mark.django_db
def test_who_uses_up_attempts_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="accounts"):
        for _ in range(4):
            log_in("hunter2")
    told = [record.getMessage() for record in caplog.records if record.name.startswith("accounts")]
    assert told == [
        "Failed logins from 192.0.2.1 have used up login-account: 2 requests within a day"
    ]


def test_without_a_counter_people_log_in(
    alice: Membership, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as taken:  # bound, and listening to nobody
        taken.bind(("127.0.0.1", 0))
        settings.REDIS_URL = f"redis://127.0.0.1:{taken.getsockname()[1]}/0"
        assert [log_in(alice.user.username).status_code for _ in range(3)] == [200] * 3
        assert log_in(alice.user.username, PASSWORD).status_code == 302
    assert "not limited while Valkey cannot be reached" in caplog.text
    cache.clear()


@pytest.mark.parametrize("rate", ["0", ""])
def test_a_site_may_do_without(rate: str, alice: Membership, settings: Any) -> None:
    settings.LOGIN_RATE = settings.LOGIN_ADDRESS_RATE = rate
    assert [log_in(alice.user.username).status_code for _ in range(4)] == [200] * 4


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "1 second"), (90, "90 seconds"), (121, "3 minutes"), (7200, "120 minutes")],
)
def test_waiting_is_told_in_words(seconds: int, words: str) -> None:
    assert format_wait(seconds) == words
