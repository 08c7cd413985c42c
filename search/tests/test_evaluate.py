"""Evaluation measures what is there, cleans up after itself and says what is wrong with a set."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from documents.models import Chunk, Collection
from search.evaluation.measures import measure

pytestmark = pytest.mark.django_db

CORPUS = [
    {"_id": "a", "title": "Aspirin", "text": "It eases pain and thins the blood.", "who": "x"},
    {"_id": "b", "title": "Bread", "text": "It is baked from flour and water.", "who": "x"},
    {"_id": "c", "title": "Blood pressure", "text": "", "who": "y"},
    {"_id": "d", "title": "", "text": "Blood is pumped by the heart.", "who": "y"},
]
QUERIES = [
    {"_id": "1", "text": "what eases pain", "who": "x"},
    {"_id": "2", "text": "blood", "who": "y"},
    {"_id": "unjudged", "text": "nothing"},
]
QRELS = "query-id\tcorpus-id\tscore\n1\ta\t1\n2\tc\t1\n2\td\t2\n"


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    directory = tmp_path / "tiny_set"
    directory.mkdir()
    for name, rows in (("corpus", CORPUS), ("queries", QUERIES)):
        (directory / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    (directory / "qrels.tsv").write_text(QRELS)
    return directory


def run(dataset: Path, capsys: Any, *options: str) -> dict[str, Any]:
    call_command("evaluate", str(dataset), "--json", *options)
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def test_every_mode_is_measured_by_name(dataset: Path, capsys: Any) -> None:
    report = run(dataset, capsys)
    assert (report["dataset"], report["documents"], report["queries"]) == ("tiny_set", 4, 2)
    assert set(report["modes"]) == {"hybrid", "lexical", "vector"}
    names = {"ndcg@10", "recall@5", "recall@10", "recall@100", "mrr", "p50_ms", "p95_ms"}
    assert all(set(values) == names for values in report["modes"].values())
    assert report["modes"]["lexical"]["recall@10"] == 1.0
    assert 0 < report["modes"]["hybrid"]["ndcg@10"] <= 1


def test_a_scope_field_keeps_questions_among_their_own(dataset: Path, capsys: Any) -> None:
    report = run(dataset, capsys, "--scope-field", "who", "--mode", "vector")
    # two documents each, all of them relevant to question 2, one to question 1
    assert report["modes"]["vector"]["recall@5"] == 1.0
    assert list(report["modes"]) == ["vector"]


def test_nothing_stays_unless_it_is_kept(dataset: Path, capsys: Any) -> None:
    run(dataset, capsys, "--mode", "lexical")
    assert not Collection.objects.exists()
    assert not Chunk.objects.exists()
    run(dataset, capsys, "--mode", "lexical", "--keep")
    (kept,) = Collection.objects.all()
    assert kept.workspace.memberships.count() == 0
    ids = set(Chunk.objects.values_list("id", flat=True))
    run(dataset, capsys, "--mode", "lexical", "--keep")
    assert set(Chunk.objects.values_list("id", flat=True)) == ids


def test_a_folder_that_is_no_set_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"queries\.jsonl") as failure:
        call_command("evaluate", str(tmp_path))
    assert failure.value.returncode == 2


@pytest.mark.parametrize(
    ("name", "line"), [("corpus.jsonl", '{"text": "no id"}\n'), ("qrels.tsv", "1\ta\tmuch\n")]
)
def test_a_bad_line_is_named_by_file_and_number(dataset: Path, name: str, line: str) -> None:
    path = dataset / name
    path.write_text(path.read_text() + line)
    number = len(path.read_text().splitlines())
    with pytest.raises(CommandError, match=rf"{name}, line {number}"):
        call_command("evaluate", str(dataset))


def test_measures_are_trec_evals() -> None:
    judgements = {"1": {"a": 1, "b": 1}, "2": {"c": 1}}
    values = measure({"1": ["x", "a", "b"], "2": []}, judgements, k=10)
    assert values["mrr"] == 0.25
    assert values["recall@5"] == 0.5
    assert values["ndcg@10"] == pytest.approx((0.6309 + 0.5) / 1.6309 / 2, abs=1e-3)
