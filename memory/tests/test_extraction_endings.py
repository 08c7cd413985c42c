"""Which facts end by what a user says. The conversations are in test_corrections.py."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory.extraction.endings import Ending, ended_keys, named_ending, withdrawn_keys
from memory.extraction.messages import Extracted, UserMessage
from memory.extraction.rules import extract_by_rules

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


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


REX = {"dog_name": "Rex", "pet_dog": "a dog", "name": "Rex", "opinion_of_rex": "loves Rex"}


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
