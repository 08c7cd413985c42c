"""What chat models read and write is limited by workspace and by user; quoting is not."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.core import checks
from rest_framework.test import APIClient

from accounts.models import Membership
from accounts.rate_limits import TooManyRequests
from accounts.tests.keys import make_key
from documents.tests.factories import MembershipFactory
from inference.tests.stub_server import Stream, StubServer, chat_stream, delta, event
from model_servers.token_limits import count_tokens, require_tokens
from rag.context import RagContext
from rag.events import Done
from rag.services.answers import answer
from rag.services.pipelines import run_pipeline
from rag.services.questions import Question
from rag.tests.graphs import node, pipeline
from tests.kit import client_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_limits")]

QUESTION = "When does the firm leave Mill Street?"
COUNTED = {"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 100}}


@pytest.fixture
def counting(server: StubServer) -> StubServer:
    """A model server that says that an answer took 1,000 tokens."""
    events = [delta("On 14 March [1]."), delta(finish="stop"), COUNTED, "[DONE]"]
    server.always(lambda payload: Stream(*map(event, events)))
    return server


def asked(context: RagContext, **how: Any) -> Any:
    return list(answer(Question(QUESTION, **how), context=context))[-1]


def test_a_workspace_that_has_used_up_its_tokens_is_refused_until_they_come_back(
    context: RagContext, counting: StubServer, settings: Any
) -> None:
    settings.MODEL_TOKENS_PER_WORKSPACE = "1500/day"
    assert isinstance(asked(context), Done)
    assert isinstance(asked(context), Done)  # begun with some left
    with pytest.raises(TooManyRequests, match="This workspace has used up") as refused:
        asked(context)
    # Of a day's 1,500 are 500 overdrawn: with one more they take a little over a third of it.
    assert 28_000 < refused.value.retry_after < 29_000
    assert "1,500 tokens. Ask again in 9 hours" in str(refused.value)
    assert isinstance(asked(context, model="extractive"), Done)
    assert len(counting.requests) == 2


def test_a_users_limit_is_that_users_alone(
    context: RagContext, counting: StubServer, settings: Any
) -> None:
    settings.MODEL_TOKENS_PER_USER = "900/hour"
    assert isinstance(asked(context), Done)
    with pytest.raises(TooManyRequests, match="You have used up"):
        asked(context)
    other = MembershipFactory(workspace=context.workspace).user
    assert isinstance(asked(replace(context, user=other)), Done)
    require_tokens(workspace_id=context.workspace.pk)  # a command of the operator's


def test_all_doors_count_and_refuse(
    context: RagContext, counting: StubServer, settings: Any
) -> None:
    settings.MODEL_TOKENS_PER_WORKSPACE = "4500/day"
    graph = pipeline(node("only"))
    secret = make_key(Membership.objects.get(user=context.user))[1]
    openai = APIClient(headers={"Authorization": f"Bearer {secret}"})
    browser: APIClient = client_of(context)
    body = {"model": "stub", "messages": [{"role": "user", "content": QUESTION}]}
    more = {**body, "collections": ["office"]}
    doors = [
        lambda: openai.post("/v1/chat/completions", body, format="json"),
        lambda: openai.post("/v1/chat/completions", {**body, "stream": True}, format="json"),
        lambda: openai.post("/v1/chat/completions", more, format="json"),
        lambda: browser.post("/api/v1/chat/", {"message": QUESTION}, format="json"),
    ]
    for door in doors:
        answered = door()
        assert answered.status_code == 200
        if answered.streaming:
            list(answered.streaming_content)
            answered.close()
    assert isinstance(list(run_pipeline(graph, QUESTION, context=context))[-1], Done)
    for door in doors:
        refused = door()
        assert refused.status_code == 429
        assert int(refused["Retry-After"]) > 0
        assert "Ask again in" in json.dumps(refused.json())
    with pytest.raises(TooManyRequests):
        run_pipeline(graph, QUESTION, context=context)
    assert len(counting.requests) == 5


def test_a_server_that_does_not_count_is_estimated(
    context: RagContext, server: StubServer, settings: Any
) -> None:
    settings.MODEL_TOKENS_PER_WORKSPACE = "100/day"
    server.always(lambda payload: chat_stream("On 14 March [1]."))
    assert isinstance(asked(context), Done)
    with pytest.raises(TooManyRequests):
        asked(context)


def test_without_a_limit_nothing_is_counted(context: RagContext, counting: StubServer) -> None:
    for _ in range(3):
        count_tokens(10**9, workspace_id=context.workspace.pk, user_id=context.user_id)
        assert isinstance(asked(context), Done)


def test_a_limit_that_cannot_be_read_is_an_error_at_start(settings: Any) -> None:
    settings.MODEL_TOKENS_PER_USER = "many"
    found = checks.run_checks(tags=["settings"])
    assert any("RAGSITE_MODEL_TOKENS_PER_USER" in each.msg for each in found)
