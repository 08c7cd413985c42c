"""The whole way with a small language model that really runs: asked, streamed, judged, kept."""

from typing import Any

import pytest

from inference.tests.smollm import MODEL, installed, smollm
from rag.events import Done, Metadata, Retrieval, Token, answer_text
from rag.models import Message
from rag.services.chat import chat
from rag.services.questions import Question
from rag.tests.asking import reader

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.model,
    pytest.mark.nightly,
    pytest.mark.skipif(not installed(), reason="no small model here: `make setup-dev` installs it"),
]


def test_a_real_model_answers_from_the_documents(settings: Any) -> None:
    """What it says is its own: it is small. That its words arrive, are counted and kept is ours."""
    context, _ = reader()
    with smollm() as url:
        options = {"model": MODEL, "base_url": url, "api_key": "", "timeout": 60}
        backend = "inference.backends.chat_openai.OpenAIChat"
        chats = {"default": {"BACKEND": backend, "OPTIONS": options}}
        settings.INFERENCE = {**settings.INFERENCE, "chat": chats}
        question = Question(
            "When does the firm leave Mill Street?",
            model_options={"max_tokens": 24, "temperature": 0.0},
        )
        events = list(chat(question, context=context))
    assert isinstance(events[0], Metadata)
    assert (events[0].generator, events[0].model) == ("model", MODEL)
    assert any(isinstance(event, Retrieval) and event.passages for event in events)
    assert sum(isinstance(event, Token) for event in events) > 3
    done = events[-1]
    assert isinstance(done, Done)
    assert done.input_tokens > 100
    assert 0 < done.output_tokens <= 24
    kept = Message.objects.get(pk=done.message)
    assert kept.content == answer_text(events)
    assert kept.state == Message.State.COMPLETE
