"""Measures of ranked lists, by ir-measures (trec_eval's definitions)."""

from collections.abc import Mapping, Sequence
from math import log2

import ir_measures
import numpy as np
from ir_measures import RR, R, nDCG


def measure(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Mapping[str, int]], *, k: int
) -> dict[str, float]:
    """nDCG@k, recall@5, @10, @100, all@10 and MRR over all judged queries; a query without any
    result counts as zero. `rankings` are document ids, best first, by query id.

    all@10 is the share of queries with every relevant document among the first ten.
    """
    measures = {
        f"ndcg@{k}": nDCG @ k,
        "recall@5": R @ 5,
        "recall@10": R @ 10,
        "recall@100": R @ 100,
        "mrr": RR,
    }
    qrels = [
        ir_measures.Qrel(query_id, document_id, grade)
        for query_id, grades in judgements.items()
        if query_id in rankings
        for document_id, grade in grades.items()
    ]
    # The order is all that counts; scores that fall by one keep ties from being broken anew.
    run = [
        ir_measures.ScoredDoc(query_id, document_id, float(-place))
        for query_id, ranking in rankings.items()
        for place, document_id in enumerate(ranking)
    ]
    values = ir_measures.calc_aggregate(list(measures.values()), qrels, run)
    measured = {name: round(float(values[value]), 4) for name, value in measures.items()}
    return {**measured, "all@10": round(_all_found(rankings, judgements, 10), 4)}


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
