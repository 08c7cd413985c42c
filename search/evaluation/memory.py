"""Evaluates memory search: a set's turns stored as memories, its questions asked of them. Begin
with `evaluate_memory`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from math import isnan
from statistics import mean
from time import perf_counter
from typing import Any

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
DEPTH = 100
THRESHOLDS = tuple(step / 10 for step in range(10))
#: Number of contexts injected by default, which an answer can use.
INJECTED_CONTEXTS = 3


def evaluate_memory(
    dataset: Dataset,
    *,
    scope_field: str,
    k: int = 10,
    recencies: Sequence[float] = (),
    category_field: str = "category",
    adversarial: str = "5",
    on_progress: Progress = ignore_progress,
) -> dict[str, Any]:
    """Measures memory search on `dataset`: a report as `manage.py evaluate --json` prints it.
    `modes` are measures by ranking over all questions, `categories` the same by category, `curve`
    the effect of relevance thresholds.

    `scope_field` is the field that names a turn's or question's user. Ages count from each
    user's last turn. `recencies` are recency weights to try, by default 0 and the site's own.
    Questions whose `category_field` is `adversarial` have no answer.
    """
    own, judgements = settings.MEMORY_RECENCY_WEIGHT, dataset.judgements
    with archived_set(dataset, scope_field=scope_field, on_progress=on_progress) as (
        archive,
        seconds,
    ):
        rankings = archive.references()
        times: dict[str, list[float]] = {}
        results: dict[float, dict[str, MemoryResult]] = {}
        for weight in dict.fromkeys([*(recencies or (0.0,)), own]):
            name = f"hybrid, recency {weight:g}"
            results[weight] = archive.searched(recency=weight)
            rankings[name] = {
                query: archive.turns_of(each.hits) for query, each in results[weight].items()
            }
            times[name] = [each.milliseconds for each in results[weight].values()]
        others = archive.searched(recency=own, of_others=True)
        categories: dict[str, list[str]] = {}
        for query in dataset.queries:
            if category_field in query.fields:
                categories.setdefault(str(query.fields[category_field]), []).append(query.id)
        unanswerable = set(categories.get(adversarial, ()))

        def measured(queries: Iterable[str]) -> dict[str, dict[str, float]]:
            return {
                name: measure({query: ranking[query] for query in queries}, judgements, k=k)
                for name, ranking in rankings.items()
            }

        modes = measured([query.id for query in dataset.queries])
        for name, milliseconds in times.items():
            modes[name] |= latencies(milliseconds)
        return {
            "dataset": dataset.name,
            "users": len(archive.scopes),
            "turns": len(dataset.corpus),
            "queries": len(dataset.queries),
            "seconds_to_store": round(seconds, 2),
            "modes": modes,
            "categories": {
                category: measured(queries) for category, queries in sorted(categories.items())
            },
            "curve": [
                archive.curve_point(least, results[own], others, unanswerable)
                for least in THRESHOLDS
            ],
        }


@contextmanager
def archived_set(
    dataset: Dataset, *, scope_field: str, on_progress: Progress = ignore_progress
) -> Iterator[tuple["ArchivedSet", float]]:
    """The set's turns as memories of its users, and the seconds storing took; removed
    afterwards.
    """
    workspace = get_or_create_workspace(slug=WORKSPACE)
    archive = ArchivedSet(dataset, scope_field, on_progress)
    for name in dict.fromkeys(archive.user_of(entry) for entry in dataset.corpus):
        scope = user_scope(workspace=workspace, user_id=f"{dataset.name}/{name}"[:255])
        assert scope is not None  # it has a name
        archive.scopes[name] = scope
    started = perf_counter()
    try:
        archive.store()
        yield archive, perf_counter() - started
    finally:
        users = [scope.user_id for scope in archive.scopes.values()]
        Context.objects.filter(workspace=workspace, user_id__in=users).delete()


class ArchivedSet:
    """A set stored as memories: scopes and last turn by user, turn ids by context id; and its
    questions asked of them.
    """

    def __init__(self, dataset: Dataset, field: str, on_progress: Progress) -> None:
        self._dataset, self._field, self._on_progress = dataset, field, on_progress
        self.scopes: dict[str, UserScope] = {}
        self._ends: dict[str, datetime] = {}
        self._turns: dict[int, list[str]] = {}

    def user_of(self, entry: Entry) -> str:
        """The user that a turn or question is of. Raises DatasetError for one without."""
        if not self._field:
            return "everybody"
        if self._field not in entry.fields:
            raise DatasetError(
                f"{entry.id} has no field {self._field!r}, which tells whose memory it is."
            )
        return str(entry.fields[self._field])

    def store(self) -> None:
        """Stores and embeds all turns. Raises DatasetError for one without a date."""
        before: dict[str, datetime] = {}
        corpus = self._dataset.corpus
        for number, entry in enumerate(corpus, start=1):
            user, moment = self.user_of(entry), entry_time(entry)
            if user in before and moment <= before[user]:
                # Turns of one sitting carry its time; they follow each other.
                moment = before[user] + timedelta(seconds=1)
            before[user] = moment
            self._ends[user] = max(moment, self._ends.get(user, moment))
            stored = put_context(
                scope=self.scopes[user],
                user_message=entry.text or entry.title,
                conversation=user[:255],
                at=moment,
            )
            self._turns.setdefault(stored.id, []).append(entry.id)
            self._on_progress("archive", number, len(corpus))
        for scope in self.scopes.values():
            embed_waiting(scope=scope)

    def turns_of(self, hits: Iterable[MemoryHit]) -> list[str]:
        """Ids of the turns found; equal turns share one context."""
        return [turn for hit in hits for turn in self._turns[hit.context.pk]]

    def _questions(self, step: str) -> Iterator[tuple[Entry, str]]:
        """Each question with its user. Raises DatasetError for a user without turns."""
        for number, query in enumerate(self._dataset.queries, start=1):
            user = self.user_of(query)
            if user not in self.scopes:
                raise DatasetError(f"Question {query.id} is asked of {user!r}, who has no turn.")
            yield query, user
            self._on_progress(step, number, len(self._dataset.queries))

    def references(self) -> dict[str, dict[str, list[str]]]:
        """Reference rankings: BM25, exact cosine, and RRF of both."""
        rankings: dict[str, dict[str, list[str]]] = {"BM25": {}, "cosine": {}, "RRF of both": {}}
        for query, user in self._questions("references"):
            found = find(CONTEXTS, query.text, scope=self.scopes[user], now=self._ends[user])
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
                rankings[name][query.id] = [turn for pk in ids for turn in self._turns[pk]]
        return rankings

    def searched(self, *, recency: float, of_others: bool = False) -> dict[str, MemoryResult]:
        """Results of the service for each question, asked of its user or of another one, who cannot
        know. A set with one user has no others.
        """
        users = list(self.scopes)
        if of_others and len(users) < 2:
            return {}
        results = {}
        for query, own in self._questions("others" if of_others else f"recency {recency:g}"):
            user = users[(users.index(own) + 1) % len(users)] if of_others else own
            results[query.id] = search_memory(
                scope=self.scopes[user],
                query=query.text,
                k=DEPTH,
                threshold=0.0,
                recency=recency,
                now=self._ends[user],
            )
        return results

    def curve_point(
        self,
        least: float,
        results: Mapping[str, MemoryResult],
        others: Mapping[str, MemoryResult],
        unanswerable: set[str],
    ) -> dict[str, float]:
        """Effect of a relevance threshold.

        `recall_5`: evidence among the five best results; `recall_injected`: among the injected
        contexts, the best three that reach the threshold. Then the injected contexts per question:
        answerable, adversarial, and asked of another user.
        """

        def relevant(result: MemoryResult, most: int | None) -> list[MemoryHit]:
            return [hit for hit in result.hits[:most] if hit.ranked.relevance >= least]

        def injected(of: Iterable[MemoryResult]) -> float:
            counts = [len(relevant(result, INJECTED_CONTEXTS)) for result in of]
            return round(mean(counts), 3) if counts else 0.0

        answerable = {query: each for query, each in results.items() if query not in unanswerable}
        shares: list[tuple[float, float]] = []
        for query, result in answerable.items():
            grades = self._dataset.judgements[query]
            wanted = {turn for turn, grade in grades.items() if grade > 0}
            found = (
                set(self.turns_of(hits)) & wanted
                for hits in (relevant(result, None)[:5], relevant(result, INJECTED_CONTEXTS))
            )
            best, of_injected = (len(each) / len(wanted) if wanted else 0.0 for each in found)
            shares.append((best, of_injected))
        recall_5, recall_injected = (
            (mean(each) for each in zip(*shares, strict=True)) if shares else (0.0, 0.0)
        )
        return {
            "threshold": least,
            "recall_5": round(recall_5, 4),
            "recall_injected": round(recall_injected, 4),
            "injected": injected(answerable.values()),
            "injected_adversarial": injected(results[query] for query in unanswerable),
            "injected_of_others": injected(others.values()),
        }


def _best(scores: Mapping[int, float]) -> list[int]:
    return sorted(scores, key=lambda pk: (-scores[pk], pk))[:DEPTH]


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
