"""Fusion and reranking as a request wants them, wherever a question is answered."""

from dataclasses import replace
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from accounts.tests.keys import client_of_key
from rag import tools
from rag.context import RagContext

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "When does the firm leave Mill Street?"
#: Of the passage that both arms list first.
BEST_OF_RRF_9 = f"(score: {2 / (9 + 1):.3f})"


@pytest.fixture
def client(context: RagContext) -> APIClient:
    client = APIClient(raise_request_exception=False)
    client.force_login(context.user)
    return client


def test_a_tool_fuses_as_its_call_says(context: RagContext) -> None:
    call = {"query": QUESTION, "fusion": "rrf", "rrf_k": 9, "depth": 10}
    answer = tools.call("hybrid_query", call, context=context)
    assert not answer.is_error
    assert BEST_OF_RRF_9 in answer.text


def test_a_tool_fuses_as_the_request_says_where_its_call_does_not(context: RagContext) -> None:
    wanted = replace(context, search_options={"fusion": "rrf", "rrf_k": 9})
    assert BEST_OF_RRF_9 in tools.call("hybrid_query", {"query": QUESTION}, context=wanted).text
    own = {"query": QUESTION, "rrf_k": 99}
    assert BEST_OF_RRF_9 not in tools.call("hybrid_query", own, context=wanted).text


@pytest.mark.parametrize("pipeline", [{}, {"pipeline": "rag"}])
@pytest.mark.parametrize("stream", [True, False])
def test_a_chat_that_demands_a_reranker_where_none_is_set_is_refused(
    client: APIClient, pipeline: dict[str, str], stream: bool
) -> None:
    asked = {"message": QUESTION, "rerank": True, "stream": stream, **pipeline}
    answer = client.post("/api/v1/chat/", asked, format="json")
    assert answer.status_code == 400
    assert "manage.py rerankers set MODEL" in answer.json()["detail"]


def complete(context: RagContext, **body: Any) -> Any:
    client = client_of_key(Membership.objects.get(user=context.user, workspace=context.workspace))
    messages = [{"role": "user", "content": QUESTION}]
    asked = {"model": "extractive", "messages": messages, **body}
    return client.post("/v1/chat/completions", asked, format="json")


def test_an_openai_client_names_them_within_ragsite(context: RagContext) -> None:
    answer = complete(context, ragsite={"fusion": "rrf", "rrf_k": 9, "depth": 20})
    assert answer.status_code == 200, answer.json()
    assert "14 March" in answer.json()["choices"][0]["message"]["content"]
    demanded = complete(context, ragsite={"rerank": True})
    assert demanded.status_code == 400
    assert "manage.py rerankers set MODEL" in demanded.json()["error"]["message"]


def test_outside_of_it_they_are_refused_and_not_passed_over(context: RagContext) -> None:
    answer = complete(context, rerank=True)
    assert answer.status_code == 400
    assert "within `ragsite`" in answer.json()["error"]["message"]
