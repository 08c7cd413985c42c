"""Cutting where the meaning changes."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reading.chunkers import get_chunker
from reading.parsers import ParsedDocument
from reading.tests.factories_chunkers import embed, minilm, plain, texts

COUNTER = minilm()
HEART = "The heart pumps blood through the heart valves."
TAX = "Income tax is paid on taxed income each year."
SEA = "Ships sail the sea where sea water is deep."


class Model:
    """The hashing embedder, remembering what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return embed(texts)


def cut(document: ParsedDocument, model: Model, **options: int) -> list[str]:
    chunker = get_chunker("semantic", counter=COUNTER, embed=model, **options)
    return texts(document, chunker.split(document))


def topics(*sentences: str, count: int = 6) -> list[str]:
    return [" ".join([sentence] * count) for sentence in sentences]


def test_a_chunk_ends_where_the_topic_does() -> None:
    parts = topics(HEART, TAX, SEA)
    assert cut(plain(" ".join(parts)), Model(), min_tokens=20) == parts


def test_a_text_of_one_topic_is_one_chunk_if_it_fits() -> None:
    (part,) = topics(HEART, count=20)
    assert cut(plain(part), Model()) == [part]


def test_what_does_not_fit_is_cut_further_between_sentences() -> None:
    text = " ".join(topics(HEART, TAX, count=20))
    chunks = cut(plain(text), Model(), max_tokens=60, overlap=0)
    assert all(COUNTER.count(chunk) <= 60 for chunk in chunks)
    assert not [chunk for chunk in chunks if HEART in chunk and TAX in chunk]
    assert " ".join(chunks) == text


def test_no_piece_is_smaller_than_asked_for() -> None:
    text = " ".join([HEART, *topics(TAX, SEA), HEART])
    chunks = cut(plain(text), Model(), min_tokens=40, percentile=1)
    assert min(COUNTER.count(chunk) for chunk in chunks) >= 40


def test_a_short_text_costs_nothing_and_others_each_sentence_as_often_as_it_is_compared() -> None:
    model = Model()
    cut(plain(f"{HEART} {TAX}"), model)
    assert model.asked == []

    sentences = [f"Sentence number {number} is about it." for number in range(30)]
    cut(plain(" ".join(sentences)), model, group=2)
    assert len(model.asked) == len(set(model.asked))
    for sentence in sentences[1:-1]:
        assert sum(sentence in text for text in model.asked) == 2


def test_a_vector_that_is_not_finite_makes_no_cut() -> None:
    def broken(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.full((len(texts), 4), np.nan, dtype=np.float32)

    document = plain(" ".join(topics(HEART, TAX)))
    chunker = get_chunker("semantic", counter=COUNTER, embed=broken)
    assert texts(document, chunker.split(document)) == [document.text]


def test_pieces_do_not_overlap_over_a_change_of_topic() -> None:
    document = plain(" ".join(topics(HEART, TAX, SEA, count=20)))
    chunks = cut(document, Model(), max_tokens=60, overlap=20)
    for one, two in pairwise(chunks):
        assert not (HEART in one and TAX in two) or HEART not in two
