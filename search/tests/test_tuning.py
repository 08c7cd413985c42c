"""`manage.py evaluate --tune`: collections learn from judgements what helps, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from documents.ingestion.sources import text_source
from documents.models import Collection, Document
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory
from inference.backends.hashing import HashingEmbedder
from inference.interfaces import BackendUnavailable
from search.evaluation.datasets import golden_set
from search.evaluation.evaluate import measure, question_scope
from search.evaluation.learned_weights import tune
from search.judgements import Grade, judge
from search.query_options import MAX_K, site_scope
from search.services import search

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

HERBS = [
    "thyme",
    "basil",
    "sage",
    "mint",
    "dill",
    "fennel",
    "parsley",
    "chervil",
    "lovage",
    "tarragon",
    "borage",
    "sorrel",
    "hyssop",
    "rue",
    "savory",
    "marjoram",
]
#: Stop words: search by words passes them over, and the test embedder takes texts that share them
#: for near.
ALIKE = "what should he do with them and where did you have all of these before it was not"


@pytest.fixture
def collection() -> Collection:
    return CollectionFactory(slug="herbs", default_language="en")


def fill(collection: Collection, texts: dict[str, str]) -> None:
    sources = [text_source(key, text) for key, text in texts.items()]
    ingest_inline(collection=collection, sources=sources)


def judge_all(collection: Collection, answers: dict[str, str]) -> None:
    documents = {row.key: row for row in Document.objects.filter(collection=collection)}
    for question, key in answers.items():
        judge(
            collection=collection,
            question=question,
            document=documents[key],
            grade=Grade.GOOD,
            user=None,
        )


@pytest.fixture
def words_are_right(collection: Collection) -> Collection:
    """Questions look like texts that lack the one word that matters."""
    texts, answers = {}, {}
    for number, herb in enumerate(HERBS):
        texts[f"list-{herb}"] = (
            f"{herb}. Article {number} of an inventory, written down by a clerk: barrels, ropes,"
            " lanterns, nails, blankets, saddles, candles, salt, three mirrors, ladders, wheels."
        )
        texts[f"talk-{herb}"] = f"{ALIKE}, number {number}"
        answers[f"{ALIKE} {herb}"] = f"list-{herb}"
    fill(collection, texts)
    judge_all(collection, answers)
    return collection


@pytest.fixture
def nothing_to_learn(collection: Collection) -> Collection:
    """Whatever the weights, every question finds its own text."""
    fill(collection, {herb: f"{herb} {ALIKE}" for herb in HERBS})
    judge_all(collection, {f"{ALIKE} {herb}": herb for herb in HERBS})
    return collection


@pytest.fixture
def meaning_is_right(collection: Collection) -> Collection:
    """Answers look like the questions; what has their one rare word, and some of the look, is
    something else."""
    texts, answers = {}, {}
    for herb in HERBS:
        texts[f"talk-{herb}"] = f"{ALIKE} {herb}{herb[-1]}y"
        texts[f"list-{herb}"] = f"{herb} {herb} {herb} {' '.join(ALIKE.split()[1:])}"
        answers[f"{ALIKE} {herb}"] = f"talk-{herb}"
    fill(collection, texts)
    judge_all(collection, answers)
    return collection


def run(capsys: Any, *options: str, collection: Collection) -> dict[str, Any]:
    call_command(
        *("evaluate", "--judgements", "--json", *options),
        *("--workspace", collection.workspace.slug),
    )
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


def test_where_words_are_right_words_are_learnt(words_are_right: Collection, capsys: Any) -> None:
    before = keys(words_are_right, f"{ALIKE} thyme")
    learnt = run(capsys, "--tune", collection=words_are_right)
    assert learnt["words"] > learnt["meaning"]
    assert learnt["lexical"] > 0.5
    assert learnt["tuned"] > learnt["untuned"]
    assert learnt["stored"]

    words_are_right.refresh_from_db()
    record = words_are_right.tuning
    assert record["lexical"] == learnt["lexical"]
    assert record["ndcg_tuned"] > record["ndcg_default"]
    assert (record["questions"], record["space"]) == (16, words_are_right.space_id)
    after = keys(words_are_right, f"{ALIKE} thyme")
    assert after.index("list-thyme") < before.index("list-thyme")


def test_where_meaning_is_right_meaning_is_learnt(
    meaning_is_right: Collection, capsys: Any
) -> None:
    learnt = run(capsys, "--tune", collection=meaning_is_right)
    assert learnt["meaning"] > learnt["words"]
    assert learnt["lexical"] < 0.4
    assert learnt["tuned"] > learnt["untuned"]
    assert learnt["stored"]


def test_what_was_measured_offline_is_what_searches_then_reach(
    words_are_right: Collection,
) -> None:
    """Fused offline with the default weights, and searched with them: the same measure."""
    dataset = golden_set(words_are_right)
    learnt = tune(
        words_are_right, dataset, scope_of=lambda query: question_scope(words_are_right, query)
    )
    rankings = {query.id: keys(words_are_right, query.text) for query in dataset.queries}
    live = measure(rankings, dataset.judgements, k=10)["ndcg@10"]
    assert learnt.untuned == pytest.approx(live, abs=1e-4)


def keys(collection: Collection, question: str) -> list[str]:
    scope = site_scope(workspace=collection.workspace)
    result = search(question, scope=scope, k=MAX_K, group=True, rerank=False)
    return [hit.document_key for hit in result.hits]


def test_without_a_gain_nothing_is_kept(nothing_to_learn: Collection, capsys: Any) -> None:
    learnt = run(capsys, "--tune", collection=nothing_to_learn)
    assert learnt["gain"] <= 0
    assert not learnt["stored"]
    nothing_to_learn.refresh_from_db()
    assert nothing_to_learn.tuning is None


def test_what_was_learnt_can_be_forgotten(words_are_right: Collection, capsys: Any) -> None:
    place = ("--workspace", words_are_right.workspace.slug)
    run(capsys, "--tune", collection=words_are_right)
    call_command("evaluate", "--forget", *place)
    words_are_right.refresh_from_db()
    assert words_are_right.tuning is None
    assert "again" in capsys.readouterr().out
    call_command("evaluate", "--forget", *place)
    assert "as before" in capsys.readouterr().out


def test_a_few_questions_are_too_few(collection: Collection) -> None:
    fill(collection, {herb: herb for herb in HERBS})
    judge_all(collection, {herb: herb for herb in HERBS[:9]})
    with pytest.raises(CommandError, match=r"9 questions .* too few") as failure:
        call_command(
            *("evaluate", "--judgements", "--tune"), *("--workspace", collection.workspace.slug)
        )
    assert failure.value.returncode == 2


def test_without_its_model_nothing_is_learnt(
    words_are_right: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> Any:
        raise BackendUnavailable("The model is down.")

    monkeypatch.setattr(HashingEmbedder, "embed_query", broken)
    with pytest.raises(CommandError, match="does not answer"):
        call_command(
            *("evaluate", "--judgements", "--tune"),
            *("--workspace", words_are_right.workspace.slug),
        )


def test_a_set_on_disk_teaches_the_collection_that_is_kept(
    words_are_right: Collection, tmp_path: Path, capsys: Any
) -> None:
    run_dir = tmp_path / "herb-set"
    call_command(
        *("evaluate", "--judgements", "--export", str(run_dir)),
        *("--workspace", words_are_right.workspace.slug),
    )
    texts = Document.objects.filter(collection=words_are_right)
    lines = [
        json.dumps({"_id": row.key, "text": row.chunks.get().text}) for row in texts.order_by("id")
    ]
    (run_dir / "corpus.jsonl").write_text("\n".join(lines))
    capsys.readouterr()

    call_command("evaluate", str(run_dir), "--tune")
    assert "thrown away" in capsys.readouterr().out
    assert not Collection.objects.filter(slug="herb-set").exists()

    call_command("evaluate", str(run_dir), "--tune", "--keep", "--json")
    learnt = json.loads(capsys.readouterr().out)
    assert learnt["stored"]
    assert Collection.objects.get(slug="herb-set").tuning["lexical"] == learnt["lexical"] > 0.5
