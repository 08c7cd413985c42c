"""What rules read of a user's messages: facts, the end of facts, and dates."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.endings import Ending, ended_keys, named_ending, withdrawn_keys
from memory.extraction.messages import Extracted, UserMessage
from memory.extraction.rules import MAX_MESSAGE_CHARACTERS, extract_by_rules, split_sentences
from memory.ranking import Dates, date_agreement, mentioned_dates
from tests.cases import read_cases

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
CASES = read_cases(__file__, "statements")
REX = {"dog_name": "Rex", "pet_dog": "a dog", "name": "Rex", "opinion_of_rex": "loves Rex"}


def found(*texts: str) -> Extracted:
    return extract_by_rules([UserMessage(text, NOON) for text in texts])


def facts(*texts: str) -> dict[str, str]:
    return {key: value for key, value, _ in found(*texts).facts}


@pytest.mark.parametrize(("text", "expected"), CASES["stated"])
def test_what_is_stated_is_read(text: str, expected: Mapping[str, str]) -> None:
    assert facts(text) == expected


@pytest.mark.parametrize(
    "text",
    [*CASES["not_stated"], "I live in Berlin. " * (MAX_MESSAGE_CHARACTERS // 18 + 1)],
)
def test_what_is_not_stated_of_the_user_is_no_fact(text: str) -> None:
    assert found(text).facts == ()


def test_what_a_turn_states_of_its_user_is_kept_as_a_context() -> None:
    kept = found(
        "Last week I started to learn the cello with my sister Clara. Which bow is good?",
        "Wir waren gestern mit dem Zug in Porto. Das Wetter war schön.",
        "Write a poem about how I started to learn the cello",
        "Can you tell me where my keys are?",
        "I would like you to summarise this text",
        "The archive is open until seven in the evening.",
        "My neighbour says I started to learn the cello",
        "I am so tired",
        "I live in Rome",
    ).contexts
    assert [(question, at) for question, _, at in kept] == [
        ("Last week I started to learn the cello with my sister Clara", 0),
        ("Wir waren gestern mit dem Zug in Porto", 1),
    ]


def test_what_is_to_be_remembered_and_fits_no_rule_is_kept_as_it_was_said() -> None:
    kept = found("Please remember that I always fly from Munich on Fridays").contexts
    assert list(kept) == [("I always fly from Munich on Fridays", "", 0)]


def test_corrections_come_after_what_they_correct() -> None:
    said = found("I live in Munich.", "What's the weather?", "Actually, I moved to Berlin.")
    assert list(said.facts) == [
        ("location", "Munich", 0),
        ("location", "Berlin", 2),
    ]


def test_what_was_said_before_is_not_said_again() -> None:
    said = found("I live in Rome", "I live in Rome", "I live in Bonn", "I live in Rome").facts
    assert [value for _, value, _ in said] == ["Rome", "Bonn", "Rome"]


HOSTILE = [
    *("a", "i ", "I'm ", "my ", " and I", "and my, ", '"', "'", "' ", "“", "```", "[", ">", ": "),
    *("i really ", "please ", "hi, ", "my name is ", "i have a ", "my dog ", "my son, ", "A. "),
    *("i work as a b at ", "ich bin nach ", "1. ", "! ", "i prefer a over ", "'a", "\u0301"),
    *("my favourite ", "my wife A, ", "i'm a ", "\n", "x is my favourite ", "remember that "),
    *("i no longer ", "i left a for ", "not a, ", "wir mussten ", "and live ", "forget that "),
    *(
        "i said i ",
        "ich habe a zu ",
        "gestern ",
        "in a wohne ich ",
        "mine is ",
        "dass ich a ",
        "A ",
    ),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_are_read_in_bounded_time(piece: str) -> None:
    start = process_time()
    found((piece * 100_000)[:100_000])
    found((piece * MAX_MESSAGE_CHARACTERS)[:MAX_MESSAGE_CHARACTERS])
    found(((piece * 400)[:390] + ". ") * 10)
    # 0.2 s; a pattern that goes back and forth would take hours
    assert process_time() - start < 20


WORDS = st.sampled_from(
    [
        *("i", "I'm", "my", "name is", "Sam", "live in", "Berlin", "and", "not", "if", "call me"),
        *(
            "love",
            "the",
            "a",
            "dog",
            "named",
            "favourite",
            "food",
            "work as",
            "at",
            "remember that",
        ),
        *("ich", "heiße", "wohne in", "mein", "Hund", ",", ".", "?", "!", "“", "”", '"', "'", "("),
        *(")", ":", "[", "]", "\n", "-"),
    ]
)


@given(st.lists(WORDS, max_size=60).map(" ".join) | st.text(max_size=200))
def test_any_text_is_read_to_short_values_of_its_own_words(text: str) -> None:
    for _, value, _ in found(text).facts:
        assert 0 < len(value) <= 200
        assert value == " ".join(value.split())
        assert not set(value) & set("\n[]")


@given(st.text(max_size=300))
def test_sentences_hold_no_marks_for_quotations_but_their_own(text: str) -> None:
    for sentence in split_sentences(text):
        assert sentence.restored(sentence.text).isprintable() or not text.isprintable()
        marks = [letter for letter in sentence.text if "\ue000" <= letter <= "\uf8ff"]
        assert len(marks) <= len(sentence.quotations)


def phrasings() -> dict[str, dict[str, list[str]]]:
    """What phrasings.txt lists by section and by the statement of a fact."""
    found: dict[str, dict[str, list[str]]] = {}
    stated = ""
    for line in Path(__file__).with_name("phrasings.txt").read_text().splitlines():
        if line.startswith("== "):
            section = found.setdefault(line.removeprefix("== "), {})
        elif line.startswith("  "):
            section[stated].append(line.strip())
        elif not line.startswith("#"):
            stated = line
            section[stated] = []
    return found


OVER, NOT_OVER = phrasings().values()


def read(text: str) -> Extracted:
    return extract_by_rules([UserMessage(text, NOON)])


def known(text: str) -> dict[str, str]:
    facts = {key: value for key, value, _ in read(text).facts}
    assert facts
    return facts


def ended(said: str, facts: dict[str, str]) -> set[str]:
    return {key for ending, _, _ in read(said).endings for key in ended_keys(ending, facts)}


@pytest.mark.parametrize("stated", OVER)
def test_a_fact_ends_by_many_words(stated: str) -> None:
    facts = known(stated)
    unread = [said for said in OVER[stated] if ended(said, facts) != facts.keys()]
    assert unread == []


@pytest.mark.parametrize("stated", NOT_OVER)
def test_what_only_sounds_like_an_end_ends_nothing(stated: str) -> None:
    facts = known(stated)
    assert [said for said in NOT_OVER[stated] if ended(said, facts)] == []


@pytest.mark.parametrize(
    ("ending", "facts", "keys"),
    [
        (Ending(("location",), "Kiel"), {"location": "Bonn"}, []),
        (Ending(("location",), "kiel"), {"location": "Kiel, Germany"}, ["location"]),
        (Ending(("employer",), "Siemens"), {"employer": "Siemens AG"}, ["employer"]),
        (Ending(("*_name",), "Rex"), REX, ["dog_name", "pet_dog"]),
        (Ending(("*_name",), "Rex"), REX | {"pet_dog": "two dogs"}, ["dog_name"]),
        (Ending(("dog_name", "dog_*")), {"dog_rex": "Rex", "dog_bo": "Bo"}, []),
        (Ending(("dog_name", "dog_*")), {"dog_rex": "Rex", "dog_name": "Rex"}, 2),
        (Ending(("pet_dog",), "a dog"), REX, ["pet_dog", "dog_name"]),
        (Ending(("allergy_to_nut",), "allergic to nut"), {"allergy_to_nuts": "x"}, 1),
        (Ending(("allergy_to_nut",), "allergic to nut"), {"allergy_to_nutmeg": "x"}, []),
        (Ending(("opinion_of_tea",), "likes tea"), {"opinion_of_tea": "loves tea"}, 1),
        (Ending(("opinion_of_tea",), "likes tea"), {"opinion_of_tea": "hates tea"}, []),
        (named_ending("Dog Name", ["dog_name"]), REX, ["dog_name", "pet_dog"]),
        (named_ending("Sam", ["dog_name"]), {"name": "Sam", "cat_name": "Sam"}, 2),
    ],
)
def test_keys_and_values_must_agree(
    ending: Ending, facts: dict[str, str], keys: list[str] | int
) -> None:
    found = ended_keys(ending, facts)
    assert (found if isinstance(keys, list) else len(found)) == keys


def test_a_replacement_of_what_was_said_last_needs_one_name() -> None:
    facts = {"name": "Ann", "diet": "vegan", "location": "Kiel"}
    withdrawal, correction = Ending(), Ending(replacement="Anna")
    assert withdrawn_keys(withdrawal, ["diet", "name", "pet_dog"], facts) == ["diet", "name"]
    assert withdrawn_keys(correction, ["name"], facts) == ["name"]
    assert withdrawn_keys(correction, ["diet"], facts) == []
    assert withdrawn_keys(correction, ["name", "location"], facts) == []


def dates(
    *, years: Iterable[int] = (), months: Iterable[int] = (), days: Iterable[int] = ()
) -> Dates:
    return set(years), set(months), set(days)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did I say on 3 August, 2023?", dates(years={2023}, months={8}, days={3})),
        ("What did I say on August 3rd?", dates(months={8}, days={3})),
        ("the 3rd of august", dates(months={8}, days={3})),
        ("Was sagte ich am 12. März 2024?", dates(years={2024}, months={3}, days={12})),
        ("el 5 de enero de 2022", dates(years={2022}, months={1}, days={5})),
        ("qu’ai-je dit en août ?", dates(months={8})),
        ("on 2023-05-08 or 2023-06", dates(years={2023}, months={5, 6}, days={8})),
        ("am 8.5.2023", dates(years={2023}, months={5}, days={8})),
        ("Between August 11 and August 15", dates(months={8}, days={11, 15})),
        ("Where did I go in May?", dates(months={5})),
        ("May I ask what I may do, and who will march?", dates()),
        ("How many apples are 12345 or 3000?", dates()),
        ("", dates()),
    ],
)
def test_written_dates_are_read(question: str, expected: Dates) -> None:
    assert mentioned_dates(question) == expected


def test_a_day_is_one_of_its_month() -> None:
    third_of_august = mentioned_dates("on 3 August 2023")
    assert date_agreement(third_of_august, datetime(2023, 8, 3, tzinfo=UTC)) == 1
    assert date_agreement(third_of_august, datetime(2023, 8, 4, tzinfo=UTC)) == 3 / 5
    assert date_agreement(third_of_august, datetime(2023, 7, 3, tzinfo=UTC)) == 1 / 5
    assert date_agreement(third_of_august, datetime(2021, 7, 3, tzinfo=UTC)) == 0


def test_nothing_agrees_with_no_date() -> None:
    assert (
        date_agreement(mentioned_dates("Where do I live?"), datetime(2023, 8, 3, tzinfo=UTC)) == 0
    )


@given(st.text(max_size=200), st.datetimes(timezones=st.just(UTC)))
def test_any_text_is_read_and_agreement_is_a_share(question: str, moment: datetime) -> None:
    assert 0 <= date_agreement(mentioned_dates(question), moment) <= 1
