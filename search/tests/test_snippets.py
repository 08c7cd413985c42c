"""Snippets show the part that answers, with exact highlights."""

from hypothesis import given
from hypothesis import strategies as st

from search.snippets import WINDOW, make_snippet, parse_marked

LONG = "Nothing to see in this sentence. " * 40


def spans_of(text: str, *words: str) -> list[tuple[int, int]]:
    return sorted((text.index(word), text.index(word) + len(word)) for word in words)


def test_the_window_holds_the_words_that_were_asked_for() -> None:
    text = LONG + "The aspirin dose for adults is one tablet. " + LONG
    snippet = make_snippet(text, spans_of(text, "aspirin", "dose"))
    assert "aspirin dose for adults" in snippet.text
    assert [snippet.text[a:b] for a, b in snippet.highlights] == ["aspirin", "dose"]
    assert snippet.text.startswith("The aspirin")
    assert snippet.cut_before
    assert snippet.cut_after


def test_more_different_words_beat_more_of_the_same() -> None:
    text = "dose dose dose dose. " + LONG + "aspirin and its dose."
    every = [(index, index + 4) for index in range(len(text)) if text.startswith("dose", index)]
    snippet = make_snippet(text, sorted([*every, *spans_of(text, "aspirin")]))
    assert "aspirin and its dose" in snippet.text


def test_a_short_text_is_shown_whole() -> None:
    snippet = make_snippet("  A short text.  ", [])
    assert snippet.text == "A short text."
    assert not snippet.cut_before
    assert not snippet.cut_after


def test_without_highlights_it_begins_at_the_beginning() -> None:
    assert LONG.startswith(make_snippet(LONG, []).text)


def test_markers_become_offsets() -> None:
    assert parse_marked("a [big] [dog]", start="[", stop="]") == [(2, 5), (6, 9)]


@given(st.text(max_size=900), st.lists(st.tuples(st.integers(0, 900), st.integers(1, 30))))
def test_offsets_always_point_into_the_text(text: str, raw: list[tuple[int, int]]) -> None:
    spans, position = [], 0
    for start, length in sorted(raw):
        if start >= position and start + length <= len(text):
            spans.append((start, start + length))
            position = start + length
    snippet = make_snippet(text, spans)
    assert text[snippet.start : snippet.start + len(snippet.text)] == snippet.text
    assert len(snippet.text) <= max(WINDOW, 0)
    for first, last in snippet.highlights:
        assert 0 <= first < last <= len(snippet.text)
        assert (first + snippet.start, last + snippet.start) in spans
