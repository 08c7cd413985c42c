"""Snippets show the part that answers, with exact highlights, on pages too."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.text import may_combine
from search.results import Snippet
from search.snippets import WINDOW_CHARACTERS, make_snippet, needs_focus, parse_marked, sentences
from search.templatetags.passages import marked

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
    assert len(snippet.text) <= max(WINDOW_CHARACTERS, 0)
    for first, last in snippet.highlights:
        assert 0 <= first < last <= len(snippet.text)
        assert (first + snippet.start, last + snippet.start) in spans


def test_a_hit_of_meaning_alone_shows_its_nearest_sentence() -> None:
    text = LONG + "Take one tablet in the morning. " + LONG
    start = text.index("Take")
    snippet = make_snippet(text, [], focus=(start, start + 31))
    assert snippet.text.startswith("Take one tablet in the morning.")
    assert snippet.cut_before
    assert snippet.cut_after


def test_the_last_sentence_is_shown_with_what_stands_before_it() -> None:
    text = LONG + "Take one tablet."
    snippet = make_snippet(text, [], focus=(text.index("Take"), len(text)))
    assert snippet.text.endswith("see in this sentence. Take one tablet.")
    assert len(snippet.text) > WINDOW_CHARACTERS / 2
    assert not snippet.cut_after


def test_a_highlighted_word_outweighs_the_nearest_sentence() -> None:
    text = LONG + "The aspirin dose is one. " + LONG + "A tablet in the morning. " + LONG
    focus = (text.index("A tablet"), text.index("morning."))
    assert "aspirin dose" in make_snippet(text, spans_of(text, "dose"), focus=focus).text
    assert not needs_focus(text, spans_of(text, "dose"))
    assert needs_focus(text, [])
    assert not needs_focus("A short text.", [])


CHINESE = (
    "这一句没有什么可看的内容。" * 30 + "成人每次服用一片阿司匹林！" + "后面也没有什么内容。" * 30
)


def test_chinese_begins_and_ends_with_a_sentence_and_fills_as_many_lines() -> None:
    snippet = make_snippet(CHINESE, spans_of(CHINESE, "阿司匹林"))
    assert snippet.text.startswith("成人每次")
    assert snippet.text.endswith("。")
    assert WINDOW_CHARACTERS / 4 < len(snippet.text) <= WINDOW_CHARACTERS / 2


@pytest.mark.parametrize("letter", ["é", "น้ำ", "👩‍👩‍👧 ", "が"])
def test_what_a_reader_sees_as_one_character_is_not_cut(letter: str) -> None:
    text = unicodedata.normalize("NFD", letter) * 400
    for focus in range(20, 60):
        snippet = make_snippet(text, [], focus=(focus, focus + 9))
        end = snippet.start + len(snippet.text)
        assert not may_combine(text[snippet.start - 1], text[snippet.start])
        assert not may_combine(text[end - 1], text[end])


def test_sentences_of_many_scripts() -> None:
    text = (
        "Dr. A. Smith said it, e.g. here and there. It was “true and long enough.” Next\n\n"
        "A paragraph of its own without an end"
    )
    assert [text[a:b] for a, b in sentences(text)] == [
        "Dr. A. Smith said it, e.g. here and there.",
        "It was “true and long enough.”",
        "Next\n\nA paragraph of its own without an end",
    ]
    chinese = "这是第一句话，足够长了，单独成为一句。「第二句话也必须足够长，对不对？」短。完！"
    assert [chinese[a:b] for a, b in sentences(chinese)] == [
        "这是第一句话，足够长了，单独成为一句。",
        "「第二句话也必须足够长，对不对？」",
        "短。完！",
    ]


@given(st.text(alphabet="ab .!?。！\n水火éน้", max_size=700), st.integers(10, 320))
def test_sentences_cover_the_text_and_stay_short(text: str, longest: int) -> None:
    spans = sentences(text, longest=longest)
    assert all(0 < end - start <= longest for start, end in spans)
    assert spans == sorted(spans)
    covered = "".join(text[start:end] for start, end in spans)
    assert "".join(covered.split()) == "".join(text.split())


def show(text: str, *words: str, rendering: str = "plain") -> str:
    spans = tuple((text.index(word), text.index(word) + len(word)) for word in words)
    return marked(Snippet(text, 0, spans), rendering)


def test_everything_is_escaped_and_highlights_are_marked() -> None:
    assert show("<b>aspirin</b> & co", "aspirin") == (
        "&lt;b&gt;<mark>aspirin</mark>&lt;/b&gt; &amp; co"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see [Add workers](how-to/add.md) now", "see Add <mark>workers</mark> now"),
        ("[how to](../add-workers.md): more", "how to: more"),
        ("run `workers` *well*", "run <mark>workers</mark> well"),
        ("# Heading\nworkers", "<mark>workers</mark>"),
        ("a 2 * 3 and a-b workers", "a 2 * 3 and a-b <mark>workers</mark>"),
    ],
)
def test_markdown_reads_as_a_sentence(text: str, shown: str) -> None:
    assert show(text, "workers", rendering="markdown") == shown


def test_plain_text_is_left_alone() -> None:
    assert show("a[1] = `x` | y", rendering="plain") == "a[1] = `x` | y"


@pytest.mark.parametrize("rule", ["|---|:-:|", "| - | - |"])
def test_a_table_reads_as_rows_of_cells(rule: str) -> None:
    text = f"| option | workers |\n{rule}\n| a | b |\n\nThen text."
    assert show(text, "workers", rendering="markdown") == (
        "option · <mark>workers</mark>;\na · b;\n\nThen text."
    )


def test_a_piece_of_a_table_reads_on_behind_a_highlight() -> None:
    assert show("workers | 7 |\n| b | 8 |", "workers", rendering="markdown") == (
        "<mark>workers</mark> · 7;\nb · 8"
    )


def test_no_text_can_pretend_to_be_a_highlight() -> None:
    assert "<mark>" not in show("\ue000<script>\ue001")
