"""Evaluation measures what is there, cleans up after itself and says what is wrong with a set."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory, DocumentFactory
from memory.models import Context
from search.evaluation.evaluate import measure
from search.judgements import Grade, judge

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


def test_a_reranker_that_is_not_there_is_missed_before_the_corpus_is_ingested(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ingested(*given: Any, **options: Any) -> Any:
        raise AssertionError("the corpus is ingested first")

    monkeypatch.setattr("search.management.commands.evaluate.ingested_collection", ingested)
    with pytest.raises(CommandError, match="rerankers set MODEL"):
        call_command("evaluate", str(dataset), "--rerank")


def test_modes_are_measured_with_reranking_beside_those_without(
    dataset: Path, capsys: Any, settings: Any
) -> None:
    backend = {"BACKEND": "inference.backends.rerank_basic.ScoreReranker"}
    settings.INFERENCE = {**settings.INFERENCE, "reranker": {"default": backend}}
    report = run(dataset, capsys, "--mode", "hybrid,lexical", "--rerank")
    assert list(report["modes"]) == ["hybrid", "hybrid+rerank", "lexical", "lexical+rerank"]
    # It scores hits as they are scored already.
    assert report["modes"]["hybrid+rerank"]["ndcg@10"] == report["modes"]["hybrid"]["ndcg@10"]
    assert list(run(dataset, capsys, "--mode", "hybrid")["modes"]) == ["hybrid"]


def test_no_column_of_the_table_is_cut_off_where_no_terminal_is(
    dataset: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    call_command("evaluate", str(dataset), "--mode", "lexical")
    told = capsys.readouterr().out
    assert "recall@100" in told
    assert "lexical" in told
    assert "p95_ms" in told


def test_every_mode_is_measured_by_name(dataset: Path, capsys: Any) -> None:
    report = run(dataset, capsys)
    assert (report["dataset"], report["documents"], report["queries"]) == ("tiny_set", 4, 2)
    assert set(report["modes"]) == {"hybrid", "lexical", "vector", "graph"}
    names = {"ndcg@10", "recall@5", "recall@10", "recall@100", "hit@1", "hit@3", "mrr", "all@10"}
    names |= {"p50_ms", "p95_ms"}
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


def test_all_at_ten_wants_every_relevant_document() -> None:
    judgements = {"1": {"a": 1, "b": 2, "x": 0}, "2": {"c": 1, "d": 1}, "3": {"e": 0}}
    far = [f"z{number}" for number in range(9)]
    rankings = {"1": ["a", "y", "b"], "2": [*far, "c", "d"], "3": ["e"]}
    assert measure(rankings, judgements, k=10)["all@10"] == 0.5


# --- against an earlier run --------------------------------------------------------------------


def baseline(dataset: Path, capsys: Any, tmp_path: Path, **changed: float) -> Path:
    report = run(dataset, capsys, "--mode", "lexical")
    report["modes"]["lexical"] |= changed
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(report))
    return path


def compare(dataset: Path, path: Path, *options: str) -> int:
    try:
        call_command(
            "evaluate", str(dataset), "--mode", "lexical", "--baseline", str(path), *options
        )
    except SystemExit as ended:
        return int(str(ended.code))
    return 0


def test_the_same_as_before_is_no_regression(dataset: Path, capsys: Any, tmp_path: Path) -> None:
    path = baseline(dataset, capsys, tmp_path)
    assert compare(dataset, path) == 0
    said = capsys.readouterr().out
    assert "+0.0000" in said
    assert "fell" not in said


def test_what_fell_is_shown_and_fails(dataset: Path, capsys: Any, tmp_path: Path) -> None:
    path = baseline(dataset, capsys, tmp_path, **{"ndcg@10": 1.5, "p50_ms": 0.0})
    assert compare(dataset, path) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "fell" in line]
    assert "ndcg@10" in line
    assert compare(dataset, path, "--tolerance", "0.9") == 0


def test_json_stays_json_beside_a_baseline(dataset: Path, capsys: Any, tmp_path: Path) -> None:
    path = baseline(dataset, capsys, tmp_path, **{"recall@10": 1.2})
    assert compare(dataset, path, "--json") == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["modes"]["lexical"]
    assert "recall@10" in said.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no JSON", "cannot be read"),
        ("[]", "is not what"),
        ('{"modes": {}, "dataset": "other", "queries": 2}', "questions of other"),
        ('{"modes": {"vector": {}}, "dataset": "tiny_set", "queries": 2}', "mode lexical"),
        ('{"modes": {"lexical": {"mrr": 1}}, "dataset": "tiny_set", "queries": 2}', "same -k"),
    ],
)
def test_a_baseline_that_cannot_be_compared_says_why(
    dataset: Path, tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(content)
    with pytest.raises(CommandError, match=message) as failure:
        compare(dataset, path)
    assert failure.value.returncode == 2


# --- what was judged in the admin --------------------------------------------------------------


@pytest.fixture
def judged() -> Collection:
    """A live collection in which two questions have answers and one has none."""
    collection: Collection = CollectionFactory(slug="notes", default_language="en")
    sources = [text_source(row["_id"], row["text"] or row["title"]) for row in CORPUS]
    ingest_inline(collection=collection, sources=sources)
    documents = {row.key: row for row in Document.objects.all()}
    for question, key, grade in (
        ("what eases pain", "a", Grade.PINNED),
        ("what eases pain", "b", Grade.BAD),
        ("blood", "d", Grade.GOOD),
        ("nothing good", "b", Grade.BAD),
    ):
        judge(
            collection=collection,
            question=question,
            document=documents[key],
            grade=grade,
            user=None,
        )
    return collection


def golden(judged: Collection, *options: str) -> None:
    call_command("evaluate", "--judgements", "--workspace", judged.workspace.slug, *options)


def test_the_golden_set_is_asked_where_it_was_judged(judged: Collection, capsys: Any) -> None:
    ids = set(Chunk.objects.values_list("id", flat=True))
    golden(judged, "--json", "--mode", "lexical")
    report = json.loads(capsys.readouterr().out)
    assert report["dataset"] == f"{judged.workspace.slug}/notes"
    assert (report["documents"], report["queries"]) == (4, 2)
    assert report["seconds_to_ingest"] is None
    assert report["modes"]["lexical"]["recall@10"] == 1.0
    assert set(Chunk.objects.values_list("id", flat=True)) == ids


def test_the_golden_set_is_written_as_a_set(judged: Collection, tmp_path: Path) -> None:
    golden(judged, "--export", str(tmp_path / "set"))
    questions = [
        json.loads(line) for line in (tmp_path / "set/queries.jsonl").read_text().splitlines()
    ]
    assert {row["text"] for row in questions} == {"what eases pain", "blood"}
    ids = {row["text"]: row["_id"] for row in questions}
    header, *rows = (tmp_path / "set/qrels.tsv").read_text().splitlines()
    assert header == "query-id\tcorpus-id\tscore"
    pain = ids["what eases pain"]
    assert {f"{pain}\ta\t2", f"{pain}\tb\t0", f"{ids['blood']}\td\t1"} == set(rows)


def test_a_collection_must_be_known(judged: Collection) -> None:
    with pytest.raises(CommandError, match="no workspace “nowhere”"):
        call_command("evaluate", "--judgements", "--workspace", "nowhere")
    with pytest.raises(CommandError, match="no collection “other”"):
        golden(judged, "--collection", "other")
    empty = CollectionFactory(workspace=judged.workspace, slug="empty")
    with pytest.raises(CommandError, match="No question of “empty”"):
        golden(judged, "--collection", "empty")
    document = DocumentFactory(collection=empty)
    judge(collection=empty, question="?", document=document, grade=Grade.GOOD, user=None)
    with pytest.raises(CommandError, match="empty, notes"):
        golden(judged)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "Name a DIR"),
        (("set", "--judgements"), "--judgements goes without DIR"),
        (("--judgements", "--keep"), "--keep goes with DIR"),
        (("--judgements", "-k", "0"), "1 to 100"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: tuple[str, ...], message: str
) -> None:
    with pytest.raises(CommandError, match=message) as failure:
        call_command("evaluate", *options)
    assert failure.value.returncode == 2


# --- a set as memories -------------------------------------------------------------------------

TURNS = [
    {
        "_id": "a1",
        "title": "1:56 pm on 8 May, 2023",
        "text": "I painted the boat green",
        "who": "a",
    },
    {"_id": "a2", "title": "1:56 pm on 8 May, 2023", "text": "Lovely, which green?", "who": "a"},
    {"_id": "a3", "date": "2023-08-01T10:00:00Z", "text": "The engine broke again", "who": "a"},
    {"_id": "a4", "date": "2023-08-02T10:00:00Z", "text": "The engine broke again", "who": "a"},
    {"_id": "b1", "title": "9 am on 1 June, 2023", "text": "My boat is painted red", "who": "b"},
]
ASKED = [
    {"_id": "1", "text": "What colour did you paint the boat?", "who": "a", "category": 1},
    {"_id": "2", "text": "What colour is the boat painted?", "who": "b", "category": 5},
    {"_id": "3", "text": "When did the engine break?", "who": "a", "category": 2},
]


@pytest.fixture
def conversations(tmp_path: Path) -> Path:
    directory = tmp_path / "talks"
    directory.mkdir()
    for name, rows in (("corpus", TURNS), ("queries", ASKED)):
        (directory / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    (directory / "qrels.tsv").write_text("1\ta1\t1\n2\tb1\t1\n3\ta3\t1\n3\ta4\t1\n")
    return directory


def test_questions_are_asked_of_their_own_users_memory(conversations: Path, capsys: Any) -> None:
    report = run(conversations, capsys, "--app", "memory", "--scope-field", "who")

    assert (report["users"], report["turns"], report["queries"]) == (2, 5, 3)
    assert list(report["modes"]) == (
        ["BM25", "cosine", "RRF of both", "hybrid, recency 0", "hybrid, recency 0.05"]
    )
    # the same words said twice are one context, which stands for both turns
    assert all(values["recall@5"] == 1.0 for values in report["modes"].values())
    assert set(report["categories"]) == {"1", "2", "5"}
    thresholds = [point["threshold"] for point in report["curve"]]
    assert thresholds == sorted(thresholds)
    injected = [point["injected"] for point in report["curve"]]
    assert injected == sorted(injected, reverse=True)
    assert injected[0] > 1


def test_nothing_is_remembered_of_a_measurement(conversations: Path, capsys: Any) -> None:
    run(conversations, capsys, "--app", "memory", "--scope-field", "who", "--recency", "1")
    assert not Context.objects.exists()


def test_a_turn_without_a_date_is_named(conversations: Path) -> None:
    path = conversations / "corpus.jsonl"
    path.write_text(path.read_text() + '{"_id": "b2", "text": "Hm.", "who": "b"}\n')
    with pytest.raises(CommandError, match=r"b2 has no date"):
        call_command("evaluate", str(conversations), "--app", "memory", "--scope-field", "who")


@pytest.mark.parametrize("option", ["--tune", "--keep", "--rerank"])
def test_options_of_documents_are_refused_for_a_memory(conversations: Path, option: str) -> None:
    with pytest.raises(CommandError, match="--app memory"):
        call_command("evaluate", str(conversations), "--app", "memory", option)
