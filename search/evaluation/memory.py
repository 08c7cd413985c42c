"""Evaluates memory search: a set's turns stored as memories, its questions asked of them. Begin
with `evaluate_memory`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isnan
from statistics import mean
from time import perf_counter

from dateutil import parser as dates
from django.conf import settings

from accounts.services import get_or_create_workspace
from common.fusion_options import RRF_K
from memory.embedding import embed_waiting
from memory.models import Context
from memory.retrieval import CONTEXTS, find
from memory.scopes import UserScope, user_scope
from memory.services import MemoryHit, MemoryResult, search_memory
from memory.store import put_context
from search.evaluation.datasets import Dataset, DatasetError, Entry
from search.evaluation.evaluate import WORKSPACE, Progress, ignore_progress, latencies, measure

#: Fields that may hold a turn's date, besides its title.
DATE_FIELDS = ("created_at", "date", "timestamp", "time")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ArchivedSet:
    """The set stored as memories: scopes and last turn by user, turn ids by context id."""

    scopes: Mapping[str, UserScope]
    ends: Mapping[str, datetime]
    turns: Mapping[int, Sequence[str]]
    field: str

    def user_of(self, query: Entry) -> str:
        """The user that a question is asked of. Raises DatasetError for one without turns."""
        user = _user(query, self.field)
        if user not in self.scopes:
            raise DatasetError(f"Question {query.id} is asked of {user!r}, who has no turn.")
        return user


@contextmanager
def archived_set(
    dataset: Dataset, *, scope_field: str, on_progress: Progress = ignore_progress
) -> Iterator[tuple[ArchivedSet, float]]:
    """The set's turns as memories of its users, and the seconds storing took; removed
    afterwards.
    """
    workspace = get_or_create_workspace(slug=WORKSPACE)
    names = dict.fromkeys(_user(entry, scope_field) for entry in dataset.corpus)
    scopes = {}
    for name in names:
        scope = user_scope(workspace=workspace, user_id=f"{dataset.name}/{name}"[:255])
        assert scope is not None  # it has a name
        scopes[name] = scope
    started = perf_counter()
    try:
        archive = _archive(dataset, scopes, scope_field, on_progress)
        for scope in scopes.values():
            embed_waiting(scope=scope)
        yield archive, perf_counter() - started
    finally:
        users = [scope.user_id for scope in scopes.values()]
        Context.objects.filter(workspace=workspace, user_id__in=users).delete()


def _archive(
    dataset: Dataset, scopes: Mapping[str, UserScope], field: str, on_progress: Progress
) -> ArchivedSet:
    turns: dict[int, list[str]] = {}
    ends: dict[str, datetime] = {}
    before: dict[str, datetime] = {}
    for number, entry in enumerate(dataset.corpus, start=1):
        user = _user(entry, field)
        moment = entry_time(entry)
        if user in before and moment <= before[user]:
            # Turns of one sitting carry its time; they follow each other.
            moment = before[user] + timedelta(seconds=1)
        before[user] = moment
        ends[user] = max(moment, ends.get(user, moment))
        stored = put_context(
            scope=scopes[user],
            user_message=entry.text or entry.title,
            conversation=user[:255],
            at=moment,
        )
        turns.setdefault(stored.id, []).append(entry.id)
        on_progress("archive", number, len(dataset.corpus))
    return ArchivedSet(scopes=scopes, ends=ends, turns=turns, field=field)


def _user(entry: Entry, field: str) -> str:
    if field and field not in entry.fields:
        raise DatasetError(f"{entry.id} has no field {field!r}, which tells whose memory it is.")
    return str(entry.fields[field]) if field else "everybody"


def entry_time(entry: Entry) -> datetime:
    """When a turn was written, from its date fields or title. Raises DatasetError."""
    for date_text in (*(entry.fields.get(name) for name in DATE_FIELDS), entry.title):
        if not date_text:
            continue
        try:
            moment: datetime = dates.parse(str(date_text), fuzzy=True, default=EPOCH)
        except (ValueError, OverflowError) as error:
            raise DatasetError(f"{entry.id}: “{date_text}” is no date ({error}).") from error
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    raise DatasetError(
        f"{entry.id} has no date: a turn needs one in {', '.join(DATE_FIELDS)} or its title."
    )


DEPTH = 100
THRESHOLDS = tuple(step / 10 for step in range(10))
#: Number of contexts injected by default, which an answer can use.
INJECTED_CONTEXTS = 3


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Effect of a relevance threshold.

    `recall_5`: evidence among the five best results; `recall_injected`: among the injected
    contexts, the best three that reach the threshold. Then the injected contexts per question:
    answerable, adversarial, and asked of another user.
    """

    threshold: float
    recall_5: float
    recall_injected: float
    injected: float
    injected_adversarial: float
    injected_of_others: float


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Measures of a set. `modes` are rankings by name, over all questions;
    `categories` the same by category.
    """

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
    on_progress: Progress = ignore_progress,
) -> MemoryReport:
    """Measures memory search on `dataset`.

    `scope_field` is the field that names a turn's or question's user. Ages count from each
    user's last turn. `recencies` are recency weights to try, by default 0 and the site's own.
    Questions whose `category_field` is `adversarial` have no answer.
    """
    own = settings.MEMORY_RECENCY_WEIGHT
    with archived_set(dataset, scope_field=scope_field, on_progress=on_progress) as (
        archive,
        seconds,
    ):
        asked = _MemoryQuestions(dataset, archive, on_progress)
        rankings = asked.references()
        times: dict[str, list[float]] = {}
        results: dict[float, dict[str, MemoryResult]] = {}
        for weight in dict.fromkeys([*(recencies or (0.0,)), own]):
            name = f"hybrid, recency {weight:g}"
            results[weight] = asked.searched(recency=weight)
            # Ids of the turns found; equal turns share one context.
            rankings[name] = {
                query: [turn for hit in each.hits for turn in archive.turns[hit.context.pk]]
                for query, each in results[weight].items()
            }
            times[name] = [each.milliseconds for each in results[weight].values()]
        others = asked.searched(recency=own, of_others=True)
        return MemoryReport(
            dataset=dataset.name,
            users=len(archive.scopes),
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
            curve=_curve(dataset, archive, results[own], others, category_field, adversarial),
        )


@dataclass(frozen=True, slots=True)
class _MemoryQuestions:
    """The questions of a set, asked of its memories."""

    dataset: Dataset
    archive: ArchivedSet
    on_progress: Progress

    def references(self) -> dict[str, dict[str, list[str]]]:
        """Reference rankings: BM25, exact cosine, and RRF of both."""
        rankings: dict[str, dict[str, list[str]]] = {"BM25": {}, "cosine": {}, "RRF of both": {}}
        for number, query in enumerate(self.dataset.queries, start=1):
            user = self.archive.user_of(query)
            found = find(
                CONTEXTS,
                query.text,
                scope=self.archive.scopes[user],
                now=self.archive.ends[user],
            )
            rows = found.candidates
            lexical = zip(rows.ids.tolist(), rows.lexical.tolist(), strict=True)
            cosines = zip(rows.ids.tolist(), rows.similarities.tolist(), strict=True)
            words = _best({pk: score for pk, score in lexical if score})
            meaning = _best({pk: cosine for pk, cosine in cosines if not isnan(cosine)})
            scores: dict[int, float] = {}
            for ranking in (words, meaning):
                for place, pk in enumerate(ranking, start=1):
                    scores[pk] = scores.get(pk, 0.0) + 1 / (RRF_K + place)
            for name, ids in zip(rankings, (words, meaning, _best(scores)), strict=True):
                rankings[name][query.id] = [turn for pk in ids for turn in self.archive.turns[pk]]
            self.on_progress("references", number, len(self.dataset.queries))
        return rankings

    def searched(self, *, recency: float, of_others: bool = False) -> dict[str, MemoryResult]:
        """Results of the service for each question, asked of its user or of another one, who cannot
        know. A set with one user has no others.
        """
        users = list(self.archive.scopes)
        if of_others and len(users) < 2:
            return {}
        results = {}
        for number, query in enumerate(self.dataset.queries, start=1):
            user = self.archive.user_of(query)
            if of_others:
                user = users[(users.index(user) + 1) % len(users)]
            results[query.id] = search_memory(
                scope=self.archive.scopes[user],
                query=query.text,
                max_results=DEPTH,
                threshold=0.0,
                recency=recency,
                now=self.archive.ends[user],
            )
            self.on_progress(
                "others" if of_others else f"recency {recency:g}",
                number,
                len(self.dataset.queries),
            )
        return results


def _best(scores: Mapping[int, float]) -> list[int]:
    return sorted(scores, key=lambda pk: (-scores[pk], pk))[:DEPTH]


# --- measures ------------------------------------------------------------------------------------


def _by_category(
    dataset: Dataset,
    rankings: Mapping[str, Mapping[str, Sequence[str]]],
    field: str,
    k: int,
) -> dict[str, dict[str, dict[str, float]]]:
    """Measures by category, then by ranking; empty where questions have no category."""
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
    archive: ArchivedSet,
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
            recall_5=_recall(dataset, answerable, archive, lambda hits: _relevant(hits, least)[:5]),
            recall_injected=_recall(
                dataset,
                answerable,
                archive,
                lambda hits: _relevant(hits[:INJECTED_CONTEXTS], least),
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
    archive: ArchivedSet,
    chosen: Callable[[Sequence[MemoryHit]], Sequence[MemoryHit]],
) -> float:
    """Mean share of a question's evidence among the chosen hits."""
    shares = []
    for query, result in results.items():
        wanted = {turn for turn, grade in dataset.judgements[query].items() if grade > 0}
        found = {turn for hit in chosen(result.hits) for turn in archive.turns[hit.context.pk]}
        shares.append(len(wanted & found) / len(wanted) if wanted else 0.0)
    return round(mean(shares), 4) if shares else 0.0


def _injected(results: Iterable[MemoryResult], least: float) -> float:
    counts = [len(_relevant(result.hits[:INJECTED_CONTEXTS], least)) for result in results]
    return round(mean(counts), 3) if counts else 0.0
