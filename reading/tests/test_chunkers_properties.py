"""What holds for every chunker and every text."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reading.chunkers import CHUNKERS, PARENT_CHILD, get_chunker
from reading.chunkers.base import Span, TokenCounter
from reading.chunkers.splitter import Chunker
from reading.parsers import ParsedDocument
from reading.tests.factories_chunkers import (
    CharacterCounter,
    byte_pairs,
    coded,
    embed,
    grapheme_edges,
    graphemes,
    marked,
    minilm,
    plain,
    random_texts,
)

COUNTERS: dict[str, TokenCounter] = {
    "wordpiece": minilm(),
    "byte pairs": byte_pairs(),
    "no tokenizer": CharacterCounter(254),
}
BUDGETS = st.sampled_from([(24, 0), (24, 11), (40, 20), (100, 30), (250, 50)])
#: Those that cut; `none` does not.
WIDE = minilm(max_tokens=100_000)
CUTTING = [name for name in CHUNKERS if name != "none"]
#: What is passed on with the budget, so that short texts are cut as well.
SMALL: dict[str, dict[str, int]] = {
    "window": {"size": 3, "step": 2},
    "semantic": {"min_tokens": 5, "percentile": 50},
    "parent_child": {"parent_tokens": 300},
}


def make(name: str, counter: TokenCounter, max_tokens: int, overlap: int) -> Chunker:
    """The chunker with as much of the budget as it has options for."""
    options = {"max_tokens": max_tokens, "overlap": overlap} | SMALL.get(name, {})
    known = CHUNKERS[name].defaults
    given = {option: value for option, value in options.items() if option in known}
    return get_chunker(name, counter=counter, embed=embed, **given)


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS)
@pytest.mark.parametrize("name", CUTTING)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=random_texts(markup=True), budget=BUDGETS)
@example(text="x" * 45 + " \n \u0301" + "y" * 80, budget=(24, 0))
@example(text="a " + "🇩🇪🇫🇷🇪🇸" * 60 + " 🇩" + "🇩🇪" * 40, budget=(24, 0))
@example(text="🇩" * 301, budget=(24, 11))
def test_spans_lose_nothing_and_keep_the_budget(
    name: str, counter: TokenCounter, text: str, budget: tuple[int, int]
) -> None:
    max_tokens, overlap = budget
    document = coded(text) if name == "code" else marked(text)
    chunker = make(name, counter, max_tokens, overlap)

    spans = chunker.split(document)

    assert_covers(text, spans)
    assert_only_neighbours_overlap(spans)
    assert_within_budget(text, spans, counter, max_tokens)
    assert_graphemes_whole(text, spans, counter, max_tokens)
    assert_parents_follow_one_another(name, spans)
    assert chunker.split(document) == spans


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS)
@pytest.mark.parametrize("name", ["recursive", "fixed", "sentence", "paragraph", "semantic"])
@settings(max_examples=30, deadline=None)
@given(text=random_texts(), budget=BUDGETS)
def test_overlap_is_at_most_what_was_asked_for(
    name: str, counter: TokenCounter, text: str, budget: tuple[int, int]
) -> None:
    max_tokens, overlap = budget
    spans = make(name, counter, max_tokens, overlap).split(plain(text))
    for one, two in pairwise(spans):
        repeated = text[two.start : one.end]
        # Inside a text words cost what they cost alone, give or take where they are joined.
        assert two.start >= one.end or counter.count(repeated) <= 1.5 * overlap + 2


@given(text=st.text(st.sampled_from(" \n\t\u2003\xa0\x0b\u3000"), max_size=50))
@pytest.mark.parametrize("name", CHUNKERS)
def test_white_space_gives_no_span(name: str, text: str) -> None:
    document = ParsedDocument(text=text, media_type="text/plain", title="T")
    chunker = get_chunker(name, counter=COUNTERS["wordpiece"], embed=embed)
    assert chunker.split(document) == []


@settings(max_examples=60, deadline=None)
@given(text=random_texts())
def test_none_gives_the_whole_text_as_one_span(text: str) -> None:
    counter = WIDE
    spans = get_chunker("none", counter=counter).split(plain(text))
    assert [text[span.start : span.end] for span in spans] == [text.strip()] * bool(text.strip())
    assert [span.token_count for span in spans] == [counter.count(text)] * bool(text.strip())


def assert_covers(text: str, spans: Sequence[Span]) -> None:
    edges = [0]
    for span in spans:
        clusters = graphemes(text[span.start : span.end])
        assert clusters[0].strip(), "begins with white space"
        assert clusters[-1].strip(), "ends with white space"
        assert not text[edges[-1] : span.start].strip(), "lost between spans"
        assert span.end > edges[-1], "contained in the one before"
        edges.append(span.end)
    assert not text[edges[-1] :].strip(), "lost at the end"


def assert_only_neighbours_overlap(spans: Sequence[Span]) -> None:
    for one, three in zip(spans, spans[2:], strict=False):
        assert one.end <= three.start
    for one, two in pairwise(spans):
        assert one.start < two.start


def assert_parents_follow_one_another(name: str, spans: Sequence[Span]) -> None:
    """Numbered from 0 in order, and two of them share no text."""
    if name != PARENT_CHILD:
        assert {span.parent for span in spans} <= {None}
        return
    assert list(dict.fromkeys(span.parent for span in spans)) == list(
        range(len({span.parent for span in spans}))
    )
    for one, two in pairwise(spans):
        assert one.parent == two.parent or one.end <= two.start


def assert_within_budget(
    text: str, spans: Sequence[Span], counter: TokenCounter, max_tokens: int
) -> None:
    for span in spans:
        chunk = text[span.start : span.end]
        assert span.token_count == counter.count(chunk)
        assert span.token_count <= max_tokens, chunk


def assert_graphemes_whole(
    text: str, spans: Sequence[Span], counter: TokenCounter, max_tokens: int
) -> None:
    """No cut inside a cluster, unless that cluster alone is above the budget.

    The ends of the text itself are trimmed of white space whatever follows it.
    """
    edges = grapheme_edges(text)
    for cut in {span.start for span in spans[1:]} | {span.end for span in spans[:-1]}:
        start = max(edge for edge in edges if edge <= cut)
        end = min(edge for edge in edges | {len(text)} if edge >= cut)
        assert start == cut or counter.count(text[start:end]) > max_tokens
