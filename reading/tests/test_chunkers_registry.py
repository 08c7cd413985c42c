"""Choosing a chunker by name, and what it is refused."""

import re
from typing import Any

import pytest
from tokenizers import Tokenizer

from common.errors import InvalidInput
from reading.chunkers import CHUNKERS, check_options, get_chunker
from reading.chunkers.atoms import TokenMeasure, measure_for
from reading.chunkers.base import ChunkerError, Span
from reading.chunkers.strategies import is_machine_text
from reading.parsers import Heading
from reading.tests.factories_chunkers import (
    CharacterCounter,
    TokenizerCounter,
    byte_pairs,
    minilm,
    plain,
)

TEXT = "one two three four five six seven eight nine ten " * 20


def test_the_names_are_known() -> None:
    assert sorted(CHUNKERS) == [
        "auto", "code", "fixed", "markdown", "none", "paragraph", "parent_child", "recursive",
        "semantic", "sentence", "window",
    ]  # fmt: skip


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="Use auto, recursive, markdown, code"):
        get_chunker("clever", counter=minilm())


@pytest.mark.parametrize(("max_tokens", "overlap"), [(50, 50), (50, 51), (16, 20)])
def test_an_overlap_that_does_not_fit_is_refused(max_tokens: int, overlap: int) -> None:
    with pytest.raises(InvalidInput, match="smaller than max_tokens"):
        get_chunker("recursive", counter=minilm(), max_tokens=max_tokens, overlap=overlap)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("recursive", {"max_tokens": 0}, "max_tokens must be a whole number from 8 to 8,192."),
        ("recursive", {"overlap": -1}, "overlap must be a whole number from 0 to 4,096."),
        ("recursive", {"max_tokens": "200"}, "max_tokens must be a whole number"),
        ("recursive", {"max_tokens": True}, "whole number"),
        ("recursive", {"size": 3}, "has no option “size”. It has: max_tokens, overlap"),
        ("none", {"max_tokens": 100}, "“none” has no option “max_tokens”. It has none"),
        ("window", {"size": 6, "step": 2}, "step 2 does not fit size 6"),
        ("window", {"size": 3, "step": 4}, "no sentence is left out"),
        ("window", {"overlap": 10}, "It has: size, step, max_tokens"),
        ("semantic", {"min_tokens": 500}, "min_tokens 500 does not fit max_tokens 400"),
        ("semantic", {"percentile": 100}, "percentile must be a whole number from 1 to 99"),
        ("parent_child", {"parent_tokens": 100}, "parent_tokens at least max_tokens"),
    ],
)
def test_options_that_cannot_be_are_refused_with_the_cure(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        check_options(name, options)


def test_options_that_are_not_given_have_their_defaults() -> None:
    assert check_options("parent_child", {"max_tokens": 100}) == {
        "max_tokens": 100,
        "overlap": 0,
        "parent_tokens": 800,
    }
    assert all(check_options(name, {}) == kind.defaults for name, kind in CHUNKERS.items())


def test_cutting_by_meaning_needs_a_model() -> None:
    with pytest.raises(ChunkerError, match="needs a model"):
        get_chunker("semantic", counter=minilm())


def test_a_reserve_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(ChunkerError, match="Shorten titles"):
        get_chunker("recursive", counter=minilm(100), reserve=100)


@pytest.mark.parametrize(
    ("model", "max_tokens", "reserve", "most"),
    [(254, 400, 0, 254), (254, 100, 0, 100), (254, 400, 54, 200), (254, 100, 54, 100)],
)
def test_the_budget_is_the_least_of_what_is_wanted_and_what_the_model_reads(
    model: int, max_tokens: int, reserve: int, most: int
) -> None:
    chunker = get_chunker(
        "recursive", counter=minilm(model), max_tokens=max_tokens, overlap=0, reserve=reserve
    )
    sizes = [span.token_count for span in chunker.split(plain("word " * 2000))]
    assert max(sizes) == most


def test_none_gives_one_span_with_its_heading_and_refuses_what_no_model_reads() -> None:
    chunker = get_chunker("none", counter=minilm())
    document = plain(f" {TEXT}", Heading(1, 1, "one"))
    assert chunker.split(document) == [Span(1, len(document.text) - 1, 200, ("one",))]
    with pytest.raises(ChunkerError, match=r"400 tokens; .* Choose the chunker “recursive”"):
        chunker.split(plain(TEXT * 2))


def test_truncation_and_padding_of_a_tokenizer_do_not_hide_tokens() -> None:
    tokenizer: Tokenizer = minilm().tokenizer
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(length=64)
    chunker = get_chunker("recursive", counter=TokenizerCounter(tokenizer, 254), overlap=0)
    document = plain(TEXT * 3)
    spans = chunker.split(document)
    honest = minilm()
    assert [honest.count(document.text[span.start : span.end]) for span in spans] == [
        span.token_count for span in spans
    ]
    assert max(span.token_count for span in spans) <= 254
    assert tokenizer.truncation is not None, "the caller's own tokenizer was changed"


def test_words_are_remembered_from_document_to_document() -> None:
    counter = minilm()
    assert measure_for(counter) is measure_for(counter)
    assert measure_for(counter) is not measure_for(minilm())


@pytest.mark.parametrize(
    ("counter", "additive"),
    [(minilm(), True), (byte_pairs(), False), (CharacterCounter(9), False)],
    ids=["wordpiece", "byte pairs", "no tokenizer"],
)
def test_only_where_words_add_up_are_their_sums_trusted(
    counter: CharacterCounter, additive: bool
) -> None:
    assert TokenMeasure(counter).additive is additive


def test_the_memory_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reading.chunkers.atoms._MAX_KNOWN_WORDS", 10)
    measure = TokenMeasure(minilm())
    for start in range(0, 100, 7):
        words = [f"w{number}" for number in range(start, start + 7)] * 2
        assert measure.count_words(words) == measure.count_all(words)
    assert len(measure._known) <= 14


def test_logs_are_cut_between_their_lines() -> None:
    lines = [
        f"2026-03-01 08:00:{at:03} INFO worker[{at}]: job {at * 37} done. Took 0.{at} s"
        for at in range(300)
    ]
    text = "\n".join(lines)
    spans = get_chunker("auto", counter=minilm(), max_tokens=100, overlap=0).split(plain(text))
    assert len(spans) > 10
    assert {text[span.start : span.end].split("\n")[0] for span in spans} <= set(lines)
    prose = "The pump runs at 3.5 bar. It stops at 9.\n" * 30
    assert is_machine_text(text)
    assert not is_machine_text(prose)
