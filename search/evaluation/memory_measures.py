"""How good a memory is on the questions of a set, with recency and without, and what a threshold of
relevance leaves."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import mean

from django.conf import settings

from common.fusion_options import RRF_K
from memory.retrieval.finding import find
from memory.retrieval.statement import CONTEXTS
from memory.services import MemoryHit, MemoryResult, search_memory
from search.evaluation.dataset import Dataset
from search.evaluation.measures import latencies, measure
from search.evaluation.memories import Kept, archived
from search.evaluation.progress import Progress, nobody_watches

DEPTH = 100
THRESHOLDS = tuple(step / 10 for step in range(10))
#: So many contexts are injected by default; evidence among them is what an answer can use.
INJECTED = 3


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What a threshold of relevance leaves. `recall_5` is the evidence among the five that a search
    gives; `recall_injected` that among the contexts that are injected: the best three, as far as
    they reach it. Then how many these are a question: of answerable ones, of adversarial ones, and
    of the same questions asked of other users, who cannot know."""

    threshold: float
    recall_5: float
    recall_injected: float
    injected: float
    injected_adversarial: float
    injected_of_others: float


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What a set showed. `modes` are rankings by name, over all questions; `categories` the same by
    category of question."""

    dataset: str
    users: int
    turns: int
    queries: int
    seconds_to_store: float
    modes: dict[str, dict[str, float]]
    categories: dict[str, dict[str, dict[str, float]]]
    curve: tuple[CurvePoint, ...]


def evaluate_memory(
    dataset: Dataset,
    *,
    scope_field: str,
    k: int = 10,
    recencies: Sequence[float] = (),
    category_field: str = "category",
    adversarial: str = "5",
    on_progress: Progress = nobody_watches,
) -> MemoryReport:
    """Measure memory search on `dataset`.

    `scope_field` names the field that tells whose a turn or question is. Ages are counted from each
    user's last turn. `recencies` are weights to rank with, by default none and the site's own.
    Questions whose `category_field` is `adversarial` have no answer.
    """
    own = settings.MEMORY_RECENCY_WEIGHT
    with archived(dataset, scope_field=scope_field, on_progress=on_progress) as (kept, seconds):
        asked = _Asked(dataset, kept, on_progress)
        rankings = asked.references()
        times: dict[str, list[float]] = {}
        results: dict[float, dict[str, MemoryResult]] = {}
        for weight in dict.fromkeys([*(recencies or (0.0,)), own]):
            name = f"hybrid, recency {weight:g}"
            results[weight] = asked.searched(recency=weight)
            rankings[name] = {query: _turns(each, kept) for query, each in results[weight].items()}
            times[name] = [each.milliseconds for each in results[weight].values()]
        others = asked.searched(recency=own, of_others=True)
        return MemoryReport(
            dataset=dataset.name,
            users=len(kept.scopes),
            turns=len(dataset.corpus),
            queries=len(dataset.queries),
            seconds_to_store=round(seconds, 2),
            modes={
                name: {
                    **measure(ranking, dataset.judgements, k=k),
                    **(latencies(times[name]) if name in times else {}),
                }
                for name, ranking in rankings.items()
            },
            categories=_by_category(dataset, rankings, category_field, k),
            curve=_curve(dataset, kept, results[own], others, category_field, adversarial),
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """The questions of a set, asked of its memories."""

    dataset: Dataset
    kept: Kept
    on_progress: Progress

    def references(self) -> dict[str, dict[str, list[str]]]:
        """What is usual: BM25, exact cosine, and both joined by rank."""
        rankings: dict[str, dict[str, list[str]]] = {"BM25": {}, "cosine": {}, "RRF of both": {}}
        for number, query in enumerate(self.dataset.queries, start=1):
            user = self.kept.user_of(query)
            found = find(
                CONTEXTS,
                query.text,
                scope=self.kept.scopes[user],
                now=self.kept.ends[user],
            )
            rows = found.candidates
            lexical = zip(rows.ids.tolist(), rows.lexical.tolist(), strict=True)
            cosines = zip(rows.ids.tolist(), rows.similarities.tolist(), strict=True)
            words = _best({pk: score for pk, score in lexical if score})
            meaning = _best({pk: cosine for pk, cosine in cosines if not isnan(cosine)})
            for name, ids in zip(
                rankings, (words, meaning, _joined_by_rank(words, meaning)), strict=True
            ):
                rankings[name][query.id] = [turn for pk in ids for turn in self.kept.turns[pk]]
            self.on_progress("references", number, len(self.dataset.queries))
        return rankings

    def searched(self, *, recency: float, of_others: bool = False) -> dict[str, MemoryResult]:
        """The same by the service: asked of the user who was asked, or of the one after, who cannot
        know. A memory of one user has no others."""
        users = list(self.kept.scopes)
        if of_others and len(users) < 2:
            return {}
        results = {}
        for number, query in enumerate(self.dataset.queries, start=1):
            user = self.kept.user_of(query)
            if of_others:
                user = users[(users.index(user) + 1) % len(users)]
            results[query.id] = search_memory(
                scope=self.kept.scopes[user],
                query=query.text,
                max_results=DEPTH,
                threshold=0.0,
                recency=recency,
                now=self.kept.ends[user],
            )
            self.on_progress(
                "others" if of_others else f"recency {recency:g}",
                number,
                len(self.dataset.queries),
            )
        return results


def _best(scores: Mapping[int, float]) -> list[int]:
    return sorted(scores, key=lambda pk: (-scores[pk], pk))[:DEPTH]


def _joined_by_rank(*rankings: Sequence[int]) -> list[int]:
    scores: dict[int, float] = {}
    for ranking in rankings:
        for place, pk in enumerate(ranking, start=1):
            scores[pk] = scores.get(pk, 0.0) + 1 / (RRF_K + place)
    return _best(scores)


def _turns(result: MemoryResult, kept: Kept) -> list[str]:
    """The turns found: those that say the same are one context, and all of them are there."""
    return [turn for hit in result.hits for turn in kept.turns[hit.context.pk]]


# --- measures ------------------------------------------------------------------------------------


def _by_category(
    dataset: Dataset,
    rankings: Mapping[str, Mapping[str, Sequence[str]]],
    field: str,
    k: int,
) -> dict[str, dict[str, dict[str, float]]]:
    """By category, then by ranking; nothing where questions have none."""
    categories: dict[str, list[str]] = {}
    for query in dataset.queries:
        if field in query.fields:
            categories.setdefault(str(query.fields[field]), []).append(query.id)
    return {
        category: {
            name: measure({query: ranking[query] for query in queries}, dataset.judgements, k=k)
            for name, ranking in rankings.items()
        }
        for category, queries in sorted(categories.items())
    }


def _curve(
    dataset: Dataset,
    kept: Kept,
    results: Mapping[str, MemoryResult],
    others: Mapping[str, MemoryResult],
    field: str,
    adversarial: str,
) -> tuple[CurvePoint, ...]:
    without = {query.id for query in dataset.queries if str(query.fields.get(field)) == adversarial}
    answerable = {query: result for query, result in results.items() if query not in without}
    unanswerable = [results[query] for query in without]

    def point(least: float) -> CurvePoint:
        return CurvePoint(
            threshold=least,
            recall_5=_recall(dataset, answerable, kept, lambda hits: _relevant(hits, least)[:5]),
            recall_injected=_recall(
                dataset, answerable, kept, lambda hits: _relevant(hits[:INJECTED], least)
            ),
            injected=_injected(answerable.values(), least),
            injected_adversarial=_injected(unanswerable, least),
            injected_of_others=_injected(others.values(), least),
        )

    return tuple(point(least) for least in THRESHOLDS)


def _relevant(hits: Sequence[MemoryHit], least: float) -> Sequence[MemoryHit]:
    return [hit for hit in hits if hit.ranked.relevance >= least]


def _recall(
    dataset: Dataset,
    results: Mapping[str, MemoryResult],
    kept: Kept,
    chosen: Callable[[Sequence[MemoryHit]], Sequence[MemoryHit]],
) -> float:
    """The mean share of a question's evidence among the hits that are chosen."""
    shares = []
    for query, result in results.items():
        wanted = {turn for turn, grade in dataset.judgements[query].items() if grade > 0}
        found = {turn for hit in chosen(result.hits) for turn in kept.turns[hit.context.pk]}
        shares.append(len(wanted & found) / len(wanted) if wanted else 0.0)
    return round(mean(shares), 4) if shares else 0.0


def _injected(results: Iterable[MemoryResult], least: float) -> float:
    counts = [len(_relevant(result.hits[:INJECTED], least)) for result in results]
    return round(mean(counts), 3) if counts else 0.0
