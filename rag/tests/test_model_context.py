"""Prompts fit into a model's context with room for the answer: passages before history."""

from typing import Any

import pytest

from inference.backends.chat_ollama import OllamaChat
from inference.backends.chat_openai import OpenAIChat
from inference.interfaces import BackendUnavailable, ChatMessage
from inference.tests.stub_server import Reply, StubServer, chat_reply, chat_stream, stub_server
from memory.injection import estimated_tokens
from rag.answering.model_context import (
    fitting_answer_tokens,
    longest_answer_tokens,
    prompt_tokens,
)
from rag.answering.prompt import build_prompt
from rag.context import RagContext
from rag.events import Done, Event, Failed, answer_text
from rag.services.answers import answer
from rag.services.questions import Question
from rag.tests.answering import passage
from rag.tests.asking import document, reader

pytestmark = pytest.mark.django_db

QUESTION = "When does the firm leave Mill Street?"
TALK = [
    ChatMessage("user", "Tell me all about the firm. " * 20),
    ChatMessage("assistant", "The firm makes lamps and has three offices. " * 60),
]


class Scripted:
    """A server whose model reads `context` tokens of prompt and answer, and refuses more. `density`
    is how many tokens it has for one that the site estimates."""

    def __init__(
        self,
        server: StubServer,
        settings: Any,
        context: int,
        *,
        density: float = 1.0,
        **options: Any,
    ) -> None:
        self.density = density
        self.prompts: list[int] = []
        self.refused = 0
        self.context = context
        server.always(self.reply)
        options = {"model": "s", "base_url": server.url, "api_key": "", "attempts": 1, **options}
        backend = "inference.backends.chat_openai.OpenAIChat"
        chat = {"default": {"BACKEND": backend, "OPTIONS": options}}
        settings.INFERENCE = {**settings.INFERENCE, "chat": chat}

    def reply(self, payload: Any) -> Any:
        estimated = sum(estimated_tokens(each["content"]) for each in payload["messages"])
        prompt = int(estimated * self.density)
        if prompt + payload.get("max_tokens", min(256, self.context // 8)) > self.context:
            self.refused += 1
            message = f"This model's maximum context length is {self.context} tokens."
            return Reply({"error": {"message": message}}, 400)
        self.prompts.append(prompt)
        text = "It leaves on 14 March [1]."
        return chat_stream(text) if payload.get("stream") else chat_reply(text)


@pytest.fixture(scope="module")
def context(shared_rows: None) -> RagContext:
    """A member with passages about the question that no small model can read all of."""
    context, collection = reader()
    # One after the other: passages that fit as well are cited in the order of their ids.
    for number in range(12):
        text = f"The firm leaves Mill Street on 14 March, says note {number}. " * 40
        document(collection, f"note-{number}.md", f"# Note {number}\n\n{text}")
    return context


def told(context: RagContext, question: str = QUESTION, **how: Any) -> list[Event]:
    return list(answer(Question(question, **how), context=context))


SIZES = [1_500, 4_096, 8_192, 32_768]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("setting", [3_000, 100_000])
def test_an_answer_fits_into_the_context_that_is_set(
    size: int, setting: int, context: RagContext, settings: Any
) -> None:
    settings.RAG_CONTEXT_TOKENS = setting
    settings.RAG_PASSAGES = 12
    with stub_server() as server:
        model = Scripted(server, settings, size, context_tokens=size)
        for how in ({}, {"history": TALK}, {"model_options": {"max_tokens": 50_000}}):
            events = told(context, **how)
            assert answer_text(events).startswith("It leaves on 14 March [1]."), events[-1]
    assert model.refused == 0
    assert max(model.prompts) <= min(setting, size - min(1024, size // 4))


@pytest.mark.parametrize("size", [1_500, 2_500])
def test_a_context_that_the_server_names_is_kept_to_from_then_on(
    size: int, context: RagContext, settings: Any
) -> None:
    settings.RAG_CONTEXT_TOKENS = 20_000
    settings.RAG_PASSAGES = 12
    with stub_server() as server:
        model = Scripted(server, settings, size)
        for _ in range(2):
            assert isinstance(told(context)[-1], Done)
    assert model.refused == 1
    assert len(model.prompts) == 2


@pytest.mark.parametrize(("density", "refusals"), [(1.9, 1), (3.5, 2)])
def test_a_prompt_of_more_tokens_than_estimated_is_shortened(
    density: float, refusals: int, context: RagContext, settings: Any
) -> None:
    settings.RAG_PASSAGES = 12
    with stub_server() as server:
        model = Scripted(server, settings, 4_096, density=density, context_tokens=4_096)
        events = told(context)
        assert answer_text(events).startswith("It leaves on 14 March [1]."), events[-1]
        assert len(model.prompts) == 1
    assert model.refused == refusals


def test_a_prompt_is_not_shortened_for_ever(context: RagContext, settings: Any) -> None:
    with stub_server() as server:
        model = Scripted(server, settings, 4_096, density=20, context_tokens=4_096)
        assert isinstance(told(context)[-1], Failed)
    assert model.refused == 3


def test_a_question_that_does_not_fit_is_refused_with_the_figures(
    context: RagContext, settings: Any
) -> None:
    with stub_server() as server:
        Scripted(server, settings, 1_500, context_tokens=1_500)
        failed = told(context, f"{QUESTION} " + "Explain. " * 420)[-1]
        assert not server.requests
    assert isinstance(failed, Failed)
    assert failed.code == "invalid"
    assert "“s” has room for 1,125" in failed.detail


def test_a_question_beyond_the_budget_is_answered_where_the_model_reads_more(
    context: RagContext, settings: Any
) -> None:
    settings.RAG_CONTEXT_TOKENS = 500
    with stub_server() as server:
        Scripted(server, settings, 8_192, context_tokens=8_192)
        assert isinstance(told(context, f"{QUESTION} " + "Explain. " * 420)[-1], Done)


def test_a_refusal_for_another_reason_is_not_tried_again(
    context: RagContext, settings: Any
) -> None:
    with stub_server() as server:
        Scripted(server, settings, 4_096)
        server.always(lambda payload: Reply({"error": {"message": "context length unknown"}}, 400))
        assert isinstance(told(context)[-1], Failed)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("This model's maximum context length is 4096 tokens. You asked for 5000.", 4096),
        ("request (5032 tokens) exceeds the available context size (2048 tokens)", 2048),
        ("the model is loaded with context length of only 8192 tokens", 8192),
        ("the input length exceeds the context length", None),
    ],
)
def test_servers_name_their_context_in_these_words(said: str, known: int | None) -> None:
    with stub_server() as server:
        server.always(lambda payload: Reply({"error": {"message": said}}, 400))
        model = OpenAIChat("m", base_url=server.url, api_key="", attempts=1)
        with pytest.raises(BackendUnavailable):
            model.complete([ChatMessage("user", "x")])
    assert model.context_tokens == known


def test_ollama_reads_what_it_is_told_to_or_its_default() -> None:
    assert OllamaChat("m").context_tokens == 4096
    assert OllamaChat("m", num_ctx=16384).context_tokens == 16384


def test_an_answer_has_room_and_asks_for_no_more() -> None:
    model = OpenAIChat("m", base_url="http://127.0.0.1:9", api_key="", context_tokens=4096)
    assert prompt_tokens(model, most=10_000) == 4096 - 1024
    assert prompt_tokens(model, most=10_000, answer_tokens=100) == 4096 - 100
    assert prompt_tokens(model, most=500) == 500
    assert prompt_tokens(None, most=500) == 500
    assert longest_answer_tokens(model, most=4096) == 1024
    assert longest_answer_tokens(model, most=50) == 50
    assert longest_answer_tokens(model, most=0) is None
    assert fitting_answer_tokens(model, prompt=4000, answer_tokens=500) == 96
    assert fitting_answer_tokens(model, prompt=4000, answer_tokens=None) is None
    with pytest.raises(BackendUnavailable, match="context_tokens"):
        OpenAIChat("m", base_url="http://127.0.0.1:9", api_key="", context_tokens=0)


def test_history_is_shortened_before_passages() -> None:
    passages = [passage("The tower is made of iron. " * 20, number) for number in (1, 2, 3)]
    whole = build_prompt("Who?", passages, TALK, budget_tokens=10_000)
    assert [each.content for each in whole.messages[1:-1]] == [each.content for each in TALK]
    alone = build_prompt("Who?", passages, budget_tokens=10_000)
    short = build_prompt("Who?", passages, TALK, budget_tokens=alone.tokens + 150)
    assert len(short.passages) == 3
    assert short.tokens <= alone.tokens + 150
    assert sum(len(each.content) for each in short.messages[1:-1]) < 1000
