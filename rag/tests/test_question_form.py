"""What the wording of a question tells: sources, unknown names, and the kind of the answer."""

import pytest

from rag.answering.answer_types import AnswerKind, holds_kind, wanted_kind
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


@pytest.mark.parametrize(
    ("question", "language", "kind"),
    [
        ("What is the phone number of the workshop?", "en", "phone"),
        ("what number do i call at night", "en", "phone"),
        ("Wie lautet die Telefonnummer der Werkstatt?", "de", "phone"),
        ("¿Cuál es el número de teléfono del taller?", "es", "phone"),
        ("Which e-mail address do I write to?", "en", "email"),
        ("An welche E-Mail-Adresse schreibe ich?", "de", "email"),
        ("¿Cuál es la dirección de correo electrónico?", "es", "email"),
        ("how much does a cargo bike cost", "en", "money"),
        ("What is the price of the cheapest bike?", "en", "money"),
        ("Was kostet eine Stunde Arbeit?", "de", "money"),
        ("¿Cuánto cuesta una hora de taller?", "es", "money"),
        ("When does the office close?", "en", "date"),
        ("Ab wann gilt das?", "de", "date"),
        ("¿Qué día es la reunión?", "es", "date"),
        ("How many people work here?", "en", "number"),
        ("Wie viele Räder gibt es?", "de", "number"),
        ("¿Cuántos empleados hay?", "es", "number"),
        ("Why is the sky blue?", "en", None),
        ("Who pays for the phone?", "en", None),
        ("How do I replace the battery when it is empty?", "en", None),
        ("how much sick time can i borrow", "en", None),
    ],
)
def test_the_wording_says_what_kind_of_answer_is_asked_for(
    question: str, language: str, kind: AnswerKind | None
) -> None:
    assert wanted_kind(question, language=language) == kind


def test_without_a_language_the_words_of_all_count() -> None:
    assert wanted_kind("Telefonnummer Werkstatt") == "phone"
    assert wanted_kind("Telefonnummer Werkstatt", language="en") is None


@pytest.mark.parametrize(
    ("kind", "text", "holds"),
    [
        ("phone", "Call (877) 472-6716 and they book.", True),
        ("phone", "Ring us: +49 30 901820.", True),
        ("phone", "Tel. 0431 / 55 66 77", True),
        ("phone", "Open from 10:00 to 18:00, since 1 March 2026.", False),
        ("phone", "On 2026-05-12 it cost 1,200.50.", False),
        ("phone", "The order of 12.05.2026 has 4690 parts.", False),
        ("email", "Write to people@wrenferry.example.", True),
        ("email", "Write to the people in the office.", False),
        ("money", "A day costs EUR 45, a weekend EUR 80.", True),
        ("money", "It is 3.850 euros.", True),
        ("money", "The ticket is $12.50.", True),
        ("money", "Parking is free.", True),
        ("money", "It weighs 45 kg.", False),
        ("date", "The party is on Saturday.", True),
        ("date", "It opens at 9:00.", True),
        ("date", "It is red.", False),
        ("number", "Eleven people came.", True),
        ("number", "People came.", False),
    ],
)
def test_a_text_holds_an_answer_of_a_kind(kind: AnswerKind, text: str, holds: bool) -> None:
    assert holds_kind(kind, text) is holds


def test_the_header_of_a_table_says_that_a_number_is_an_amount() -> None:
    row = "| WR-1 | Wren | 3490 | 34 |"
    assert not holds_kind("money", row)
    assert holds_kind("money", row, header="| Article | Description | Price EUR | Weight kg |")
