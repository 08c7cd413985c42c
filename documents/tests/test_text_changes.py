"""What changed between two texts as a person reads it, and a change put into passages."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.ingestion.text_changes import (
    PassageExtent,
    TextChange,
    apply_change,
    change_between,
    find_change,
    join_passages,
    owner_index,
)
from documents.reader import DiffBlock, diff_texts, diff_words

texts = st.lists(st.sampled_from(["a b c", "a x c", "d e", "f"]), max_size=6).map("\n\n".join)


def said(blocks: list[DiffBlock], *kinds: str) -> list[str]:
    parts = ("".join(text for kind, text in block.pieces if kind in kinds) for block in blocks)
    return [part for part in parts if part]


def test_only_the_words_that_changed_are_marked() -> None:
    assert diff_words("You have 28 days off.", "You have 30 days off.") == (
        ("same", "You have "),
        ("gone", "28"),
        ("new", "30"),
        ("same", " days off."),
    )


def test_texts_without_a_word_in_common_are_told_apart_as_a_whole() -> None:
    assert diff_words("one two three", "vier") == (
        ("gone", "one two three"),
        ("new", "vier"),
    )


def test_what_did_not_change_is_left_out_but_for_a_paragraph_around() -> None:
    before = [f"Paragraph {n}." for n in range(10)]
    after = [*before[:5], "Something new came in.", *before[5:]]
    assert diff_texts("\n\n".join(before), "\n\n".join(after)) == [
        DiffBlock(left_out=4),
        DiffBlock((("same", "Paragraph 4."),)),
        DiffBlock((("new", "Something new came in."),)),
        DiffBlock((("same", "Paragraph 5."),)),
        DiffBlock(left_out=4),
    ]


def test_line_ends_are_no_difference() -> None:
    assert diff_texts("one\ntwo\n\n\n\nthree", "one two\n\nthree") == []


@given(texts, texts)
def test_both_texts_can_be_read_from_it_where_nothing_is_left_out(before: str, after: str) -> None:
    blocks = diff_texts(before, after)
    if any(block.left_out for block in blocks) or not blocks:
        return
    assert said(blocks, "same", "gone") == [part for part in before.split("\n\n") if part]
    assert said(blocks, "same", "new") == [part for part in after.split("\n\n") if part]


TEXT = "one two three four five six seven eight nine ten"


def cut(text: str, *spans: tuple[int, int]) -> list[PassageExtent]:
    return [PassageExtent(start, text[start:end]) for start, end in spans]


def applied(text: str, change: TextChange) -> str:
    return text[: change.start] + change.text + text[change.end :]


def test_a_change_is_as_small_as_whole_words_allow() -> None:
    assert change_between("the old cat sat", "the old car sat") == TextChange(8, 11, "car")
    assert change_between("a b", "a new b", start=10) == TextChange(12, 12, "new ")
    assert change_between("same", "same") == TextChange(4, 4, "")


def test_words_that_two_passages_share_change_in_both_and_what_lies_behind_moves() -> None:
    passages = cut(TEXT, (0, 18), (8, 27), (28, 48))
    change = change_between(passages[0].text, "one two THIRD four")
    first, second, third = apply_change(passages, change, owner=0)
    assert first == PassageExtent(0, "one two THIRD four")
    assert second == PassageExtent(8, "THIRD four five six")
    assert third == PassageExtent(28, passages[2].text)
    assert join_passages([first, second, third]).replace("\n", " ") == TEXT.replace(
        "three", "THIRD"
    )


def test_a_passage_ends_where_a_change_begins_that_it_has_only_a_part_of() -> None:
    passages = cut(TEXT, (0, 18), (14, 27))
    change = change_between(passages[1].text, "vier fuenf six", start=14)
    first, second = apply_change(passages, change, owner=1)
    assert first == PassageExtent(0, "one two three ")
    assert second == PassageExtent(14, "vier fuenf six")


def test_a_passage_that_would_grow_too_long_leaves_the_change_to_its_owner() -> None:
    passages = cut(TEXT, (0, 18), (8, 27))
    change = TextChange(14, 18, "f o u r")
    first, second = apply_change(passages, change, owner=0, fits=lambda index, text: False)
    assert first == PassageExtent(0, "one two three f o u r")
    assert second == PassageExtent(21, " five six")


def test_a_passage_without_anything_of_its_own_left_goes() -> None:
    passages = cut(TEXT, (0, 18), (8, 13), (19, 27))
    change = change_between(passages[0].text, "uno dos tres cuatro")
    first, second, third = apply_change(passages, change, owner=0, fits=lambda index, text: False)
    assert first == PassageExtent(0, "uno dos tres cuatro")
    assert second is None
    assert third == PassageExtent(20, "five six")


def test_what_is_added_between_two_passages_is_of_the_one_that_was_edited() -> None:
    passages = cut(TEXT, (0, 7), (8, 18))
    change = change_between(passages[0].text, "one two and a half")
    assert apply_change(passages, change, owner=0) == [
        PassageExtent(0, "one two and a half"),
        PassageExtent(19, "three four"),
    ]


def test_a_change_is_found_where_its_passage_stands_now() -> None:
    source = "A new beginning.\n\n" + TEXT
    change = find_change(source, "two three", "two 3", near=4)
    assert change is not None
    assert applied(source, change) == source.replace("three", "3")


def test_of_several_places_the_nearest_is_meant() -> None:
    source = "a cat. b dog. a cat. c"
    change = find_change(source, "a cat.", "a cow.", near=13)
    assert change is not None
    assert applied(source, change) == "a cat. b dog. a cow. c"


def test_other_line_ends_are_the_same_passage_and_stay() -> None:
    change = find_change("one\ntwo   three\n\nfour", "one two three four", "one two 3 four", near=0)
    assert change == TextChange(10, 15, "3")


def test_a_change_is_known_by_its_surroundings_where_the_passage_is_another() -> None:
    before = f"The intro was long. {'Words and words. ' * 10}The fee is 10 euros a month."
    after = before.replace("10 euros", "12 euros")
    source = before.replace("The intro was long.", "The intro is short.")
    change = find_change(source, before, after, near=0)
    assert change is not None
    assert applied(source, change) == source.replace("10 euros", "12 euros")


def test_what_the_source_says_by_itself_needs_no_change() -> None:
    change = find_change(
        "The fee is 12 euros.", "The fee is 10 euros.", "The fee is 12 euros.", near=0
    )
    assert change is not None
    assert (change.text, change.growth) == ("", 0)


@pytest.mark.parametrize("source", ["", "Something else altogether.", "The fee of the past."])
def test_what_is_gone_is_not_found(source: str) -> None:
    assert find_change(source, "The fee is 10 euros.", "The fee is 12 euros.", near=0) is None


def test_the_owner_is_who_has_all_of_it() -> None:
    passages = cut(TEXT, (0, 18), (8, 27), (28, 48))
    assert owner_index(passages, TextChange(14, 27, "x")) == 1
    assert owner_index(passages, TextChange(20, 40, "x")) == 1
    assert owner_index(passages, TextChange(27, 28, "x")) == 1
    assert owner_index([], TextChange(0, 0, "x")) is None


words = st.lists(st.sampled_from(["a", "bb", "ccc", "Ünï", "dd"]), min_size=1, max_size=12)


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, list[PassageExtent], int, str]:
    """A text cut into passages whose neighbours may overlap, one of them and what it is to say."""
    parts = draw(st.lists(words, min_size=1, max_size=5))
    text, spans = "", list[tuple[int, int]]()
    for part in parts:
        start = len(text) + 1 if text else 0
        text = f"{text} {' '.join(part)}" if text else " ".join(part)
        spans.append((start, len(text)))
    overlapping = [spans[0]]
    for before, (start, end) in pairwise(spans):
        back = draw(st.integers(0, start - before[0]))
        while start - back > before[0] and text[start - back - 1] != " ":
            back += 1
        if start - back == overlapping[-1][0]:  # no chunker repeats all of a passage
            back = 0
        overlapping.append((start - back, end))
    passages = cut(text, *overlapping)
    index = draw(st.integers(0, len(passages) - 1))
    after = " ".join(draw(words))
    return text, passages, index, after


@given(edits())
def test_passages_are_parts_of_the_changed_text_and_lose_nothing(
    edit: tuple[str, list[PassageExtent], int, str],
) -> None:
    text, passages, index, after = edit
    change = change_between(passages[index].text, after, start=passages[index].start)
    wanted = applied(text, change)
    found = apply_change(passages, change, owner=index)
    there = [extent for extent in found if extent is not None]
    assert found[index] == PassageExtent(passages[index].start, after)
    assert all(wanted[extent.start : extent.end] == extent.text for extent in there)
    assert join_passages(there).split() == wanted.split()
    assert [extent.start for extent in there] == sorted(extent.start for extent in there)
    untouched = [
        (passage, extent)
        for place, (passage, extent) in enumerate(zip(passages, found, strict=True))
        if place != index and (passage.end <= change.start or passage.start >= change.end)
    ]
    assert all(extent and extent.text == passage.text for passage, extent in untouched)
