"""Bytes to text, and the hash of what a reader sees."""

import codecs
import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.parsers import ParseError, content_sha256, decode_text, normalise_text


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "cp1252"]
)
def test_usual_encodings_are_recognised(encoding: str) -> None:
    assert decode_text("Grüße, naïve café: 5 €".encode(encoding)) == "Grüße, naïve café: 5 €"


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert decode_text(codecs.BOM_UTF8 + b"text") == "text"


def test_other_alphabets_are_refused_rather_than_guessed() -> None:
    with pytest.raises(ParseError, match="UTF-8") as caught:
        decode_text("Привет, как ваши дела сегодня вечером?".encode("koi8-r"))
    assert caught.value.code == "malformed"


def test_a_mark_that_lies_is_named() -> None:
    with pytest.raises(ParseError, match="UTF-16") as caught:
        decode_text(codecs.BOM_UTF16_LE + b"abc")
    assert caught.value.code == "malformed"


@pytest.mark.parametrize("data", [bytes(range(256)) * 20, b"\x00" * 100, b"\x00\x01\x02 a\x05\x06"])
def test_binary_is_no_text(data: bytes) -> None:
    with pytest.raises(ParseError, match="not look like text") as caught:
        decode_text(data)
    assert caught.value.code == "binary"


def test_a_stray_zero_byte_is_removed() -> None:
    assert decode_text(b"A long line of text with one\x00 zero byte.") == (
        "A long line of text with one zero byte."
    )


def test_line_ends_become_one_kind() -> None:
    assert normalise_text("a\r\nb\rc\nd") == "a\nb\nc\nd"


@given(st.text(st.characters()))
def test_normalised_text_fits_postgresql_and_stays_as_it_is(text: str) -> None:
    normalised = normalise_text(text)
    assert "\x00" not in normalised
    assert "\r" not in normalised
    assert normalised.encode().decode() == normalised
    assert normalise_text(normalised) == normalised


def test_code_points_are_left_alone() -> None:
    assert normalise_text("e\u0301 ﬁ Å") == "e\u0301 ﬁ Å"


@pytest.mark.parametrize(
    "same", ["a \r\nb\t\n\n\n\n\nc", "a\rb\n\n\nc", "a\nb\n \n\t\n\n \nc", "a\nb\n\n\nc "]
)
def test_the_hash_ignores_what_no_reader_sees(same: str) -> None:
    assert content_sha256(same) == content_sha256("a\nb\n\n\nc")


@pytest.mark.parametrize("other", ["a\nb\nc", "a b\n\n\nc", " a\nb\n\n\nc", "a\nb\n\nc"])
def test_the_hash_tells_texts_apart(other: str) -> None:
    assert content_sha256(other) != content_sha256("a\nb\n\n\nc")


_LINES = st.lists(st.sampled_from(["a", "b \t", "\n", "\r\n", " \n", "\n\n\n", "\x0b", "é😀 "]))


@settings(max_examples=50, deadline=None)
@given(_LINES.map("".join), st.sampled_from([0, 300_000]))
def test_the_hash_is_that_of_the_visible_text_however_long_it_is(piece: str, length: int) -> None:
    text = piece * (1 + length // (1 + len(piece)))
    lines = (line.rstrip() for line in text.replace("\r\n", "\n").split("\n"))
    visible = re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines))
    assert content_sha256(text) == hashlib.sha256(visible.encode()).hexdigest()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_windows_line_ends_become_unix_ones_in_every_encoding(encoding: str) -> None:
    data = "Größe\r\nzwei\rdrei, and a longer line of words\n".encode(encoding)
    assert decode_text(data) == "Größe\nzwei\ndrei, and a longer line of words\n"
