"""Sentences that no source speaks for are found; those that a source says, however, are not."""

import pytest

from rag.answering.groundedness import check_claims, unsupported
from rag.tests.answering import passage

SOURCES = [
    passage(
        "The Eiffel Tower was built by the company of Gustave Eiffel between 1887 and 1889. It is"
        " 330 metres tall and was the first structure above 300 metres. It has three levels.",
        title="Eiffel Tower",
    ),
    passage("Paris is the capital of France. It has 2,102,650 inhabitants.", 2, title="Paris"),
]


def flagged(answer: str) -> list[str]:
    found = unsupported(answer, SOURCES)
    assert all(answer[each["start"] : each["end"]] == each["text"] for each in found)
    return [each["text"] for each in found]


@pytest.mark.parametrize(
    "answer",
    [
        "The company of Gustave Eiffel built the tower from 1887 to 1889 [1].",
        "It is 330 metres tall [1]. It has 3 levels [1].",
        "Paris has 2102650 inhabitants [2].",
        "The Eiffel Tower stands 330 metres tall, built by Eiffel's company [1].",
        "Yes [1].",
        "Is that what you meant?",
        "The sources do not say: nothing that was found answers this question.",
        "```\nanything = 7777\n```",
    ],
)
def test_what_a_source_says_is_supported(answer: str) -> None:
    assert flagged(answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "The tower is 412 metres tall [1].",
        "The tower was designed by the engineer Nikola Hartmann [1].",
        "Bananas ripen faster when stored beside apples [2].",
        "Paris has 9 million inhabitants [2].",
    ],
)
def test_what_no_source_says_is_found(answer: str) -> None:
    assert flagged(answer) == [answer]


def test_only_the_wrong_sentence_of_an_answer_is_named() -> None:
    wrong = "It opened in 1925 [1]."
    answer = (
        f"The tower was built by the company of Gustave Eiffel [1]. {wrong} It has three levels."
    )
    assert flagged(answer) == [wrong]


def test_an_answer_in_another_language_is_judged_by_its_numbers() -> None:
    true = "Der Turm ist 330 Meter hoch und wurde von der Firma von Eiffel gebaut [1]."
    false = "Der Turm ist 512 Meter hoch und wurde von der Firma von Eiffel gebaut [1]."
    assert flagged(true) == []
    assert flagged(false) == [false]


def test_without_sources_every_claim_is_unsupported() -> None:
    claim = "The tower was built by Gustave Eiffel's company."
    assert [each["text"] for each in unsupported(claim, [])] == [claim]


def test_a_sentence_in_other_words_than_its_sources_is_unsupported() -> None:
    open_claim = "The structure attracts photographers above Paris rooftops."
    assert flagged(open_claim) == [open_claim]


def test_scripts_without_spaces_are_compared_by_their_letters() -> None:
    source = [passage("富士山は日本で一番高い山です。", language="ja")]
    assert unsupported("富士山は一番高い山です。", source) == []
    false = "琵琶湖には珍しい魚類が多数生息している。"
    assert [each["text"] for each in unsupported(false, source)] == [false]


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The tower has three levels.", 1),
        ("Paris has 2,102,650 inhabitants.", 2),
        ("330 metres.", 1),
        ("Der Turm wurde von der Firma in Paris für die Stadt und mit viel Eisen gebaut.", None),
        ("Paris has 330 inhabitants.", None),
        ("Yes.", None),
    ],
)
def test_a_claim_names_the_passage_that_says_it(claim: str, source: int | None) -> None:
    (found,) = check_claims(claim, SOURCES)
    assert (found.source and found.source.number) == source
