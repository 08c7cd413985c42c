"""A small language model, really asked: by OpenAI's protocol, whole, as a stream, and cancelled."""

import threading

import pytest

from inference.backends.chat_openai import OpenAIChat
from inference.cancellation import Cancelled, cancellation
from inference.interfaces import ChatMessage
from inference.tests.chatting import read
from inference.tests.smollm import MODEL, installed, smollm

ASKED = [ChatMessage("system", "Go on."), ChatMessage("user", "Once upon a time")]
TOKENS = 8

pytestmark = [
    pytest.mark.model,
    pytest.mark.nightly,
    pytest.mark.skipif(not installed(), reason="no small model here: `make setup-dev` installs it"),
]


@pytest.fixture(scope="module")
def model():
    with smollm() as address:
        # Without its cache each answer is computed in the same way, and so is the same.
        extra = {"cache_prompt": False, "seed": 1, "ignore_eos": True}
        yield OpenAIChat(
            MODEL, base_url=address, api_key="", temperature=0.0, extra=extra, timeout=60
        )


def test_it_answers_whole_and_in_pieces_alike_and_counts_its_tokens(model):
    whole = model.complete(ASKED, max_tokens=TOKENS)
    assert whole.content.strip()
    assert whole.truncated
    assert whole.usage.output_tokens == TOKENS
    assert whole.usage.input_tokens > 10
    pieces, streamed = read(model.stream(ASKED, max_tokens=TOKENS))
    assert len(pieces) > 3
    assert "".join(pieces) == streamed.content
    assert streamed == whole


def test_an_answer_cancelled_midway_frees_the_model_for_the_next(model):
    cancelled = threading.Event()
    stream = model.stream(ASKED, max_tokens=900)
    with cancellation(cancelled):
        assert next(stream)
        cancelled.set()
        with pytest.raises(Cancelled):
            next(stream)
    # It answers one at a time, and 900 tokens take longer than this.
    assert model.complete(ASKED, max_tokens=1, timeout=8).usage.output_tokens == 1
