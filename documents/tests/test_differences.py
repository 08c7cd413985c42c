"""What changed between two texts, as a person reads it."""

from hypothesis import given
from hypothesis import strategies as st

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
