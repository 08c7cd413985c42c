"""The passages of an answer: those of pages that are about the question."""

from dataclasses import replace

import pytest

from rag.answering.passage_ranking import rank_passages
from rag.events import Passage
from rag.tests.answering import passage


def found(
    number: int, fused: float, *, document_id: int = 0, key: str = "", text: str = ""
) -> Passage:
    made = passage(text or f"Text {number}.", number, document_id=document_id or number)
    return replace(made, fused=fused, document_key=key or made.document_key)


def ranked(
    *passages: Passage, titles: list[float] | None = None, coverage: float = 0.5
) -> list[int]:
    best = rank_passages(passages, coverage=[coverage] * len(passages), title_nearness=titles)
    return [each.number for each in best]


def test_the_order_of_the_search_stays_where_nothing_else_is_known() -> None:
    assert ranked(found(1, 1.5), found(2, 1.4), found(3, 1.0)) == [1, 2, 3]
    assert rank_passages([], coverage=[], title_nearness=None) == []


def test_a_title_that_says_what_is_asked_comes_first() -> None:
    assert ranked(found(1, 1.0), found(2, 0.95), found(3, 0.3), titles=[0.1, 1.0, 0.1])[0] == 2


def test_a_document_found_by_many_passages_comes_first() -> None:
    alone, *others = found(1, 1.0), *(found(n, 0.95, document_id=9) for n in (2, 3, 4))
    assert ranked(alone, *others, found(5, 0.3))[0] == 2


def test_a_page_that_the_others_link_to_comes_first() -> None:
    pages = (
        found(1, 1.0, key="/docs/a.md", text="Use [a server of your own](own.md#tell)."),
        found(
            2, 0.95, key="/docs/b/c.md", text="[Made like this](../own.md); [x](https://own.md)."
        ),
        found(3, 0.85, key="/docs/own.md", text="The server. See [itself](own.md)."),
        found(4, 0.3),
    )
    assert ranked(*pages)[0] == 3


@pytest.mark.parametrize("covered", [0, 1])
def test_the_passage_with_the_words_of_the_question_comes_first(covered: int) -> None:
    passages = [found(1, 1.0), found(2, 1.0)]
    coverage = [float(place == covered) for place in range(2)]
    best = rank_passages(passages, coverage=coverage, title_nearness=None)[0]
    assert best.number == covered + 1
    assert best.relevance is not None


def test_what_a_passage_gives_to_its_sentences_makes_good_another_language() -> None:
    passages = [found(1, 1.0), found(2, 1.0)]
    alike, foreign = (
        {
            each.number: each.answer_score
            for each in rank_passages(
                passages,
                coverage=[0.5, 0.5],
                title_nearness=None,
                nearness=[1.2, 0.8],
                is_foreign=is_foreign,
            )
        }
        for is_foreign in ([False, False], [False, True])
    )
    assert alike[1] > alike[2], "it is nearer as a whole"
    assert foreign[2] > foreign[1], "a model finds texts in the question's language nearer"
