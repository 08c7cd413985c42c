"""Retrieval on public sets is at least as good as the published way to do it.

The sets lie beside the checkout on some machines; elsewhere these tests are skipped, visibly.
Their figures are in the sets' own README: bm25s, exact MiniLM, and the better of two fusions.
"""

from pathlib import Path
from typing import Any

import pytest

from search.evaluation.datasets import Dataset, load_dataset
from search.evaluation.evaluate import evaluate_collection, ingested_collection
from search.evaluation.memory import evaluate_memory
from search.results import Mode

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
MODEL = "inference.backends.transformers_local.TransformersEmbedder"
#: Where only words count.
NO_MODEL = "inference.backends.hashing.HashingEmbedder"

#: How many questions of a set are asked, and every how many-eth of the documents that answer none
#: of them is among those that do: the whole of med is embedded in minutes.
PARTS = {"med": (12, 3), "xquad_de": (400, 1), "hotpotqa_train": (50, 2)}
#: nDCG@10 of the reference runs on the parts.
REFERENCE: dict[str, dict[Mode, float]] = {
    "med": {"lexical": 0.801, "vector": 0.893, "hybrid": 0.893, "graph": 0.893},
    "xquad_de": {"lexical": 0.948},
}
TOLERANCE = 0.01
#: Hybrid is never worse than the better of its arms by more than this.
NO_WORSE = 0.002


#: Where the answer lies in two documents the graph finds as much more of them. Half of the set
#: gains 0.10 and 0.08.
MULTI_HOP = "hotpotqa_train"
MORE_BY_GRAPH = {"recall@5": 0.05, "all@10": 0.05}

#: The shortest conversation of LoCoMo: 369 turns.
CONVERSATION = "conv-30"
#: Memory search is better than BM25, cosine and both joined by rank by at least this.
BETTER = 0.02
#: How much of the evidence the default threshold of relevance may cost what is injected.
MOST_LOST = 0.02


@pytest.mark.django_db
@pytest.mark.model
@pytest.mark.shared_data
@pytest.mark.parametrize("name", [pytest.param("med", marks=pytest.mark.nightly), "xquad_de"])
def test_a_set_reaches_its_reference_figures(name: str, settings: Any) -> None:
    if not (DATA / name).is_dir():
        pytest.skip(f"the set {name} is not on this machine")
    reference = REFERENCE[name]
    model = NO_MODEL if set(reference) == {"lexical"} else MODEL
    settings.INFERENCE = {"embedder": {"default": {"BACKEND": model}}, "reranker": {}}
    modes = measured(part(name), list(reference))
    reached = {mode: modes[mode]["ndcg@10"] for mode in reference}
    short = {
        mode: reached[mode] for mode in reference if reached[mode] < reference[mode] - TOLERANCE
    }
    assert short == {}, f"{name} reached {reached}"
    if "hybrid" in reached:
        assert reached["hybrid"] >= max(reached.values()) - NO_WORSE, f"{name} reached {reached}"


@pytest.mark.django_db
@pytest.mark.model
@pytest.mark.shared_data
@pytest.mark.nightly
def test_the_graph_finds_more_of_what_lies_in_two_documents(settings: Any) -> None:
    if not (DATA / MULTI_HOP).is_dir():
        pytest.skip(f"the set {MULTI_HOP} is not on this machine")
    settings.INFERENCE = {"embedder": {"default": {"BACKEND": MODEL}}, "reranker": {}}
    modes = measured(part(MULTI_HOP), ["hybrid", "graph"])
    gained = {name: modes["graph"][name] - modes["hybrid"][name] for name in MORE_BY_GRAPH}
    short = {name: gained[name] for name, least in MORE_BY_GRAPH.items() if gained[name] < least}
    assert short == {}, f"reached {modes}"


def measured(dataset: Dataset, modes: list[Mode]) -> dict[str, dict[str, float]]:
    with ingested_collection(dataset) as (collection, _):
        report = evaluate_collection(collection, dataset, modes=modes)
    return dict(report["modes"])


def part(name: str) -> Dataset:
    """Its first questions, the documents that answer them, and some of the others."""
    whole, (questions, every) = load_dataset(DATA / name), PARTS[name]
    queries = whole.queries[:questions]
    judgements = {query.id: whole.judgements[query.id] for query in queries}
    answering = {key for grades in judgements.values() for key in grades}
    corpus = tuple(
        entry
        for number, entry in enumerate(whole.corpus)
        if entry.id in answering or number % every == every - 1
    )
    return Dataset(f"part of {name}", corpus, queries, judgements)


@pytest.mark.django_db
@pytest.mark.model
@pytest.mark.shared_data
@pytest.mark.nightly
def test_a_conversation_is_remembered_better_than_the_usual_way(settings: Any) -> None:
    if not (DATA / "locomo").is_dir():
        pytest.skip("the set locomo is not on this machine")
    settings.INFERENCE = {"embedder": {"default": {"BACKEND": MODEL}}, "reranker": {}}
    # Of the questions and turns of LoCoMo those of one pair of people.
    whole = load_dataset(DATA / "locomo")
    corpus, queries = (
        tuple(entry for entry in entries if entry.fields["conversation"] == CONVERSATION)
        for entries in (whole.corpus, whole.queries)
    )
    judgements = {query.id: whole.judgements[query.id] for query in queries}
    report = evaluate_memory(
        Dataset("one conversation", corpus, queries, judgements), scope_field="conversation"
    )

    reached = {name: values["ndcg@10"] for name, values in report["modes"].items()}
    ours = f"hybrid, recency {settings.MEMORY_RECENCY_WEIGHT:g}"
    usual = max(reached[name] for name in ("BM25", "cosine", "RRF of both"))
    assert reached[ours] >= usual + BETTER, f"reached {reached}"
    everything, *_ = report["curve"]
    (default,) = (
        point for point in report["curve"] if point["threshold"] == settings.MEMORY_THRESHOLD
    )
    assert default["recall_injected"] >= everything["recall_injected"] - MOST_LOST
    assert default["injected_adversarial"] <= 0.9 * everything["injected_adversarial"]
