"""Letters tell which passages share the question's words; lists show Markdown without its signs."""

from math import isclose, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.text import HIGHLIGHT_END, HIGHLIGHT_START, strip_markdown
from common.trigrams import MAX_QUESTION_CHARACTERS, trigram_overlap

TEXTS = st.dictionaries(st.integers(1, 9), st.text(max_size=60), max_size=6)


def plain(text: str) -> str:
    """Letters as they are, all else a space, and two for what takes two units of UTF-16."""
    return "".join(
        "  " if ord(letter) >= 1 << 16 else letter if letter.isalnum() else " "
        for letter in text.casefold()
    )


def naive_trigrams(text: str) -> set[str]:
    padded = f"  {plain(text)}  "
    found = {padded[start : start + 3] for start in range(len(padded) - 2)}
    return {trigram for trigram in found if "  " not in trigram}


@given(st.text(max_size=40), TEXTS)
def test_scores_agree_with_counting_by_hand(question: str, passages: dict[int, str]) -> None:
    held = {passage: naive_trigrams(text) for passage, text in passages.items()}
    weights = {
        trigram: log((len(held) + 1) / (sum(trigram in each for each in held.values()) + 0.5))
        for trigram in naive_trigrams(question)
    }
    scores = trigram_overlap(question, passages)
    assert scores.keys() == passages.keys()
    for passage, trigrams in held.items():
        expected = sum(weights[trigram] for trigram in weights.keys() & trigrams)
        assert isclose(scores[passage], expected, abs_tol=1e-9)


def test_compounds_and_inflected_forms_share_letters_with_their_parts() -> None:
    scores = trigram_overlap(
        "Welche Versicherung zahlt?",
        {1: "Die Krankenversicherungen zahlen.", 2: "Der Hund bellt.", 3: "Die Katze schläft."},
    )
    assert scores[1] > max(scores[2], scores[3])


def test_a_rare_name_counts_for_more_than_what_stands_everywhere() -> None:
    passages = {1: "the office of Zbigniew", 2: "the office of Anna", 3: "the house", 4: "Zbignew"}
    scores = trigram_overlap("the office of Zbigniew", passages)
    assert max(scores, key=scores.__getitem__) == 1
    assert scores[4] > scores[3]


def test_punctuation_joins_no_words_and_case_does_not_matter() -> None:
    scores = trigram_overlap("table singer_id", {1: "TABLE: Singer-ID", 2: "tab les"})
    assert scores[1] > scores[2]


def test_a_question_without_letters_and_no_passages_are_answers_too() -> None:
    assert trigram_overlap("?!", {1: "text"}) == {1: 0.0}
    assert trigram_overlap("text", {}) == {}


def test_only_the_beginning_of_a_pasted_page_counts() -> None:
    passages = {1: "begin", 2: "finish"}
    scores = trigram_overlap("begin " + "x" * MAX_QUESTION_CHARACTERS + " finish", passages)
    assert scores[1] > 0
    assert scores[2] == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("## Set up\n\nRun `make`.", "Run make."),
        ("First.\n\n## Then\n\nGo on.", "First.\n\nThen: Go on."),
        ("First.\n\n## And then?\nGo on.", "First.\n\nAnd then? Go on."),
        ("First.\n\n## Nothing follows", "First.\nNothing follows"),
        ("## Alone", "Alone"),
        ("Run:\n\n```sh\nmake run\n```\n\nThen look.", "Run:\n\nmake run\n\nThen look."),
        ("- one\n* two", "• one\n• two"),
        ("-1 and a-b", "-1 and a-b"),
        (r"2\*3\*4 \| \[x\](y)", "2*3*4 | [x](y)"),
        ("as in [12] and [the log](http://a.b)", "as in [12] and the log"),
    ],
)
def test_what_stands_for_the_look_of_a_text_is_left_out(text: str, words: str) -> None:
    assert strip_markdown(text) == words


def test_a_first_heading_stays_where_nothing_else_is_highlighted() -> None:
    heading, rest = f"# The {HIGHLIGHT_START}move{HIGHLIGHT_END}\n\n", "At seven."
    assert strip_markdown(heading + rest) == f"The {HIGHLIGHT_START}move{HIGHLIGHT_END}: At seven."
    assert (
        strip_markdown(f"{heading}The {HIGHLIGHT_START}movers{HIGHLIGHT_END}.")
        == f"The {HIGHLIGHT_START}movers{HIGHLIGHT_END}."
    )


def test_no_highlight_is_torn() -> None:
    torn = f"```{HIGHLIGHT_START}sh\nmake{HIGHLIGHT_END} run"
    assert (
        strip_markdown(torn).count(HIGHLIGHT_START)
        == strip_markdown(torn).count(HIGHLIGHT_END)
        == 1
    )
