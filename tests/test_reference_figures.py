"""Retrieval on public sets is at least as good as the published way to do it.

The sets lie beside the checkout on some machines; elsewhere these tests are skipped, visibly.
Their figures are in the sets' own README: bm25s, exact MiniLM, and the better of two fusions.
"""

from pathlib import Path
from typing import Any

import pytest

from search.evaluation.dataset import load_dataset
from search.evaluation.evaluate import evaluate
from search.results import Mode

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
MODEL = "inference.backends.transformers_local.TransformersEmbedder"

#: nDCG@10 of the reference runs.
REFERENCE: dict[str, dict[Mode, float]] = {
    "med": {"lexical": 0.699, "vector": 0.784, "hybrid": 0.796},
    "xquad_de": {"lexical": 0.939},
}
TOLERANCE = 0.01
#: Hybrid is never worse than the better of its arms by more than this.
NO_WORSE = 0.002


@pytest.mark.django_db
@pytest.mark.model
@pytest.mark.shared_data
@pytest.mark.parametrize("name", REFERENCE)
def test_a_set_reaches_its_reference_figures(name: str, settings: Any) -> None:
    if not (DATA / name).is_dir():
        pytest.skip(f"the set {name} is not on this machine")
    settings.INFERENCE = {"embedder": {"default": {"BACKEND": MODEL}}, "reranker": {}}
    reference = REFERENCE[name]
    modes = evaluate(load_dataset(DATA / name), modes=list(reference)).modes
    reached = {mode: modes[mode]["ndcg@10"] for mode in reference}
    short = {
        mode: reached[mode] for mode in reference if reached[mode] < reference[mode] - TOLERANCE
    }
    assert short == {}, f"{name} reached {reached}"
    if "hybrid" in reached:
        assert reached["hybrid"] >= max(reached.values()) - NO_WORSE, f"{name} reached {reached}"
