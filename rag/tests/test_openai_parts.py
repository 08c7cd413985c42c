"""Parts of the OpenAI endpoints: vectors, messages, when an answer begins."""

import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidInput
from common.sse import format_event
from inference.backends.hashing import HashingEmbedder
from inference.interfaces import ChatMessage, ToolCall
from rag.events import Done, Event, Failed, Metadata, Token
from rag.openai.chat import Completion, hold_until_first_token
from rag.openai.chat_schema import (
    OpenAIChatRequestSerializer,
    OpenAIExtrasSerializer,
    OpenAIStreamOptionsSerializer,
    document_question,
    read_messages,
    read_tool_choice,
    read_tools,
)
from rag.openai.embeddings import (
    OpenAIEmbeddingsRequestSerializer,
    encode_vector,
    truncate_dimensions,
)
from rag.openai.models import get_embedder
from rag.openai.protocol import ModelNotFound
from rag.openai.rerank import RerankRequestSerializer

VECTORS = HashingEmbedder(dimensions=64).embed_documents(["one text", "another, longer text"])


@pytest.mark.parametrize(
    "model", ["Qwen/Qwen3-Embedding-0.6B", "text-embedding-3-small", "nomic-embed-text"]
)
def test_vectors_are_cut_and_have_length_1_again(model: str) -> None:
    vectors = np.random.default_rng(7).normal(size=(3, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    cut = truncate_dimensions(vectors, 16, model=model)

    assert cut.shape == (3, 16)
    assert np.allclose(np.linalg.norm(cut, axis=1), 1)
    assert np.allclose(cut, vectors[:, :16] / np.linalg.norm(vectors[:, :16], axis=1)[:, None])


@pytest.mark.parametrize(
    ("dimensions", "model"), [(16, "all-MiniLM-L6-v2"), (65, "text-embedding-3-small")]
)
def test_vectors_that_cannot_be_so_long_are_refused(dimensions: int, model: str) -> None:
    with pytest.raises(InvalidInput, match="64 dimensions") as refused:
        truncate_dimensions(VECTORS, dimensions, model=model)
    assert refused.value.field == "dimensions"


def test_a_cut_that_leaves_nothing_is_refused() -> None:
    vectors = np.eye(4, dtype=np.float32)
    with pytest.raises(InvalidInput, match="all 0"):
        truncate_dimensions(vectors, 2, model="text-embedding-3-small")


def test_vectors_are_whole_without_a_wish() -> None:
    assert truncate_dimensions(VECTORS, None, model="any") is VECTORS
    assert truncate_dimensions(VECTORS, 64, model="any") is VECTORS


def test_both_forms_hold_the_same_numbers() -> None:
    text = encode_vector(VECTORS[0], "base64")
    assert isinstance(text, str)
    np.testing.assert_array_equal(np.frombuffer(b64decode(text), "<f4"), VECTORS[0])
    np.testing.assert_array_equal(np.float32(encode_vector(VECTORS[0], "float")), VECTORS[0])


def test_a_conversation_is_read_with_its_tool_calls() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert read_messages(
        [
            {"role": "developer", "content": "Rules"},
            {"role": "user", "content": [{"type": "text", "text": "a"}], "name": "ada"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "b", "tool_call_id": "c"},
        ]
    ) == [
        ChatMessage("system", "Rules"),
        ChatMessage("user", "a"),
        ChatMessage("assistant", "", (ToolCall("c", "f", "{}"),)),
        ChatMessage("tool", "b", tool_call_id="c"),
    ]


#: Anything that JSON can hold.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "tool_calls", "type", "text", "function", "name", "id"]
            )
            | st.text(max_size=3),
            inner | st.sampled_from(["user", "assistant", "tool", "text", "function"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=4), st.lists(JSON, max_size=3), JSON)
def test_whatever_comes_is_read_or_refused(
    messages: list[Any], tools: list[Any], choice: Any
) -> None:
    assert place_of_fault(lambda: read_messages(messages)) != ""
    assert place_of_fault(lambda: read_tools(tools)) != ""
    assert place_of_fault(lambda: read_tool_choice(choice, [])) in (None, "tool_choice")


def place_of_fault(read: Callable[[], object]) -> str | None:
    """Of what is refused; None where nothing is."""
    try:
        read()
    except InvalidInput as refused:
        return refused.field
    return None


def test_out_of_documents_the_last_message_is_the_question() -> None:
    question, history, instructions = document_question(
        read_messages(
            [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": "First"},
                {"role": "assistant", "content": "Answer"},
                {"role": "tool", "content": "left out", "tool_call_id": "c"},
                {"role": "developer", "content": "In verse."},
                {"role": "user", "content": "Second"},
            ]
        )
    )
    assert question == "Second"
    assert [each.content for each in history] == ["First", "Answer"]
    assert instructions == "Be short.\n\nIn verse."


@pytest.mark.parametrize("last", [{"role": "assistant", "content": "x"}, {"role": "user"}])
def test_nothing_else_is_answered(last: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="must be the user's and contain text"):
        document_question(read_messages([{"role": "user", "content": "a"}, last]))


BEGIN = Metadata(question="Why?", model="any", generator="model")
END = Done(elapsed_ms=1.0)
BROKEN = Failed("model_unavailable", "It is down.", 503)


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([BEGIN, Token("a"), END], [BEGIN, Token("a"), END]),
        ([BEGIN, END], [BEGIN, END]),
        ([BEGIN, BROKEN], [BROKEN]),
        ([BEGIN, Token("a"), BROKEN], [BEGIN, Token("a"), BROKEN]),
    ],
)
def test_what_fails_before_the_first_word_is_all_that_is_told(
    events: list[Event], told: list[Event]
) -> None:
    assert list(hold_until_first_token(each for each in events)) == told


def test_an_answer_that_nobody_reads_on_is_closed() -> None:
    closed = []

    def events() -> Iterator[Event]:
        try:
            yield BEGIN
            yield Token("a")
            yield END
        finally:
            closed.append(True)

    told = hold_until_first_token(events())
    next(told)
    told.close()  # type: ignore[attr-defined]
    assert closed


def test_text_that_looks_like_an_event_stays_within_its_line() -> None:
    completion = Completion(model="any")
    sent = completion.encode(Token("a\n\ndata: [DONE]\n\n\u2028b"))
    assert sent.count(b"\n") == 2
    assert sent.endswith(b"}\n\n")


def test_an_embedder_is_found_by_its_alias_and_by_its_models_name(settings: Any) -> None:
    options = {"model": "BAAI/bge-m3", "base_url": "http://127.0.0.1:9", "dimensions": 64}
    settings.INFERENCE = {
        **settings.INFERENCE,
        "embedder": {
            "default": {"BACKEND": "inference.backends.hashing.HashingEmbedder"},
            "far": {
                "BACKEND": "inference.backends.openai_compatible.OpenAIEmbedder",
                "OPTIONS": {**options, "api_key": ""},
            },
        },
    }
    for name in ("far", "BAAI/bge-m3", "baai/BGE-M3", "bge-m3"):
        assert get_embedder(name)[0] == "far", name
    for name in ("", "default", "hashing-384", "somebody/Hashing-384"):
        assert get_embedder(name)[0] == "hashing-384", name
    with pytest.raises(ModelNotFound):
        get_embedder("bge")


HELLO = [{"role": "user", "content": "Hello"}]
INPUTS = {
    OpenAIChatRequestSerializer: {"messages": HELLO},
    OpenAIEmbeddingsRequestSerializer: {"input": "a"},
    RerankRequestSerializer: {"query": "a", "documents": ["b"]},
    OpenAIExtrasSerializer: {},
    OpenAIStreamOptionsSerializer: {},
}


@pytest.mark.parametrize(("kind", "needed"), INPUTS.items(), ids=lambda each: str(each)[:40])
def test_null_means_left_out(kind: Any, needed: dict[str, Any]) -> None:
    left_out = kind(data=needed)
    nulls = kind(data={**dict.fromkeys(kind().fields), **needed})
    for given_ in (left_out, nulls):
        given_.is_valid(raise_exception=True)
    assert nulls.validated_data == left_out.validated_data


@pytest.mark.parametrize(("kind", "needed"), INPUTS.items(), ids=lambda each: str(each)[:40])
def test_what_is_needed_may_not_be_null(kind: Any, needed: dict[str, Any]) -> None:
    for name in needed:
        wrong = kind(data={**needed, name: None})
        assert not wrong.is_valid()
        assert wrong.errors[name][0].code == "required"


def test_token_numbers_are_refused_with_the_cure() -> None:
    for numbers in ([1, 2], [[1, 2], [3]]):
        wrong = OpenAIEmbeddingsRequestSerializer(data={"input": numbers})
        assert not wrong.is_valid()
        assert "check_embedding_ctx_length=False" in str(wrong.errors["input"])


@pytest.mark.parametrize("name", ["", "token"])
def test_no_event_holds_an_end_of_line_of_unicode(name: str) -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\r\nh\ud800"
    event = format_event(name, {"text": text}).decode()
    (line,) = [each for each in event.splitlines() if each.startswith("data: ")]
    assert json.loads(line[6:]) == {"text": text}
    assert len(event.splitlines()) == len(event.split("\n")) - 1


def test_each_chunk_of_a_completion_is_one_line_however_lines_are_split() -> None:
    completion = Completion(model="m")
    chunk = completion.encode(Token("a\u2028b\u0085c")).decode()
    assert [each for each in chunk.splitlines() if each] == [chunk.strip()]
