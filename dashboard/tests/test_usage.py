"""What language models used, on the page and over the API: who sees what, and when money shows."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.tests.factories import MembershipFactory, UserFactory
from model_servers.models import ModelUsage
from tests.kit import client_of, logged_in

pytestmark = pytest.mark.django_db

PAGE = "/dashboard/models/"
URL = "/api/v1/dashboard/models/"


def used(member: Membership, *, days_ago: int = 0, **fields: Any) -> ModelUsage:
    defaults = {
        "user": member.user,
        "model": "small",
        "purpose": "answer",
        "calls": 2,
        "estimated_calls": 0,
        "input_tokens": 900,
        "output_tokens": 100,
    }
    day = timezone.localdate() - timedelta(days=days_ago)
    return ModelUsage.objects.create(workspace=member.workspace, day=day, **{**defaults, **fields})


def text(client: Client, path: str = PAGE) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_days_models_users_and_purposes_are_summed(alice: Membership, api: APIClient) -> None:
    gone = UserFactory()
    used(alice, days_ago=3, purpose="summary", estimated_calls=1)
    used(alice, model="large", input_tokens=5_000, cost=0.125)
    used(alice, model="large", user=None, purpose="graph", cost=1.0)
    used(alice, user=gone, input_tokens=10)
    used(alice, days_ago=31, input_tokens=10**6)
    gone.delete()
    data = api.get(URL).json()
    assert data["total"] == {
        "calls": 8,
        "estimated_calls": 1,
        "input_tokens": 6_810,
        "output_tokens": 400,
        "cost": 1.125,
    }
    assert len(data["starts"]) == 30
    assert data["input_tokens"][-4:] == [900, 0, 0, 5_910]
    assert data["costs"][-4:] == [None, None, None, 1.125]
    assert [(row["name"], row["cost"]) for row in data["models"]] == [
        ("large", 1.125),
        ("small", None),
    ]
    assert [(row["name"], row["input_tokens"]) for row in data["users"]] == [
        (alice.user.username, 5_900),
        ("", 900),
        (None, 10),
    ]
    assert {row["name"] for row in data["purposes"]} == {"answer", "summary", "graph"}
    assert (data["workspaces"], data["currency"]) == ([], "USD")


def test_the_page_shows_money_where_there_is_a_price(alice: Membership, settings: Any) -> None:
    row = used(alice, user=None)
    page = text(logged_in(alice))
    assert 'aria-label="Tokens: 1,000 in 30 days."' in page
    assert "Cost</th>" not in page
    assert '<th scope="row">The site</th>' in page
    settings.MODEL_CURRENCY = "EUR"
    ModelUsage.objects.filter(pk=row.pk).update(cost=0.0423, estimated_calls=1)
    page = text(logged_in(alice))
    assert '<td class="number">0.0423 EUR</td>' in page
    assert 'aria-label="Costs: 0.0423 EUR in 30 days."' in page
    assert "The tokens of 1 call are estimated" in page


def test_a_page_without_calls_says_what_appears(alice: Membership) -> None:
    page = text(logged_in(alice))
    assert "What language models read and write appears here." in page
    assert "<table" not in page


def test_owners_see_their_workspace_and_the_operator_all(
    alice: Membership, bob: Client, charlie: Client
) -> None:
    used(alice)
    elsewhere = MembershipFactory()
    used(elsewhere, model="theirs")
    operator = MembershipFactory(workspace=elsewhere.workspace, role="viewer")
    operator.user.is_superuser = True
    operator.user.save()
    assert bob.get(PAGE).status_code == 403
    assert "/dashboard/models/" not in bob.get("/dashboard/").content.decode()
    assert "small" not in text(charlie)
    assert "theirs" not in text(logged_in(alice))
    assert logged_in(alice).get(f"{PAGE}?all=1").status_code == 403
    assert "/dashboard/models/" in text(logged_in(alice), "/dashboard/")
    page = text(logged_in(operator))
    for name in ("small", "theirs", alice.workspace.slug, elsewhere.workspace.slug):
        assert f'<th scope="row">{name}</th>' in page
    seen = client_of(operator).get(URL, {"all_workspaces": True}).json()
    assert {row["name"] for row in seen["workspaces"]} == {
        alice.workspace.slug,
        elsewhere.workspace.slug,
    }
    assert client_of(operator).get(URL).status_code == 403
    assert client_of(alice).get(URL, {"all_workspaces": True}).status_code == 403
