"""How many requests a caller may make, and what they are told of it."""

import socket
from typing import Any

import pytest
from django.core.checks import run_checks
from django.utils import timezone
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from accounts import rate_limits
from accounts.models import Membership
from accounts.rate_limits import Rate, consume, parse_rate
from accounts.tests.keys import client_of_key
from common.checks import SETTINGS
from tests.kit import client_of

COLLECTIONS = "/api/v1/collections/"
#: The least that can be said in whole seconds, and more than any test takes to ask thrice.
TWO_A_DAY = Rate(2, 86_400)


@pytest.fixture(autouse=True)
def _counts() -> None:
    rate_limits._Outage.asleep_until = 0.0


def test_so_many_pass_and_no_more() -> None:
    quotas = [consume(caller="a", name="requests", rate=TWO_A_DAY) for _ in range(3)]
    assert [quota.passes for quota in quotas if quota] == [True, True, False]
    assert [quota.remaining for quota in quotas if quota] == [1, 0, 0]
    refused = quotas[2]
    assert refused
    assert 43_190 <= refused.wait <= 43_200  # until the first of them has drained: half a day
    assert 86_390 <= refused.reset <= 86_400


def test_what_was_refused_does_not_count() -> None:
    first = [consume(caller="a", name="requests", rate=TWO_A_DAY) for _ in range(3)][2]
    last = [consume(caller="a", name="requests", rate=TWO_A_DAY) for _ in range(5)][4]
    assert first
    assert last
    assert last.wait <= first.wait


def test_callers_and_quotas_are_counted_apart() -> None:
    one = Rate(1, 86_400)
    for caller, name in (("a", "requests"), ("b", "requests"), ("a", "models")):
        quota = consume(caller=caller, name=name, rate=one)
        assert quota
        assert quota.passes


@hypothesis_settings(max_examples=10)
@given(limit=st.integers(1, 50), seconds=st.sampled_from([3600, 86_400]))
def test_a_whole_windows_requests_pass_at_once(limit: int, seconds: int) -> None:
    rate = Rate(limit, seconds)
    caller = f"{limit}-{seconds}-{timezone.now().timestamp()}"
    quotas = [consume(caller=caller, name="requests", rate=rate) for _ in range(limit + 1)]
    assert [quota.passes for quota in quotas if quota] == [True] * limit + [False]
    assert [quota.remaining for quota in quotas if quota] == [*range(limit - 1, -1, -1), 0]


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("600/minute", Rate(600, 60)),
        (" 10/second ", Rate(10, 1)),
        ("", None),
        ("0", None),
        ("0/day", None),
    ],
)
def test_a_rate_is_said_in_words(text: str, rate: Rate | None) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["600", "600/min", "-1/day", "1.5/day", "many/day"])
def test_what_is_no_rate_fails_before_a_request_does(text: str, settings: Any) -> None:
    settings.API_MODEL_RATE = text
    messages = run_checks(tags=[SETTINGS])
    assert [message.id for message in messages] == ["accounts.E001"]
    assert "RAGSITE_API_MODEL_RATE" in messages[0].msg


@pytest.mark.django_db
def test_every_answer_tells_what_is_left(alice: Membership, settings: Any) -> None:
    settings.API_RATE = "5/day"
    client = client_of_key(alice)
    first, second = client.get(COLLECTIONS), client.get(f"{COLLECTIONS}none/")
    assert (first.status_code, second.status_code) == (200, 404)
    assert first["RateLimit-Policy"] == '"requests";q=5;w=86400'
    assert first["RateLimit"].startswith('"requests";r=4;t=')
    assert second["RateLimit"].startswith('"requests";r=3;t=')


@pytest.mark.django_db
def test_who_asks_too_often_is_told_when_to_come_again(alice: Membership, settings: Any) -> None:
    settings.API_RATE = "1/hour"
    client = client_of_key(alice)
    assert client.get(COLLECTIONS).status_code == 200
    refused = client.get(COLLECTIONS)
    assert (refused.status_code, refused.json()["code"]) == (429, "throttled")
    assert refused.json()["type"] == "client_error"
    assert 3590 <= int(refused["Retry-After"]) <= 3600
    assert refused["RateLimit"].startswith('"requests";r=0;')

    another = client_of_key(alice)
    assert another.get(COLLECTIONS).status_code == 200, "keys are counted apart"
    session = client_of(alice)
    assert session.get(COLLECTIONS).status_code == 200


@pytest.mark.django_db
def test_what_asks_a_model_has_a_quota_of_its_own(alice: Membership, settings: Any) -> None:
    settings.API_RATE, settings.API_MODEL_RATE = "0", "1/hour"
    client = client_of_key(alice)
    texts = {"model": "default", "input": "Words."}
    first, second = (client.post("/v1/embeddings", texts) for _ in range(2))
    assert first.status_code == 200
    assert first["RateLimit-Policy"] == '"models";q=1;w=3600'
    assert second.status_code == 429
    assert second.json()["error"]["type"] == "rate_limit_error"
    assert "Retry-After" in second
    assert client.post("/api/v1/chat/", {"message": "Why?"}).status_code == 429
    unlimited = client.get(COLLECTIONS)
    assert unlimited.status_code == 200
    assert "RateLimit" not in unlimited


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/mcp", "/v1/models", "/v2/rerank"])
def test_the_doors_at_the_root_count_too(path: str, alice: Membership, settings: Any) -> None:
    settings.API_RATE = settings.API_MODEL_RATE = "1/hour"
    client = client_of_key(alice)
    ask = client.get if path == "/v1/models" else client.post
    assert ask(path).status_code != 429
    assert ask(path).status_code == 429


@pytest.mark.django_db
def test_without_a_counter_everything_passes(alice: Membership, settings: Any) -> None:
    settings.API_RATE = "1/hour"
    with socket.socket() as taken:  # bound, and listening to nobody
        taken.bind(("127.0.0.1", 0))
        settings.REDIS_URL = f"redis://127.0.0.1:{taken.getsockname()[1]}/0"
        client = client_of_key(alice)
        answers = [client.get(COLLECTIONS) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert "RateLimit" not in answers[0]
