"""Only the last user message changes, and stripping gives back what was typed, to the byte."""

import copy
from datetime import date
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from memory.injection import (
    Injected,
    TurnEntry,
    inject_into,
    last_user_index,
    remove_blocks,
    render_body,
    signed_block,
    strip_from,
    strip_signed_block,
    text_of_content,
)
from memory.tests.hostile import FENCE, INJECTED, MESSAGES, SOMETHING, TEXTS

KEYS = [b"a key of this test"]
OTHER = [b"somebody else's key"]
ANA = Injected((("name", "Ana"),), (TurnEntry(date(2023, 5, 8), "Where do I live?", "In Berlin."),))


def said(text: str) -> list[dict[str, Any]]:
    return [{"role": "system", "content": "Be kind."}, {"role": "user", "content": text}]


@given(MESSAGES, INJECTED)
@example(said("trailing lines\n\n \n"), ANA)
@example(said("I saw this:" + FENCE), ANA)
@example(said(""), ANA)
def test_stripping_gives_back_the_originals(messages: list[Any], injected: Injected) -> None:
    before = copy.deepcopy(messages)
    put = inject_into(messages, injected, keys=KEYS)
    assert strip_from(put, keys=KEYS) == before
    assert messages == before, "nothing is changed in place"


@given(MESSAGES, INJECTED)
def test_only_the_last_user_message_changes(messages: list[Any], injected: Injected) -> None:
    put = inject_into(messages, injected, keys=KEYS)
    at = last_user_index(messages)
    changed = [i for i, (old, new) in enumerate(zip(messages, put, strict=True)) if old is not new]
    assert changed == ([at] if at is not None and injected else [])
    for index in changed:
        old, new = messages[index], put[index]
        assert {**new, "content": None} == {**old, "content": None}
        whole, own = text_of_content(new["content"]), text_of_content(old["content"])
        assert whole.startswith(own + "\n\n[memory ")
        assert whole.endswith(render_body(injected))


@given(MESSAGES, INJECTED)
def test_stripping_changes_nothing_that_was_not_injected(
    messages: list[Any], injected: Injected
) -> None:
    stripped = strip_from(inject_into(messages, injected, keys=OTHER), keys=KEYS)
    assert stripped == inject_into(messages, injected, keys=OTHER)
    assert all(a is b for a, b in zip(messages, strip_from(messages, keys=KEYS), strict=True))


@given(MESSAGES, SOMETHING, SOMETHING)
def test_injecting_again_replaces_the_block(
    messages: list[Any], first: Injected, second: Injected
) -> None:
    once = inject_into(messages, first, keys=KEYS)
    twice = inject_into(once, second, keys=KEYS)
    assert twice == inject_into(messages, second, keys=KEYS)
    assert strip_from(strip_from(twice, keys=KEYS), keys=KEYS) == messages


@given(TEXTS, TEXTS, SOMETHING)
def test_a_block_that_was_copied_behind_other_words_is_the_user_s_own_text(
    text: str, other: str, injected: Injected
) -> None:
    assume(text != other)
    block = signed_block(injected, before=text, keys=KEYS)
    assert strip_signed_block(text + block, keys=KEYS) == text
    assert strip_signed_block(other + block, keys=KEYS) == other + block


@given(TEXTS, SOMETHING, st.data())
def test_a_block_whose_message_was_changed_stays(
    text: str, injected: Injected, data: st.DataObject
) -> None:
    whole = text + signed_block(injected, before=text, keys=KEYS)
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:at] + data.draw(st.sampled_from("x[\n =")) + whole[at + 1 :]
    assume(changed != whole)
    assert strip_signed_block(changed, keys=KEYS) == changed
    assert strip_signed_block(whole + "\n", keys=KEYS) == whole + "\n"


@given(TEXTS, SOMETHING)
def test_a_new_key_still_knows_the_blocks_of_the_old_one(text: str, injected: Injected) -> None:
    whole = text + signed_block(injected, before=text, keys=OTHER)
    assert strip_signed_block(whole, keys=[*KEYS, *OTHER]) == text


def test_earlier_messages_keep_a_block_that_a_client_sent_back() -> None:
    """The model saw them so: changing them would cost its prompt cache."""
    first = inject_into(said("Where do I live?"), ANA, keys=KEYS)
    later = [*first, {"role": "assistant", "content": "In Berlin."}, *said("And what am I called?")]
    put = inject_into(later, ANA, keys=KEYS)
    assert put[:-1] == later[:-1]
    assert strip_from(put, keys=KEYS)[1]["content"] == "Where do I live?"


def test_a_list_of_parts_gets_the_block_as_a_part_of_its_own() -> None:
    parts = [
        {"type": "text", "text": "Who is this?"},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
    ]
    put = inject_into([{"role": "user", "content": parts}], ANA, keys=KEYS)
    assert put[0]["content"][:2] == parts
    assert put[0]["content"][2]["type"] == "text"
    assert put[0]["content"][2]["text"].startswith("\n\n[memory ")
    assert len(parts) == 2


def test_a_block_is_found_in_the_part_that_a_client_made_of_a_text() -> None:
    (put,) = inject_into([{"role": "user", "content": "Hello"}], ANA, keys=KEYS)
    as_part = [{"role": "user", "content": [{"type": "text", "text": put["content"], "id": 1}]}]
    assert strip_from(as_part, keys=KEYS) == [
        {"role": "user", "content": [{"type": "text", "text": "Hello", "id": 1}]}
    ]


def test_an_assistant_that_repeats_a_block_keeps_it() -> None:
    (put,) = inject_into([{"role": "user", "content": "Hello"}], ANA, keys=KEYS)
    repeated = [{"role": "assistant", "content": put["content"]}]
    assert strip_from(repeated, keys=KEYS) == repeated


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "system", "content": "Be kind."}],
        [{"role": "assistant", "content": "Hello"}],
        [{"role": "user", "content": "first"}, {"role": "user", "content": None}],
        [{"role": "user"}],
        [{"content": "no role"}],
    ],
    ids=["none", "system", "assistant", "no content", "no field", "no role"],
)
def test_without_a_user_s_words_at_the_end_nothing_changes(messages: list[Any]) -> None:
    assert inject_into(messages, ANA, keys=KEYS) == messages


@given(TEXTS, SOMETHING)
def test_nothing_injected_is_left_to_learn_from(text: str, injected: Injected) -> None:
    block = signed_block(injected, before=text, keys=KEYS)
    assert remove_blocks(text + block) == remove_blocks(text)
    assert remove_blocks(block + "\n" + text) == remove_blocks(text)


@given(TEXTS, SOMETHING, st.data())
def test_a_block_that_was_flattened_or_cut_off_is_not_learnt_from(
    text: str, injected: Injected, data: st.DataObject
) -> None:
    block = signed_block(injected, before=text, keys=KEYS)
    own = remove_blocks(text)
    assert remove_blocks(text + block.replace("\n", " ")) == own
    left = remove_blocks(text + block[: data.draw(st.integers(28, len(block)))])
    assert left.removeprefix(own).strip() in {"[facts"[:n] for n in range(7)} | {
        "[context"[:n] for n in range(9)
    }


@given(st.lists(TEXTS, min_size=1, max_size=4).map("".join))
def test_what_looks_like_a_block_is_gone_at_once(text: str) -> None:
    once = remove_blocks(text)
    assert remove_blocks(once) == once
    assert not any(name in once.lower() for name in ("[facts:", "[context:"))


@pytest.mark.parametrize("piece", ["[facts: ", " \n", FENCE, "[", "]", "[memory 0000000000000000:"])
def test_texts_of_the_greatest_length_are_read(piece: str) -> None:
    """Blanks took half a minute with a pattern that could begin at any of them."""
    text = piece * (100_000 // len(piece)) + "["
    assert len(remove_blocks(text)) <= len(text)
    assert strip_signed_block(text, keys=KEYS) == text


def test_other_brackets_stay() -> None:
    text = "My notes [1] say: [memory leak] in list[int], and [facts] are [context] dependent."
    assert remove_blocks(text) == text
