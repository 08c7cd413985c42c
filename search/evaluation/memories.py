"""A set as memories: every turn archived under its user, each question asked of that user."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import perf_counter

from dateutil import parser as dates
from django.conf import settings

from accounts.services import get_or_create_workspace
from common.fusion import RRF_K
from memory.embedding import embed_waiting
from memory.models import Context
from memory.retrieval.finding import find
from memory.retrieval.statement import CONTEXTS
from memory.scopes import UserScope, user_scope
from memory.services import MemoryResult, search_memory
from memory.storing.contexts import put_context
from search.evaluation.dataset import Dataset, DatasetError, Entry
from search.evaluation.evaluate import WORKSPACE
from search.evaluation.measures import latencies, measure
from search.evaluation.progress import Progress, nobody_watches

#: Where a turn's date may stand, besides its title.
DATE_FIELDS = ("created_at", "date", "timestamp", "time")
DEPTH = 100
THRESHOLDS = tuple(step / 10 for step in range(10))
#: So many contexts are injected by default; evidence among them is what an answer can use.
INJECTED = 3
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What a threshold leaves: of evidence, shares of what the questions need; of the contexts that
    would be injected, how many a question, for answerable ones, for adversarial ones, and for the
    same questions asked of other users, who cannot know."""

    threshold: float
    recall_3: float
    recall_5: float
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


@dataclass(frozen=True, slots=True)
class Kept:
    """The set as memories: whose, until when each goes, and which turns a context stands for."""

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
            words = _best({each.id: each.lexical for each in found.candidates if each.lexical})
            meaning = _best(
                {
                    each.id: each.similarity
                    for each in found.candidates
                    if each.similarity is not None
                }
            )
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


# --- the set as memories -------------------------------------------------------------------------


@contextmanager
def archived(
    dataset: Dataset, *, scope_field: str, on_progress: Progress = nobody_watches
) -> Iterator[tuple[Kept, float]]:
    """The set's turns as memories of its users, and the seconds that took; removed afterwards."""
    workspace = get_or_create_workspace(slug=WORKSPACE)
    names = dict.fromkeys(_user(entry, scope_field) for entry in dataset.corpus)
    scopes = {}
    for name in names:
        scope = user_scope(workspace=workspace, user_id=f"{dataset.name}/{name}"[:255])
        assert scope is not None  # it has a name
        scopes[name] = scope
    started = perf_counter()
    try:
        kept = _archive(dataset, scopes, scope_field, on_progress)
        for scope in scopes.values():
            embed_waiting(scope=scope)
        yield kept, perf_counter() - started
    finally:
        users = [scope.user_id for scope in scopes.values()]
        Context.objects.filter(workspace=workspace, user_id__in=users).delete()


def _archive(
    dataset: Dataset, scopes: Mapping[str, UserScope], field: str, on_progress: Progress
) -> Kept:
    turns: dict[int, list[str]] = {}
    ends: dict[str, datetime] = {}
    before: dict[str, datetime] = {}
    for number, entry in enumerate(dataset.corpus, start=1):
        user = _user(entry, field)
        moment = moment_of(entry)
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
    return Kept(scopes=scopes, ends=ends, turns=turns, field=field)


def _user(entry: Entry, field: str) -> str:
    if field and field not in entry.fields:
        raise DatasetError(f"{entry.id} has no field {field!r}, which tells whose memory it is.")
    return str(entry.fields[field]) if field else "everybody"


def moment_of(entry: Entry) -> datetime:
    """When a turn was said, by its date or else its title. Raises DatasetError."""
    for said in (*(entry.fields.get(name) for name in DATE_FIELDS), entry.title):
        if not said:
            continue
        try:
            moment: datetime = dates.parse(str(said), fuzzy=True, default=EPOCH)
        except (ValueError, OverflowError) as error:
            raise DatasetError(f"{entry.id}: “{said}” is no date ({error}).") from error
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    raise DatasetError(
        f"{entry.id} has no date: a turn needs one in {', '.join(DATE_FIELDS)} or its title."
    )


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
    return tuple(
        CurvePoint(
            threshold=least,
            recall_3=_recall(dataset, answerable, kept, least, 3),
            recall_5=_recall(dataset, answerable, kept, least, 5),
            injected=_injected(answerable.values(), least),
            injected_adversarial=_injected(unanswerable, least),
            injected_of_others=_injected(others.values(), least),
        )
        for least in THRESHOLDS
    )


def _recall(
    dataset: Dataset,
    results: Mapping[str, MemoryResult],
    kept: Kept,
    least: float,
    depth: int,
) -> float:
    shares = []
    for query, result in results.items():
        wanted = {turn for turn, grade in dataset.judgements[query].items() if grade > 0}
        passed = [hit for hit in result.hits if hit.ranked.relevance >= least][:depth]
        found = {turn for hit in passed for turn in kept.turns[hit.context.pk]}
        shares.append(len(wanted & found) / len(wanted) if wanted else 0.0)
    return round(sum(shares) / len(shares), 4) if shares else 0.0


def _injected(results: Iterable[MemoryResult], least: float) -> float:
    counts = [
        min(INJECTED, sum(hit.ranked.relevance >= least for hit in result.hits))
        for result in results
    ]
    return round(sum(counts) / len(counts), 3) if counts else 0.0
