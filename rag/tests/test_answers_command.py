"""`manage.py answers` tells what is cited, what is refused, and whether citations resolve."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from documents.models import Collection

pytestmark = pytest.mark.django_db

CORPUS = [
    {
        "_id": "tower",
        "title": "Tower",
        "text": "The iron tower was built by Gustave Eiffel. It opened in 1889 at the world fair.",
    },
    {
        "_id": "bread",
        "title": "Bread",
        "text": "Bread is baked from flour and water. Sourdough needs a starter and much time.",
    },
    {"_id": "heart", "title": "", "text": "Blood is pumped by the heart through the arteries."},
]
QUERIES = [
    {"_id": "1", "text": "who built the iron tower", "answers": ["Gustave Eiffel"]},
    {"_id": "2", "text": "what is bread baked from", "answer": "flour and water"},
    {"_id": "3", "text": "what pumps blood through the arteries"},
]
STRANGE = [
    {"_id": "1", "text": "which kings ruled medieval Portugal"},
    {"_id": "2", "text": "how do quantum computers factor integers"},
]


def write(directory: Path, queries: Sequence[dict[str, Any]], judged: Sequence[str]) -> Path:
    directory.mkdir()
    for name, rows in (("corpus", CORPUS), ("queries", queries)):
        (directory / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    (directory / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(judged) + "\n")
    return directory


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write(tmp_path / "tiny_set", QUERIES, ["1\ttower\t1", "2\tbread\t1", "3\theart\t1"])


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    return write(tmp_path / "strange_set", STRANGE, ["1\ttower\t1", "2\ttower\t1"])


def run(capsys: Any, *options: str) -> dict[str, Any]:
    call_command("answers", *options, "--json")
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def test_what_is_cited_and_refused_is_told(dataset: Path, strange: Path, capsys: Any) -> None:
    report = run(capsys, str(dataset), "--unanswerable", str(strange))
    assert (report["dataset"], report["questions"]) == ("tiny_set", 3)
    assert report["cited_1"] == report["cited"] == report["recall_1"] == 1.0
    assert report["quoted"] == 1.0, "of the two questions whose answers are known"
    assert report["refused"] == 0.0
    assert report["refused_foreign"] == {"strange_set": 1.0}
    assert report["citations"] >= 3
    assert report["resolved"] == 1.0
    assert not Collection.objects.exists()


def test_a_refused_question_has_cited_nothing(strange: Path, capsys: Any) -> None:
    report = run(capsys, str(strange))
    assert (report["refused"], report["cited"], report["citations"]) == (1.0, 0.0, 0)
    assert report["quoted"] is None


def test_so_many_questions_are_asked_of_each_set(dataset: Path, strange: Path, capsys: Any) -> None:
    report = run(capsys, str(dataset), "--unanswerable", str(strange), "--questions", "1")
    assert report["questions"] == 1
    assert run(capsys, str(dataset), "--questions", "9")["questions"] == 3


def test_people_read_a_table(dataset: Path, capsys: Any) -> None:
    call_command("answers", str(dataset), "--mode", "lexical", "--keep")
    shown = capsys.readouterr().out
    assert "first citation is relevant" in shown
    assert Collection.objects.count() == 1


@pytest.mark.parametrize("options", [["--questions", "0"], ["--unanswerable", "missing_folder"]])
def test_what_cannot_be_is_said(dataset: Path, options: list[str]) -> None:
    with pytest.raises(CommandError) as failure:
        call_command("answers", str(dataset), *options)
    assert failure.value.returncode == 2
