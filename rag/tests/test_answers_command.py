"""`manage.py answers` tells what is cited, what is refused, and whether citations resolve."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from documents.models import Collection
from inference.tests.stub_server import chat_stream
from rag.answering import answerability
from rag.tests.asking import chat_server, reader
from search.models import SearchLog

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
    assert (report["set"], report["questions"], report["errors"]) == ("tiny_set", 3, 0)
    for name in ("found_first", "first_cited", "cited"):
        assert report[name] == {"share": 1.0, "interval": [0.4385, 1.0], "of": 3}
    assert report["answer_words"]["share"] == 1.0
    assert report["answer_words"]["of"] == 2, "of the questions whose answers are known"
    assert report["quoted"] is None, "of no question is the gold sentence known"
    assert report["refused_answerable"]["share"] == 0.0
    assert report["foreign"]["strange_set"]["share"] == 1.0
    assert report["foreign_high"]["strange_set"]["share"] == 0.0
    assert report["high"] == {"share": 1.0, "interval": [0.4385, 1.0], "of": 3}
    assert (report["low"]["share"], report["none"]["share"]) == (0.0, 0.0)
    assert report["high_right"]["share"] == 1.0
    assert report["low_right"] is None, "no answer was of this degree"
    assert report["citations_resolved"] == report["citations"] >= 3
    assert not Collection.objects.exists()
    assert not SearchLog.objects.exists()


def test_a_refused_question_has_cited_nothing(strange: Path, capsys: Any) -> None:
    report = run(capsys, str(strange), "--failures")
    assert report["refused_answerable"]["share"] == 1.0
    assert (report["cited"]["share"], report["citations"]) == (0.0, 0)
    assert report["answer_words"] is None
    assert report["failures"][0]["problems"] == ["refused, though the documents say"]


def test_answers_that_are_not_sure_are_told_apart(
    dataset: Path, strange: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answerability, "HIGH_CONFIDENCE", 1.1)
    monkeypatch.setattr(answerability, "LOW_CONFIDENCE", 0.0)
    report = run(capsys, str(dataset), "--unanswerable", str(strange), "--failures")
    assert (report["high"]["share"], report["low"]["share"]) == (0.0, 1.0)
    assert report["first_cited"]["share"] == report["cited"]["share"] == 1.0
    assert report["low_right"] == {"share": 1.0, "interval": [0.4385, 1.0], "of": 3}
    assert report["high_right"] is None
    for name in ("foreign", "foreign_high"):
        assert report[name]["strange_set"]["share"] == 0.0, "neither refused nor called sure"
    assert report["failures"] == []
    monkeypatch.setattr(answerability, "HIGH_CONFIDENCE", 0.0)
    report = run(capsys, str(dataset), "--unanswerable", str(strange), "--failures")
    assert report["foreign_high"]["strange_set"]["share"] == 1.0
    problem = "answered for sure, though the documents do not say"
    assert [each["problems"] for each in report["failures"]] == [[problem]] * 2


def test_so_many_questions_are_asked_of_each_set(dataset: Path, strange: Path, capsys: Any) -> None:
    report = run(capsys, str(dataset), "--unanswerable", str(strange), "--questions", "1")
    assert (report["questions"], report["foreign"]["strange_set"]["of"]) == (1, 1)
    assert run(capsys, str(dataset), "--questions", "9")["questions"] == 3


def test_people_read_a_table(dataset: Path, capsys: Any) -> None:
    call_command("answers", str(dataset), "--mode", "lexical", "--keep")
    shown = capsys.readouterr().out
    assert "first citation right" in shown
    assert "sure ones right" in shown
    assert Collection.objects.count() == 1


ON_THE_SITE = """
[[questions]]
id = "leave"
question = "When does the firm leave Mill Street?"
language = "en"
answer = ["14 March"]
gold = [{ document = "move.md", sentence = "The firm leaves Mill Street on 14 March." }]

[[questions]]
id = "desk"
question = "When does the firm leave Mill Street? When do the movers come?"
language = "en"
needs_all = true
gold = [
    { document = "The move", sentence = "Movers come at seven in the morning." },
    { document = "travel.md", sentence = "Receipts are paid back within ten days." },
]

[[questions]]
id = "zyme"
question = "Which enzyme breaks down lactose in cats?"
language = "en"

[[questions]]
id = "umzug"
question = "When are receipts paid back?"
language = "de"
gold = [{ document = "travel.md", sentence = "Receipts are paid back within nine days." }]
"""


def test_questions_about_documents_of_the_site_are_measured_by_language(
    tmp_path: Path, capsys: Any
) -> None:
    context, _ = reader()
    (tmp_path / "questions.toml").write_text(ON_THE_SITE)
    workspace = ["--workspace", context.workspace.slug]
    call_command("answers", str(tmp_path), *workspace, "--failures", "--json")
    printed = capsys.readouterr()
    assert "umzug: “Receipts are paid back within nine days.” is not in travel.md" in printed.err
    report = json.loads(printed.out)
    assert (report["questions"], report["unanswerable"]) == (4, 1)
    english, german = (report["languages"][name] for name in ("en", "de"))
    assert (english["first_cited"]["share"], english["quoted"]["share"]) == (1.0, 0.5)
    assert english["cited"]["share"] == 0.5, "one question needs both of its passages"
    assert english["refused_unanswerable"]["share"] == 1.0
    assert english["high_unanswerable"]["share"] == 0.0
    assert german["first_cited"]["share"] == 0.0
    failures = {each["id"]: each for each in report["failures"]}
    assert set(failures) == {"desk", "umzug"}
    assert failures["desk"]["citations"][0]["title"] == "The move"
    assert failures["umzug"]["problems"][0] == "no citation is in the gold passage"
    call_command("answers", str(tmp_path), *workspace, "--collection", "office", "--failures")
    shown = capsys.readouterr().out
    assert all(words in shown for words in ("all (4)", "en (3)", "de (1)", "quoted from Travel:"))


def test_a_set_whose_documents_are_not_there_is_not_measured(tmp_path: Path) -> None:
    context, _ = reader()
    (tmp_path / "questions.toml").write_text(
        ON_THE_SITE.replace("move", "other").replace("travel", "another")
    )
    with pytest.raises(CommandError, match="None of the set's gold passages") as failure:
        call_command("answers", str(tmp_path), "--workspace", context.workspace.slug)
    assert failure.value.returncode == 2


def test_an_answer_of_a_model_cites_whole_passages(
    tmp_path: Path, settings: Any, capsys: Any
) -> None:
    context, _ = reader()
    (tmp_path / "questions.toml").write_text(
        ON_THE_SITE.split('[[questions]]\nid = "desk', maxsplit=1)[0]
    )
    with chat_server(settings) as server:
        server.first(chat_stream("It leaves on 14 March [1]."))
        report = run(capsys, str(tmp_path), "--workspace", context.workspace.slug)
    assert report["first_cited"]["share"] == report["answer_words"]["share"] == 1.0
    assert report["quoted"] is None, "only quotations are compared with gold sentences"


@pytest.mark.parametrize(
    "options",
    [["--questions", "0"], ["--unanswerable", "missing_folder"], ["--collection", "office"]],
)
def test_what_cannot_be_is_said(dataset: Path, options: list[str]) -> None:
    with pytest.raises(CommandError) as failure:
        call_command("answers", str(dataset), *options)
    assert failure.value.returncode == 2
