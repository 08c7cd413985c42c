"""The demo's committed files are what its sources give, and hold the answers to its questions."""

import tomllib
from pathlib import Path

import pytest

from documents.demo_corpus import FIRM, QUESTIONS
from reading.parsers import parse
from reading.parsers.mail import unpack_mail
from scripts import make_demo_corpus


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("firm")
    make_demo_corpus.main(target)
    return target


def text(file: Path) -> str:
    return parse(file.read_bytes(), name=file.name).text


def test_the_committed_files_are_what_the_sources_give(made: Path) -> None:
    files = sorted(made.iterdir())
    assert len(files) == 10
    pictures = {"landlord-letter-scan.pdf", "receipt-tidewater.jpg"}
    for file in files:
        committed = FIRM / file.name
        if file.name not in pictures:
            assert text(committed) == text(file), file.name
        assert abs(committed.stat().st_size / file.stat().st_size - 1) < 0.05, file.name
    mails = [(folder / "battery-test.eml").read_bytes() for folder in (FIRM, made)]
    ours, theirs = (unpack_mail(mail, name="a.eml").parts for mail in mails)
    assert [part.data for part in ours] == [part.data for part in theirs]
    assert sum(file.stat().st_size for file in FIRM.iterdir()) < 1_500_000


def test_answers_lie_in_the_documents_that_are_named() -> None:
    questions = tomllib.loads(QUESTIONS.read_text())["questions"]
    assert len(questions) == 10
    written = {
        "landlord-letter-scan.pdf": make_demo_corpus.read("landlord-letter.txt"),
        "receipt-tidewater.jpg": make_demo_corpus.read("receipt.txt"),
    }
    for each in questions:
        found = written.get(each["document"]) or text(FIRM / each["document"])
        assert all(words in found for words in each["answer"]), each["question"]
