"""The admin of pipelines and traces shows figures, and no text of anybody's."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from documents.tests.factories import MembershipFactory, UserFactory
from rag.models import Pipeline, Span, Trace
from tests.kit import logged_in

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def client() -> Client:
    return logged_in(UserFactory(is_superuser=True))


def texts(client: Client, row: Any) -> str:
    """The list and the row's own page."""
    name = f"admin:rag_{row._meta.model_name}"
    answers = [
        client.get(reverse(f"{name}_changelist")),
        client.get(reverse(f"{name}_change", args=[row.pk])),
    ]
    assert [answer.status_code for answer in answers] == [200, 200]
    return "".join(answer.content.decode() for answer in answers)


def test_a_pipeline_is_shown_and_leads_to_its_page() -> None:
    membership = MembershipFactory(user__is_superuser=True)
    row = Pipeline.objects.create(
        workspace=membership.workspace, slug="mine", name=HOSTILE, definition={"nodes": []}
    )
    shown = texts(logged_in(membership), row)
    assert HOSTILE not in shown
    assert reverse("pipeline_edit", args=["mine"]) in shown


def test_a_trace_tells_nothing_of_what_was_asked_or_answered(client: Client) -> None:
    membership = MembershipFactory()
    owned = {"workspace": membership.workspace}
    row = Trace.objects.create(
        **owned,
        user=membership.user,
        pipeline="rag",
        question="zanzibarite?",
        answer="zanzibarite!",
        error="zanzibarite.",
        state="failed",
        error_code="model_unavailable",
        started_at=timezone.now(),
    )
    Span.objects.create(
        **owned,
        trace=row,
        ordinal=0,
        kind="node",
        node="zanzibarite",
        type="llm",
        input="zanzibarite",
        started_at=timezone.now(),
        ended_at=timezone.now(),
    )
    shown = texts(client, row)
    assert "model_unavailable" in shown
    assert "zanzibarite" not in shown
