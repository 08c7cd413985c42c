"""Questions to tables: planned, computed and put into words. Begin with `ask_tables`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from django.db.models import QuerySet
from django.utils import timezone

from common.errors import NotFound
from documents.embedders import embed_titles, scale_of
from documents.models import EmbeddingSpace
from documents.question_language import question_language
from inference.interfaces import InferenceError
from tables.execute import Result, compute, tables_gone
from tables.models import Table
from tables.questions.plan import Plan, Unsure
from tables.questions.planner import Similarity, plan_question
from tables.questions.words import has_measure
from tables.schemas import load_schemas

#: With more names none is compared by meaning: each takes a model some milliseconds.
MAX_COMPARED_NAMES = 64


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """The `result` of a sure `plan`; else `readings`, at most two ways to read the question, with
    the `unknown` words. Neither where the question is none of a table's."""

    plan: Plan | None = None
    result: Result | None = None
    readings: tuple[Plan, ...] = ()
    unknown: tuple[str, ...] = ()


def ask_tables(
    question: str,
    tables: QuerySet[Table] | Callable[[], QuerySet[Table]],
    *,
    today: date | None = None,
) -> TableAnswer:
    """Answer from `tables`, those that the reader may see, or what finds them. Without a word that
    asks for something computed, no statement is run."""
    if not has_measure(question):
        return TableAnswer()
    if callable(tables):
        tables = tables()
    schemas = load_schemas(tables)
    found = plan_question(
        question,
        schemas,
        today=today or timezone.localdate(),
        language=question_language(question),
        similarity=_similarity(tables),
    )
    if isinstance(found, Unsure):
        return TableAnswer(readings=found.readings, unknown=found.unknown)
    if found is None:
        return TableAnswer()
    return TableAnswer(found, compute(found, tables))


def compute_plan(plan: Plan, tables: QuerySet[Table]) -> TableAnswer:
    """The answer by a plan that was chosen among readings, of those of its tables that are in
    `tables`. Raises NotFound where they are not, or have other columns."""
    result = compute(plan, tables)
    if not result.explanation:
        raise NotFound(tables_gone())
    return TableAnswer(plan, result)


def _similarity(tables: QuerySet[Table]) -> Similarity:
    """Nearness of words by the embedding model of the tables' collections."""

    def compare(words: Sequence[str], names: Sequence[str]) -> Sequence[Sequence[float]]:
        unknown = [[0.0] * len(names)] * len(words)
        space = EmbeddingSpace.objects.filter(collections__in=tables.values("collection")).first()
        if space is None or len(names) > MAX_COMPARED_NAMES:
            return unknown
        try:
            if (scale := scale_of(space)) is None:
                return unknown
            vectors = embed_titles(space, [*words, *names])
        except InferenceError:
            return unknown
        nearness: list[list[float]] = scale.nearness(
            (vectors[: len(words)] @ vectors[len(words) :].T).astype("float64")
        ).tolist()
        return nearness

    return compare
