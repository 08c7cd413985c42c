"""What the wording of a question tells: number of sources, names that nothing has."""

import pytest

from rag.answering.question_form import source_count, unmentioned_names
from rag.tests.answering import passage


@pytest.mark.parametrize(
    ("language", "question", "sources"),
    [
        ("en", "Who has the key?", 4),
        ("en", "How do I get a new key?", 8),
        ("en", "What is the difference between a key and a card?", 16),
        ("en", "List all the keys", 16),
        ("en", "Is the new key heavier than the old one?", 16),
        ("en", "How many keys are there, and why were they all changed in March?", 16),
        ("de", "Wer hat den Schlüssel?", 4),
        ("de", "Vergleiche Schlüssel und Karte", 16),
        ("es", "¿Cuánto cuesta una llave?", 4),
        ("es", "¿Qué diferencia hay entre la llave y la tarjeta?", 16),
        ("en", "What happens to a key when it is lost?", 8),
        ("en", "Do I need a new key every year?", 8),
        ("en", "Is the key as old for guests as the card?", 16),
        ("xx", "Who has the key?", 4),
    ],
)
def test_the_number_of_sources_follows_the_question(
    language: str, question: str, sources: int
) -> None:
    assert source_count(question, language=language, usual=8) == sources


def test_few_sources_stay_few() -> None:
    assert source_count("Who?", language="en", usual=2) == 2
    assert source_count("Who?", language="en", usual=4) == 3


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Does the Kestrel carry more than the Heron?", ("Kestrel",)),
        ("Who wrote WR-9 in 2031?", ("WR-9", "2031")),
        ("How many bikes, 4430 or 4,431?", ("4,431",)),
        ('Where does it say "no refunds"?', ("no refunds",)),
        ("What does Jonas's mail say about herons?", ()),
        ("Kestrel?", ()),
        ("where is the kestrel", ()),
        ("DOES THE KESTREL FLY", ()),
    ],
)
def test_names_and_numbers_that_nothing_has_are_missing(
    question: str, missing: tuple[str, ...]
) -> None:
    found = [passage("The Hérons of Jonas cost EUR 4,430.", title="Bikes")]
    assert unmentioned_names(question, found, language="en") == missing
    assert unmentioned_names(question, [], language="en") == ()


def test_words_of_another_language_may_be_there_in_translation() -> None:
    english = [passage("The new rent of the hall is EUR 4,430.")]
    assert unmentioned_names("Was kostet die Halle im Hafen?", english, language="de") == ()
    assert unmentioned_names("¿Cuánto cuesta el Puerto?", english, language="es") == ()
    assert unmentioned_names("Was steht in TC-2025-119?", english, language="de") == (
        "TC-2025-119",
    )
