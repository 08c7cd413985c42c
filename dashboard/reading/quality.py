"""How good the answers of collections are, now and before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from django.db.models import Count, Max, Q

from accounts.models import Workspace
from documents.models import Collection
from search.models import EvaluatedQuestion, Evaluation, Judgement

#: Evaluations that a curve is drawn through.
DRAWN = 60
#: Below that a change is none.
SAME = 0.005

Change = Literal["better", "worse", "same", "new", "unknown"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure, 0..1, now and before; None where there was nothing to compare with."""

    name: str
    means: str
    now: float
    before: float | None

    @property
    def change(self) -> float | None:
        """By how much it rose; None without a before."""
        return None if self.before is None else round(self.now - self.before, 4)

    @property
    def tone(self) -> str:
        """Whether that is good."""
        if self.change is None or abs(self.change) < SAME:
            return "same"
        return "good" if self.change > 0 else "bad"


@dataclass(frozen=True, slots=True)
class Judged:
    """A collection, what was judged of it, and its evaluations: `last` has figures, `latest` may
    wait, run or have failed. `history` are those with figures, oldest first."""

    collection: Collection
    judgements: int
    questions: int
    last: Evaluation | None
    latest: Evaluation | None
    history: Sequence[Evaluation]

    @property
    def is_open(self) -> bool:
        """Whether something will change by itself soon."""
        return self.latest is not None and not self.latest.is_over

    @property
    def is_behind(self) -> bool:
        """Whether it was judged since it was last measured."""
        return self.last is not None and self.last.judgements != self.judgements


@dataclass(frozen=True, slots=True)
class Compared:
    """A question of the golden set, now and before."""

    sha256: str
    question: str
    now: EvaluatedQuestion
    before: EvaluatedQuestion | None
    is_comparable: bool = True

    @property
    def gain(self) -> float:
        """By how much its nDCG rose; 0 for a new question."""
        return round(self.now.ndcg - self.before.ndcg, 4) if self.before else 0.0

    @property
    def change(self) -> Change:
        """Whether it got better, beyond what is hardly visible. `unknown` where there is nothing
        before to compare with."""
        if not self.is_comparable:
            return "unknown"
        if self.before is None:
            return "new"
        if abs(self.gain) < SAME:
            return "same"
        return "better" if self.gain > 0 else "worse"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two evaluations of a collection: what both asked is compared, and nothing else."""

    now: Evaluation
    before: Evaluation | None
    measures: tuple[Measure, ...]
    questions: tuple[Compared, ...]
    common: int

    def count(self, change: Change) -> int:
        """Questions that changed like that."""
        return sum(each.change == change for each in self.questions)


def judged_collections(*, workspace: Workspace, user: Any) -> list[Judged]:
    """Those with judgements, or an evaluation of former ones, by name."""
    visible = Collection.objects.visible_to(user).filter(workspace=workspace)
    judged = {
        row["collection"]: row
        for row in Judgement.objects.filter(workspace=workspace)
        .order_by()
        .values("collection")
        .annotate(
            judgements=Count("id"),
            questions=Count("question_sha256", distinct=True, filter=Q(grade__gt=0)),
            newest=Max("updated_at"),
        )
    }
    measured = Evaluation.objects.filter(workspace=workspace).order_by().values("collection")
    collections = visible.filter(Q(pk__in=judged) | Q(pk__in=measured)).order_by("name", "id")
    return [_judged(each, judged.get(each.pk, {})) for each in collections]


def judged_collection(collection: Collection) -> Judged:
    """The same of one collection, whether it was judged or not."""
    rows = Judgement.objects.filter(collection=collection)
    counts = rows.order_by().aggregate(
        judgements=Count("id"),
        questions=Count("question_sha256", distinct=True, filter=Q(grade__gt=0)),
    )
    return _judged(collection, counts)


def _judged(collection: Collection, counts: Mapping[str, Any]) -> Judged:
    rows = Evaluation.objects.filter(collection=collection).order_by("-id")
    history = list(rows.done()[:DRAWN])[::-1]
    return Judged(
        collection=collection,
        judgements=counts.get("judgements", 0),
        questions=counts.get("questions", 0),
        last=history[-1] if history else None,
        latest=rows.first(),
        history=history,
    )


def compare(judged: Judged, *, against: int | None = None) -> Comparison | None:
    """The last evaluation beside `against`, an earlier one of the same collection; by default the
    last one that had other figures. None where nothing was measured yet."""
    now = judged.last
    if now is None:
        return None
    before = _before(judged, now, against)
    rows = {row.question_sha256: row for row in now.rows.all()}
    earlier = {row.question_sha256: row for row in before.rows.all()} if before else {}
    texts = dict(
        Judgement.objects.filter(collection=judged.collection, question_sha256__in=rows)
        .order_by()
        .values_list("question_sha256")
        .annotate(Max("question"))
    )
    questions = tuple(
        Compared(sha256, texts.get(sha256, ""), row, earlier.get(sha256), bool(earlier))
        for sha256, row in rows.items()
    )
    both = [each for each in questions if each.before is not None]
    return Comparison(now, before, _measures(now, before, both), questions, len(both))


def _before(judged: Judged, now: Evaluation, against: int | None) -> Evaluation | None:
    earlier = [row for row in judged.history if row.pk < now.pk]
    if against is not None:
        return next((row for row in earlier if row.pk == against), None)
    figures = _figures(now)
    others = [row for row in earlier if _figures(row) != figures]
    candidates = others or earlier
    return candidates[-1] if candidates else None


def _figures(row: Evaluation) -> tuple[Any, ...]:
    return (row.ndcg, row.recall, row.mrr, row.questions)


def _measures(
    now: Evaluation, before: Evaluation | None, both: Sequence[Compared]
) -> tuple[Measure, ...]:
    """Means of all questions now; the change is that of the questions that both asked, so that new
    ones do not look like a change of the search."""
    named = (
        ("nDCG@10", "good answers stand high", now.ndcg, "ndcg"),
        ("Recall@10", "good answers among the first ten", now.recall, "recall"),
        ("MRR", "how high the first good answer stands", now.mrr, "reciprocal_rank"),
    )
    return tuple(
        Measure(
            name,
            means,
            value or 0.0,
            None if before is None else (value or 0.0) - _risen(now, before, both, field),
        )
        for name, means, value, field in named
    )


def _risen(now: Evaluation, before: Evaluation, both: Sequence[Compared], field: str) -> float:
    if not both:  # its single questions are not kept any more
        mean = "mrr" if field == "reciprocal_rank" else field
        return float((getattr(now, mean) or 0.0) - (getattr(before, mean) or 0.0))
    return fmean(
        getattr(each.now, field) - getattr(each.before, field)
        for each in both
        if each.before is not None
    )
