"""Measures of ranked lists, by ir-measures (trec_eval's definitions)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

import ir_measures
import numpy as np
from ir_measures import RR, R, Success, nDCG


def measure(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Mapping[str, int]], *, k: int
) -> dict[str, float]:
    """nDCG@k, recall@5, @10, @100, hit@1, @3, all@10 and MRR over all judged queries; a query
    without any result counts as zero. `rankings` are document ids, best first, by query id.

    hit@n is the share of queries with a relevant document among the first n, all@10 that of queries
    with every relevant document among the first ten.
    """
    measures = {
        f"ndcg@{k}": nDCG @ k,
        "recall@5": R @ 5,
        "recall@10": R @ 10,
        "recall@100": R @ 100,
        "hit@1": Success @ 1,
        "hit@3": Success @ 3,
        "mrr": RR,
    }
    values = ir_measures.calc_aggregate(
        list(measures.values()), _qrels(rankings, judgements), _run(rankings)
    )
    measured = {name: round(float(values[value]), 4) for name, value in measures.items()}
    return {**measured, "all@10": round(_all_found(rankings, judgements, 10), 4)}


@dataclass(frozen=True, slots=True)
class Measured:
    """One question: nDCG@k and recall@k, 0..1, at which place the first good document came (None:
    nowhere), how many good ones there are and how many of them were among the first k."""

    ndcg: float
    recall: float
    first_rank: int | None
    good: int
    found: int

    @property
    def reciprocal_rank(self) -> float:
        """One divided by the place of the first good document, 0 without."""
        return 1 / self.first_rank if self.first_rank else 0.0


def measure_each(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Mapping[str, int]], *, k: int
) -> dict[str, Measured]:
    """The same question by question, by query id."""
    gains = {
        each.query_id: float(each.value)
        for each in ir_measures.iter_calc([nDCG @ k], _qrels(rankings, judgements), _run(rankings))
    }
    measured = {}
    for query_id, ranking in rankings.items():
        good = {key for key, grade in judgements[query_id].items() if grade > 0}
        places = [place for place, key in enumerate(ranking, start=1) if key in good]
        found = sum(place <= k for place in places)
        measured[query_id] = Measured(
            ndcg=gains.get(query_id, 0.0),
            recall=found / len(good) if good else 0.0,
            first_rank=places[0] if places else None,
            good=len(good),
            found=found,
        )
    return measured


def _qrels(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Mapping[str, int]]
) -> list[ir_measures.Qrel]:
    return [
        ir_measures.Qrel(query_id, document_id, grade)
        for query_id, grades in judgements.items()
        if query_id in rankings
        for document_id, grade in grades.items()
    ]


def _run(rankings: Mapping[str, Sequence[str]]) -> list[ir_measures.ScoredDoc]:
    # The order is all that counts; scores that fall by one keep ties from being broken anew.
    return [
        ir_measures.ScoredDoc(query_id, document_id, float(-place))
        for query_id, ranking in rankings.items()
        for place, document_id in enumerate(ranking)
    ]


def _all_found(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Mapping[str, int]], depth: int
) -> float:
    complete = [
        {document_id for document_id, grade in judgements[query_id].items() if grade > 0}
        <= set(ranking[:depth])
        for query_id, ranking in rankings.items()
        if any(grade > 0 for grade in judgements.get(query_id, {}).values())
    ]
    return sum(complete) / len(complete) if complete else 0.0


def dcg(grades: Sequence[int]) -> float:
    """Discounted cumulated gain of grades in ranked order, the gain being the grade itself.

    Järvelin and Kekäläinen, “Cumulated Gain-based Evaluation of IR Techniques” (2002), with the
    discount of trec_eval.
    """
    return sum(grade / log2(place + 1) for place, grade in enumerate(grades, start=1) if grade > 0)


def latencies(milliseconds: Sequence[float]) -> dict[str, float]:
    """Median and 95th percentile."""
    p50, p95 = np.percentile(milliseconds, [50, 95])
    return {"p50_ms": round(float(p50), 2), "p95_ms": round(float(p95), 2)}
