"""The chunkers that count sentences, paragraphs or words: where each of them cuts."""

from itertools import pairwise
from typing import Any

import pytest

from reading.chunkers import get_chunker
from reading.chunkers.base import Span
from reading.parsers import ParsedDocument
from reading.tests.factories_chunkers import embed, marked, minilm, plain, texts

COUNTER = minilm()
WORDS = "Ten plain words make up this short sentence about things."  # 11 tokens


def split(name: str, document: ParsedDocument, **options: Any) -> list[Span]:
    return get_chunker(name, counter=COUNTER, **options).split(document)


def cut(name: str, text: str, **options: int) -> list[str]:
    document = plain(text)
    return texts(document, split(name, document, **options))


def numbered(count: int) -> list[str]:
    return [f"Sentence number {number} is here." for number in range(count)]  # 6 tokens each


def test_fixed_fills_every_chunk_but_the_last_and_looks_at_nothing() -> None:
    document = plain("\n\n".join([WORDS] * 20))
    sizes = [span.token_count for span in split("fixed", document, max_tokens=50, overlap=0)]
    assert sizes == [50, 50, 50, 50, 20]


def test_fixed_repeats_exactly_what_was_asked_for() -> None:
    document = plain(" ".join(["word"] * 400))
    spans = split("fixed", document, max_tokens=60, overlap=20)
    assert {span.token_count for span in spans[:-1]} == {60}
    shared = {COUNTER.count(document.text[two.start : one.end]) for one, two in pairwise(spans)}
    assert shared == {20}


def test_sentence_never_cuts_a_sentence_that_fits_nor_prefers_paragraphs() -> None:
    text = "\n\n".join(" ".join([WORDS] * 3) for _ in range(4))
    chunks = cut("sentence", text, max_tokens=45, overlap=0)
    assert [chunk.count(WORDS) for chunk in chunks] == [4, 4, 4]
    assert all(chunk.endswith(".") for chunk in chunks)


def test_sentence_repeats_whole_sentences_or_nothing() -> None:
    chunks = cut("sentence", " ".join(numbered(30)), max_tokens=40, overlap=15)
    for one, two in pairwise(chunks):
        repeated = " ".join(two.split(" ")[:10])
        assert one.endswith(repeated)
    assert cut("sentence", " ".join(numbered(30)), max_tokens=40, overlap=5)[1].startswith(
        "Sentence number 6"
    )


def test_paragraph_never_cuts_a_paragraph_that_fits() -> None:
    small, great = " ".join([WORDS] * 2), " ".join([WORDS] * 6)
    chunks = cut("paragraph", "\n\n".join([small, small, great, small]), max_tokens=70)
    assert chunks == [f"{small}\n\n{small}", great, small]


def test_paragraph_cuts_one_that_does_not_fit_between_its_sentences() -> None:
    assert cut("paragraph", " ".join([WORDS] * 8), max_tokens=50) == [" ".join([WORDS] * 4)] * 2


def test_a_window_slides_by_its_step() -> None:
    sentences = numbered(11)
    chunks = cut("window", " ".join(sentences), size=4, step=3)
    assert chunks == [
        " ".join(sentences[0:4]),
        " ".join(sentences[3:7]),
        " ".join(sentences[6:10]),
        " ".join(sentences[9:11]),
    ]


def test_a_window_of_sentences_that_do_not_fit_has_fewer_and_loses_none() -> None:
    sentences = numbered(20)
    chunks = cut("window", " ".join(sentences), size=6, step=6, max_tokens=20)
    assert all(COUNTER.count(chunk) <= 20 for chunk in chunks)
    assert " ".join(chunks) == " ".join(sentences)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("recursive", {"overlap": 0}),
        ("sentence", {"overlap": 10}),
        ("paragraph", {}),
        ("window", {"size": 1, "step": 1}),
        ("semantic", {"min_tokens": 5, "overlap": 0}),
        ("parent_child", {}),
    ],
)
def test_a_heading_is_never_a_chunk_of_its_own(name: str, options: dict[str, int]) -> None:
    sections = (f"## Head {n}\n\n{' '.join([WORDS] * (n % 7 + 1))}" for n in range(40))
    document = marked("\n\n".join(sections))
    chunker = get_chunker(name, counter=COUNTER, embed=embed, max_tokens=30, **options)
    chunks = texts(document, chunker.split(document))
    assert len(chunks) > 40
    assert not [chunk for chunk in chunks if chunk.split("\n")[-1].startswith("##")]
