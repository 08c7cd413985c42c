"""Sets of questions: what is read of them, and the demo's gold sentences stand in its files."""

from functools import cache
from pathlib import Path

import pytest
from django.conf import settings

from rag.evaluation.questions import (
    Gold,
    QuestionSet,
    load_question_set,
    passage_span,
    sentence_span,
)
from reading.parsers import parse
from reading.parsers.mail import unpack_mail
from scripts import make_demo_corpus
from search.evaluation.datasets import DatasetError

SETS: Path = settings.BASE_DIR / "demo" / "answers"
#: Read by OCR, which takes seconds: their text is in demo/sources/.
SCANNED = {
    "landlord-letter-scan.pdf": "landlord-letter.txt",
    "receipt-tidewater.jpg": "receipt.txt",
}


@cache
def text_of(document: str) -> str:
    """The text of a file of the repository as it is parsed, or of a mail's attachment."""
    path, _, attached = document.partition("!/")
    file: Path = settings.BASE_DIR / path
    if file.name in SCANNED:
        return make_demo_corpus.read(SCANNED[file.name])
    if attached:
        parts = unpack_mail(file.read_bytes(), name=file.name).parts
        data = next(part.data for part in parts if part.path == attached)
        return parse(data or b"", name=attached).text
    return parse(file.read_bytes(), name=file.name).text


@pytest.mark.parametrize("half", sorted(path.name for path in SETS.iterdir()))
def test_gold_sentences_of_the_demo_stand_in_their_documents(half: str) -> None:
    """An edit of a page that takes a gold sentence away: give the question its new words."""
    found: QuestionSet = load_question_set(SETS / half)
    unanswerable = sum(not question.is_answerable for question in found.questions)
    languages = [question.language for question in found.questions]
    by_language = [languages.count(name) for name in ("en", "de", "es")]
    paraphrased = half.startswith("paraphrased")
    assert (unanswerable, by_language) == ((15, [33, 6, 6]) if paraphrased else (12, [40, 10, 10]))
    for question in found.questions:
        assert bool(question.answers) == question.is_answerable, question.id
        for gold in question.gold:
            text = text_of(gold.document)
            sentence, passage = sentence_span(gold, text), passage_span(gold, text)
            assert sentence, f"{question.id}: “{gold.sentence}” is not in {gold.document}"
            assert passage
            assert passage[0] <= sentence[0] < sentence[1] <= passage[1]
            assert passage[1] - passage[0] <= 1_500, question.id


DAYS = "## Days\n\nYou have\n27 days.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
TEXT = f"# Leave\n\nAsk early.\n\n{DAYS}"


@pytest.mark.parametrize(
    ("sentence", "passage", "expected"),
    [
        (
            "You have 27 days.",
            "",
            "## Days\n\nYou have\n27 days.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        ),
        ("1 2", "a b … 1 2", "a | b |\n|---|---|\n| 1 | 2"),
        ("Ask early.", "Ask early.", "Ask early."),
        ("You have 28 days.", "", None),
        ("Ask early.", "Ask … late", None),
    ],
)
def test_a_passage_is_the_section_of_its_sentence_unless_it_is_given(
    sentence: str, passage: str, expected: str | None
) -> None:
    span = passage_span(Gold("leave.md", sentence, passage), TEXT)
    assert (TEXT[slice(*span)] if span else None) == expected


def test_of_a_long_section_the_passage_is_the_paragraph_or_the_row() -> None:
    long = "x " * 800
    text = f"# A\n\n{long}\n\nHere it is.\n\n| {long} |\n| row two |\n"
    of = {words: passage_span(Gold("a", words), text) for words in ("Here it is.", "row two")}
    assert [text[slice(*span)].strip() for span in of.values() if span] == [
        "Here it is.",
        "| row two |",
    ]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('{"question": ""}', "line 1: not an object with a question"),
        ('{"question": "a", "anwser": "b"}', "anwser is not known"),
        ('{"question": "a", "gold": [{"document": "b"}]}', "each gold needs a document"),
        ('{"question": "a"}\n{"question": "a"}', "the same id"),
        ("{", "cannot be read"),
        ("", "holds no question"),
    ],
)
def test_what_is_wrong_with_a_set_is_named(tmp_path: Path, line: str, named: str) -> None:
    (tmp_path / "questions.jsonl").write_text(line)
    with pytest.raises(DatasetError, match=named):
        load_question_set(tmp_path)
