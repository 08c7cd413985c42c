"""An answer without a model quotes what fits best, to the letter, once, and says that it quotes."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answering.extractive import MAX_QUOTED_CHARACTERS, ExtractiveAnswer, extract_answer
from rag.events import Citation, Passage
from rag.tests.answering import passage
from reading.segments import split_segments

TOWER = (
    "The Eiffel Tower stands in Paris. It was built by the company of Gustave Eiffel"
    " between 1887 and 1889. Many visitors come every year, most of them in summer."
)


def quotes(extracted: ExtractiveAnswer) -> list[str]:
    return [each.quote for each in extracted.cited]


def resolved(extracted: ExtractiveAnswer, passages: Sequence[Passage]) -> bool:
    text_of = {each.number: each for each in passages}
    return all(
        each.quote
        == text_of[each.passage.number].text[
            each.start - each.passage.start : each.end - each.passage.start
        ]
        and extracted.text.startswith(f"[{each.passage.number}]", each.at)
        for each in extracted.cited
    )


def test_the_sentence_that_answers_comes_first_with_its_offsets() -> None:
    passages = [passage(TOWER, start=1000)]
    extracted = extract_answer("Which company built the Eiffel Tower?", passages)
    first = extracted.cited[0]
    assert "company of Gustave Eiffel" in first.quote
    assert first.start >= 1000
    assert first.end <= 1000 + len(TOWER)
    assert resolved(extracted, passages)
    assert extracted.text.startswith("Quoted from the sources:\n\n“")


def test_it_says_so_in_the_language_asked_for() -> None:
    extracted = extract_answer("Wer baute den Turm?", [passage(TOWER)], language="de-AT")
    assert extracted.text.startswith("Aus den Quellen zitiert:")


def test_meaning_decides_where_a_model_tells_it() -> None:
    asked: list[Sequence[str]] = []

    def similar(texts: Sequence[str]) -> list[float]:
        asked.append(texts)
        return [0.9 if "summer" in text else 0.1 for text in texts]

    extracted = extract_answer("When is it crowded?", [passage(TOWER)], similar=similar)
    assert "summer" in quotes(extracted)[0]
    assert len(asked) == 1


def test_words_count_little_where_question_and_passage_are_in_different_languages() -> None:
    same_letters = passage("La bici se dio a la marina en abril.", 1, language="es")
    says_it = passage("A weekend costs EUR 80.", 2, language="en")
    question = "Was kostet die Ausleihe an einem Wochenende im April?"

    answer = extract_answer(
        question,
        [same_letters, says_it],
        similar=lambda texts: [0.9 if "80" in t else 0.8 for t in texts],
    )
    assert answer.cited[0].passage is says_it


def test_sentences_in_another_language_are_compared_whatever_their_words() -> None:
    says_it = "You pay EUR 80 for it."
    text = " ".join([*(f"Kayak {n} waits for die Kosten am Feiertag." for n in range(30)), says_it])
    compared: list[str] = []

    def similar(texts: Sequence[str]) -> list[float]:
        compared[:] = texts
        return [float("80" in text) for text in texts]

    question = "Was sind die Kosten am Feiertag?"
    answer = extract_answer(question, [passage(text)], similar=similar, query_language="de")
    assert answer.cited[0].quote.endswith(says_it)
    extract_answer(question, [passage(text)], similar=similar, query_language="en")
    assert len(compared) < 20
    assert not any(says_it in each for each in compared)


def test_a_sentence_is_compared_with_the_heading_above_it() -> None:
    minutes = "## Rent\n\nIt rises in August.\n\n## Summer party\n\nAt the old lifeboat station."
    compared: list[str] = []

    def similar(texts: Sequence[str]) -> list[float]:
        compared.extend(texts)
        return [float("party" in text) for text in texts]

    answer = extract_answer("Where is the summer party?", [passage(minutes)], similar=similar)
    assert answer.cited[0].quote == "At the old lifeboat station."
    assert "A title › Summer party\nAt the old lifeboat station." in compared


def test_words_decide_where_the_model_says_nothing() -> None:
    by_words = extract_answer("Who built the tower?", [passage(TOWER)])
    assert (
        extract_answer("Who built the tower?", [passage(TOWER)], similar=lambda _: None) == by_words
    )
    assert by_words.cited


def test_what_two_passages_say_alike_is_quoted_once() -> None:
    overlapping = [
        passage(TOWER, 1, document_id=7),
        passage(TOWER[34:], 2, document_id=7, start=34),
        passage(TOWER, 3),
    ]
    extracted = extract_answer("Who built the tower, and when do visitors come?", overlapping)
    assert len(quotes(extracted)) == len(set(quotes(extracted)))
    assert {each.passage.number for each in extracted.cited} == {1}


def test_sentences_that_follow_one_another_are_one_quotation() -> None:
    extracted = extract_answer("Eiffel Tower Paris built company Gustave 1889", [passage(TOWER)])
    assert TOWER.startswith(quotes(extracted)[0])
    assert len(extracted.cited) < 3


def test_a_row_is_quoted_in_words_with_the_head_of_its_table() -> None:
    table = "| city | people |\n|---|---|\n| Rome | 2.8 |\n| Oslo | 0.7 |"
    passages = [passage(f"# Cities\n\n{table}\n")]
    extracted = extract_answer("How many people live in Oslo?", passages)
    assert quotes(extracted)[0] == "| Oslo | 0.7 |"
    assert "city Oslo: people 0.7 [1]" in extracted.text
    assert resolved(extracted, passages)


def test_code_is_shown_as_code() -> None:
    code = "```python\ndef area(r):\n    return 3.14 * r ** 2\n```"
    passages = [passage(f"The module has one function.\n\n{code}")]
    extracted = extract_answer("def area(r) return", passages)
    assert "```\ndef area(r):\n    return 3.14 * r ** 2\n```" in extracted.text
    assert resolved(extracted, passages)


def test_sentences_without_spaces_are_found() -> None:
    text = "東京は日本の首都です。富士山は日本で一番高い山です。大阪は大きい都市です。"
    extracted = extract_answer("日本で一番高い山は", [passage(text, language="ja")])
    assert "富士山は日本で一番高い山です。" in quotes(extracted)[0]


def test_an_answer_is_short() -> None:
    long = [passage(" ".join(f"Iron tower number {n} is tall." for n in range(90)), 1)]
    extracted = extract_answer("How tall is the iron tower?", long)
    assert sum(map(len, quotes(extracted))) <= MAX_QUOTED_CHARACTERS
    assert 1 <= len(extracted.cited) <= 4


@pytest.mark.parametrize("passages", [[], [passage("")], [passage(" \n ")]])
def test_nothing_to_quote_is_no_answer(passages: list[Passage]) -> None:
    assert extract_answer("Who?", passages) == ExtractiveAnswer()


def test_headings_are_quoted_only_where_there_is_nothing_else() -> None:
    alone = extract_answer("tower", [passage("# The iron tower")])
    assert quotes(alone) == ["# The iron tower"]
    beside = extract_answer(
        "iron tower", [passage("# The iron tower\n\nIt stands in Paris since 1889.")]
    )
    assert quotes(beside) == ["It stands in Paris since 1889."]


CONTENTS = "- [Build the iron tower](tower.md), in Paris\n- [Its lifts](lifts.md)\n"


def test_what_only_points_elsewhere_is_quoted_only_where_there_is_nothing_else() -> None:
    assert quotes(extract_answer("the iron tower", [passage(CONTENTS)]))
    said = "The tower was built of iron by 300 workers."
    beside = extract_answer("Build the iron tower", [passage(CONTENTS), passage(said, number=2)])
    assert quotes(beside) == [said]
    linked = "- [Eiffel](e.md) built the tower with 300 workers.\n"
    assert quotes(extract_answer("Who built the tower?", [passage(linked)])) == [linked[2:].strip()]
    lead = "What every iron tower does:\n\n- It rusts, so it is painted every seven years.\n"
    assert quotes(extract_answer("What does every iron tower do?", [passage(lead)])) == [
        "It rusts, so it is painted every seven years."
    ]


STEPS = """\
## Set it up

1. Make a key.
2. Start the server:

   ```sh
   serve --key K
   ```

3. Open it.
"""
SCRIPT = """\
To make the tower rust-proof, run this:

```sh
paint tower

paint lift
```

It takes a year.
"""


def test_steps_and_introduced_code_are_quoted_whole_and_in_order() -> None:
    passages = [passage(STEPS), passage(SCRIPT, number=2)]
    steps = extract_answer("How do I set up the server with a key?", passages)
    assert quotes(steps)[0] == STEPS[STEPS.index("1.") :].strip()
    code = extract_answer("How is the tower made rust-proof?", passages[1:])
    assert quotes(code)[0] == SCRIPT[: SCRIPT.rindex("```") + 3]
    assert resolved(steps, passages)
    assert resolved(code, passages[1:])


def test_a_question_in_a_text_is_answered_by_what_follows() -> None:
    asked = "Who built the tower? Eiffel's company did, within two years."
    assert quotes(extract_answer("Who built the tower?", [passage(asked)])) == [asked]


def test_words_of_links_speak_of_the_page_they_lead_to() -> None:
    pointer = passage("See [how the iron tower was painted](paint.md) before you begin.")
    said = passage("The tower was painted by hand with brushes.", number=2)
    assert (
        quotes(extract_answer("How was the iron tower painted?", [pointer, said]))[0] == said.text
    )


def test_relevance_goes_before_rank() -> None:
    first, second = passage(TOWER, 1), passage(TOWER.replace("Gustave", "Alexandre"), 2)
    question = "Which company built the Eiffel Tower?"
    preferred = [replace(first, relevance=0.1), replace(second, relevance=1.0)]
    assert extract_answer(question, [first, second]).cited[0].passage.number == 1
    assert extract_answer(question, preferred).cited[0].passage.number == 2


FIVE = "Up to five days of leave may be carried over into the next year."
FOUR = "Staff may carry 4 days of leave over into the next year."


def test_what_sources_contradict_each_other_in_comes_first_with_both() -> None:
    passages = [passage(FIVE, title="Handbook"), passage(FOUR, number=2, title="Notes")]
    extracted = extract_answer("How many days of leave may be carried over?", passages)
    assert extracted.text.startswith("The sources contradict each other:")
    assert set(quotes(extracted)[:2]) == {FIVE, FOUR}


@pytest.mark.parametrize("others", [0, 1])
def test_an_unsure_answer_begins_otherwise_and_its_citations_move_along(others: int) -> None:
    passages = [passage(FIVE, title="Handbook"), passage(FOUR, number=2, title="Notes")]
    extracted = extract_answer(
        "How many days of leave may be carried over?", passages[: 1 + others], language="en"
    )
    pieces = extracted.unsure_pieces("en")
    text = "".join(piece for piece in pieces if isinstance(piece, str))
    assert text.startswith("I am not sure that this answers it; these places come closest:\n\n")
    assert "Quoted from the sources:" not in text
    assert ("The sources contradict each other:" in text) == bool(others)
    cited = [piece for piece in pieces if isinstance(piece, Citation)]
    assert len(cited) == len(extracted.cited) == 1 + others
    for each in cited:
        assert text[each.at :].startswith(f"[{each.passage.number}]")
    assert ExtractiveAnswer().unsure_pieces("en") == ()


@pytest.mark.parametrize(
    "other",
    [
        "Up to 5 days of leave may be carried over into the next year, says Ines.",
        "Up to four loads of coal may be carried over into the next year.",
        "Parents of the town of Ghent may carry 9 days over into the next year.",
    ],
)
def test_equal_numbers_and_other_things_are_no_contradiction(other: str) -> None:
    passages = [passage(FIVE, title="Handbook"), passage(other, number=2, title="Notes")]
    extracted = extract_answer("How many days of leave may be carried over?", passages)
    assert extracted.text.startswith("Quoted from the sources:")


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("He met Dr. Smith. They talked.", ["He met Dr. Smith.", "They talked."]),
        (
            "The U.S. Army came. It left soon after.",
            ["The U.S. Army came.", "It left soon after."],
        ),
        ("Es kostet z. B. fünf Euro. Das ist viel Geld.",
         ["Es kostet z. B. fünf Euro.", "Das ist viel Geld."]),
        ("- first thing here\n- second thing here", ["first thing here", "second thing here"]),
        ("A line that\ngoes on here.", ["A line that\ngoes on here."]),
    ],
)  # fmt: skip
def test_sentences_end_where_readers_see_them_end(text: str, sentences: list[str]) -> None:
    assert [text[part.start : part.end] for part in split_segments(text)] == sentences


TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(
        st.sampled_from(
            [
                "| a | b |\n", "|---|---|\n", "```\n", "# H\n", "- item\n", "Word. ", "\n", "Dr. ",
                "x " * 300,
            ]
        ),
        max_size=30,
    ).map("".join),
)  # fmt: skip


@given(text=TEXTS)
def test_parts_are_in_order_apart_and_without_white_space_around(text: str) -> None:
    found = split_segments(text)
    edges = [edge for part in found for edge in (part.start, part.end)]
    assert edges == sorted(edges)
    for part in found:
        said = text[part.start : part.end]
        assert said.strip() == (said.strip() if part.kind == "code" else said) != ""


@given(texts=st.lists(TEXTS, max_size=4), question=st.text(max_size=60))
def test_whatever_is_quoted_stands_there(texts: list[str], question: str) -> None:
    passages = [passage(text, number, start=17) for number, text in enumerate(texts, 1)]
    extracted = extract_answer(question, passages)
    assert resolved(extracted, passages)
    assert bool(extracted.cited) == bool(extracted.pieces)
