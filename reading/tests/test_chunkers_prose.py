"""Chunkers that count sentences, paragraphs or words, that go by meaning, and that know a larger
passage: where each of them cuts."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

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


def families_split(document: ParsedDocument, **options: Any) -> list[Span]:
    return get_chunker("parent_child", counter=COUNTER, **options).split(document)


def families(spans: list[Span]) -> list[list[Span]]:
    return [list(family) for _, family in groupby(spans, key=lambda span: span.parent)]


def test_parents_hold_their_children_and_are_larger_than_what_the_model_reads() -> None:
    document = plain("\n\n".join([" ".join([WORDS] * 4)] * 60))
    spans = families_split(document)
    found = families(spans)
    assert [family[0].parent for family in found] == list(range(len(found)))
    assert max(span.token_count for span in spans) <= 120
    sizes = [COUNTER.count(document.text[family[0].start : family[-1].end]) for family in found]
    assert max(sizes) <= 800
    assert min(sizes) > 400, "larger than the 254 tokens of the model"
    assert all(len(family) > 3 for family in found)


def test_a_parent_ends_at_a_heading_rather_than_in_a_section() -> None:
    section = "## Head\n\n" + "\n\n".join([" ".join([WORDS] * 4)] * 6)
    document = marked("\n\n".join([section] * 5))
    starts = [family[0].start for family in families(families_split(document, parent_tokens=400))]
    assert len(starts) == 5
    assert all(document.text.startswith("## Head", start) for start in starts)


def test_only_children_of_one_parent_overlap() -> None:
    document = plain("\n\n".join([" ".join([WORDS] * 4)] * 40))
    spans = families_split(document, overlap=30, parent_tokens=300)
    inside = [(one, two) for one, two in pairwise(spans) if one.parent == two.parent]
    assert any(two.start < one.end for one, two in inside)
    for one, two in pairwise(spans):
        assert one.parent == two.parent or one.end <= two.start


def test_a_table_that_fits_its_parent_is_not_torn_between_two() -> None:
    rows = "\n".join(f"| drug {n} | {n} mg |" for n in range(40))
    table = f"| name | dose |\n|---|---|\n{rows}"
    prose = " ".join([WORDS] * 12)
    for filler in range(0, 200, 40):
        document = marked(f"{prose} {'filler ' * filler}\n\n{table}\n\n{prose}")
        start = document.text.index("| name")
        inside = {
            span.parent
            for span in families_split(document, parent_tokens=COUNTER.count(table) + 30)
            if start <= span.start < start + len(table)
        }
        assert len(inside) == 1


def test_a_short_text_is_one_child_of_one_parent() -> None:
    assert [span.parent for span in families_split(plain(WORDS))] == [0]


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


def cut_by_meaning(document: ParsedDocument, model: Model, **options: int) -> list[str]:
    chunker = get_chunker("semantic", counter=COUNTER, embed=model, **options)
    return texts(document, chunker.split(document))


def topics(*sentences: str, count: int = 6) -> list[str]:
    return [" ".join([sentence] * count) for sentence in sentences]


def test_a_chunk_ends_where_the_topic_does() -> None:
    parts = topics(HEART, TAX, SEA)
    assert cut_by_meaning(plain(" ".join(parts)), Model(), min_tokens=20) == parts


def test_a_text_of_one_topic_is_one_chunk_if_it_fits() -> None:
    (part,) = topics(HEART, count=20)
    assert cut_by_meaning(plain(part), Model()) == [part]


def test_what_does_not_fit_is_cut_further_between_sentences() -> None:
    text = " ".join(topics(HEART, TAX, count=20))
    chunks = cut_by_meaning(plain(text), Model(), max_tokens=60, overlap=0)
    assert all(COUNTER.count(chunk) <= 60 for chunk in chunks)
    assert not [chunk for chunk in chunks if HEART in chunk and TAX in chunk]
    assert " ".join(chunks) == text


def test_no_piece_is_smaller_than_asked_for() -> None:
    text = " ".join([HEART, *topics(TAX, SEA), HEART])
    chunks = cut_by_meaning(plain(text), Model(), min_tokens=40, percentile=1)
    assert min(COUNTER.count(chunk) for chunk in chunks) >= 40


def test_a_short_text_costs_nothing_and_others_each_sentence_as_often_as_it_is_compared() -> None:
    model = Model()
    cut_by_meaning(plain(f"{HEART} {TAX}"), model)
    assert model.asked == []

    sentences = [f"Sentence number {number} is about it." for number in range(30)]
    cut_by_meaning(plain(" ".join(sentences)), model, group=2)
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
    chunks = cut_by_meaning(document, Model(), max_tokens=60, overlap=20)
    for one, two in pairwise(chunks):
        assert not (HEART in one and TAX in two) or HEART not in two
