"""Retrieval quality of collections, now and before, and how often answers are right. Begin with
`judged_collections`, `compare` and `answer_quality`."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import fmean
from typing import Any, Literal

from django.db.models import Count, Max, Q
from django.utils import timezone
from django.utils.translation import gettext

from accounts.models import Workspace
from documents.models import Collection
from search.judgements import question_key
from search.log import MAX_SEARCHES
from search.models import EvaluatedQuestion, Evaluation, Judgement, SearchLog

#: Evaluations that a curve shows at most.
MAX_HISTORY = 60
#: Smaller changes count as no change.
MIN_CHANGE = 0.005

JUDGEMENT_COUNTS = {
    "judgements": Count("id"),
    "questions": Count("question_sha256", distinct=True, filter=Q(grade__gt=0)),
}

ChangeKind = Literal["better", "worse", "same", "new", "unknown"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric, 0..1, and how much it changed; None without an earlier evaluation."""

    name: str
    means: str
    now: float
    change: float | None

    @property
    def tone(self) -> str:
        """Its colour: good, bad or same."""
        if self.change is None or abs(self.change) < MIN_CHANGE:
            return "same"
        return "good" if self.change > 0 else "bad"


@dataclass(frozen=True, slots=True)
class JudgedCollection:
    """A collection, its judgements, and its evaluations: `last` has figures, `latest` may be
    waiting, running or failed. `history` are those with figures, oldest first."""

    collection: Collection
    judgements: int
    questions: int
    last: Evaluation | None
    latest: Evaluation | None
    history: Sequence[Evaluation]

    @property
    def is_open(self) -> bool:
        """Whether an evaluation is waiting or running."""
        return self.latest is not None and not self.latest.is_over


@dataclass(frozen=True, slots=True)
class ComparedQuestion:
    """A question of the golden set, now and before."""

    sha256: str
    question: str
    now: EvaluatedQuestion
    before: EvaluatedQuestion | None
    is_comparable: bool = True

    @property
    def gain(self) -> float:
        """The change of its nDCG; 0 for a new question."""
        return round(self.now.ndcg - self.before.ndcg, 4) if self.before else 0.0

    @property
    def change(self) -> ChangeKind:
        """Whether it improved by more than MIN_CHANGE. `unknown` without anything to compare
        with."""
        if not self.is_comparable:
            return "unknown"
        if self.before is None:
            return "new"
        if abs(self.gain) < MIN_CHANGE:
            return "same"
        return "better" if self.gain > 0 else "worse"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two evaluations of a collection; only questions in both are compared."""

    now: Evaluation
    before: Evaluation | None
    measures: tuple[Measure, ...]
    questions: tuple[ComparedQuestion, ...]
    common: int

    def count(self, change: ChangeKind) -> int:
        """Number of questions with this change."""
        return sum(each.change == change for each in self.questions)


def judged_collections(*, workspace: Workspace, user: Any) -> list[JudgedCollection]:
    """Collections with judgements or an evaluation, ordered by name."""
    visible = Collection.objects.visible_to(user).filter(workspace=workspace)
    judged = {
        row["collection"]: row
        for row in Judgement.objects.filter(workspace=workspace)
        .order_by()
        .values("collection")
        .annotate(**JUDGEMENT_COUNTS)
    }
    measured = Evaluation.objects.filter(workspace=workspace).order_by().values("collection")
    collections = visible.filter(Q(pk__in=judged) | Q(pk__in=measured)).order_by("name", "id")
    return [_judged(each, judged.get(each.pk, {})) for each in collections]


def judged_collection(collection: Collection) -> JudgedCollection:
    """One collection, whether it has judgements or not."""
    rows = Judgement.objects.filter(collection=collection)
    return _judged(collection, rows.order_by().aggregate(**JUDGEMENT_COUNTS))


def _judged(collection: Collection, counts: Mapping[str, Any]) -> JudgedCollection:
    rows = Evaluation.objects.filter(collection=collection).order_by("-id")
    history = list(rows.done()[:MAX_HISTORY])[::-1]
    return JudgedCollection(
        collection=collection,
        judgements=counts.get("judgements", 0),
        questions=counts.get("questions", 0),
        last=history[-1] if history else None,
        latest=rows.first(),
        history=history,
    )


def compare(judged: JudgedCollection, *, against: int | None = None) -> Comparison | None:
    """The last evaluation compared with `against`, an earlier one of the same collection; by
    default the last one with other figures. None if nothing was measured yet."""
    now = judged.last
    if now is None:
        return None
    earlier_ones = [row for row in judged.history if row.pk < now.pk]
    if against is None:
        others = [row for row in earlier_ones if _figures(row) != _figures(now)]
        before = next(reversed(others or earlier_ones), None)
    else:
        before = next((row for row in earlier_ones if row.pk == against), None)
    rows = {row.question_sha256: row for row in now.rows.all()}
    earlier = {row.question_sha256: row for row in before.rows.all()} if before else {}
    texts = dict(
        Judgement.objects.filter(collection=judged.collection, question_sha256__in=rows)
        .order_by()
        .values_list("question_sha256")
        .annotate(Max("question"))
    )
    questions = tuple(
        ComparedQuestion(sha256, texts.get(sha256, ""), row, earlier.get(sha256), bool(earlier))
        for sha256, row in rows.items()
    )
    both = [each for each in questions if each.before is not None]
    # Means of all questions now; the change is computed on the questions in both, so that new ones
    # do not look like a change of the search.
    named = (
        ("nDCG@10", gettext("rank of good answers"), now.ndcg, "ndcg"),
        ("Recall@10", gettext("good answers among the first ten"), now.recall, "recall"),
        ("MRR", gettext("rank of the first good answer"), now.mrr, "reciprocal_rank"),
    )
    measures = tuple(
        Measure(
            name,
            means,
            value or 0.0,
            None if before is None else round(_mean_gain(now, before, both, field), 4),
        )
        for name, means, value, field in named
    )
    return Comparison(now, before, measures, questions, len(both))


#: Days of the search log in which answers are counted.
ANSWER_DAYS = 30


@dataclass(frozen=True, slots=True)
class DegreeQuality:
    """Answers of one degree of confidence: how many there were, how many of them people's ratings
    tell something about, and how many of these were right."""

    degree: SearchLog.Confidence
    answers: int
    rated: int
    right: int

    @property
    def share(self) -> float | None:
        """The share (0..1) of the rated ones that was right; None without any."""
        return self.right / self.rated if self.rated else None


def answer_quality(*, workspace: Workspace) -> list[DegreeQuality]:
    """Answers of the last ANSWER_DAYS by degree, of the newest MAX_SEARCHES; empty without any.

    An answer is rated if people rated its first document for the same question, and right if they
    rated it as good. A refusal is rated if they rated any document for the question, and right if
    none of them as good.
    """
    since = timezone.now() - timedelta(days=ANSWER_DAYS)
    log = SearchLog.objects.filter(workspace=workspace, created_at__gte=since)
    rows = log.exclude(confidence=None).order_by("-id")
    grades: dict[str, dict[int, int]] = defaultdict(dict)
    for sha256, document, grade in (
        Judgement.objects.filter(workspace=workspace)
        .order_by()
        .values_list("question_sha256", "document", "grade")
    ):
        grades[sha256][document] = grade
    counted = {degree: [0, 0, 0] for degree in SearchLog.Confidence}
    for question, degree, documents in rows.values_list("query", "confidence", "documents")[
        :MAX_SEARCHES
    ]:
        counts = counted[SearchLog.Confidence(str(degree))]
        counts[0] += 1
        rated = grades.get(question_key(question), {}) if grades else {}
        if degree == SearchLog.Confidence.NONE and rated:
            counts[1] += 1
            counts[2] += not any(rated.values())
        elif degree != SearchLog.Confidence.NONE and documents and documents[0] in rated:
            counts[1] += 1
            counts[2] += rated[documents[0]] > 0
    qualities = [DegreeQuality(degree, *counts) for degree, counts in counted.items()]
    return qualities if any(each.answers for each in qualities) else []


def _figures(row: Evaluation) -> tuple[Any, ...]:
    return (row.ndcg, row.recall, row.mrr, row.questions)


def _mean_gain(
    now: Evaluation, before: Evaluation, both: Sequence[ComparedQuestion], field: str
) -> float:
    if not both:  # results of its single questions were pruned
        mean = "mrr" if field == "reciprocal_rank" else field
        return float((getattr(now, mean) or 0.0) - (getattr(before, mean) or 0.0))
    return fmean(
        getattr(each.now, field) - getattr(each.before, field)
        for each in both
        if each.before is not None
    )
