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
from inference.interfaces import ChatModel, InferenceError
from tables.execute import Result, compute, tables_gone
from tables.models import Table
from tables.questions.plan import Plan, Unsure
from tables.questions.planner import Similarity, names_tables, plan_question
from tables.questions.words import asks_to_compute, has_measure
from tables.schemas import load_schemas
from tables.sql.results import WrittenQuery

#: With more names none is compared by meaning: each takes a model some milliseconds.
MAX_COMPARED_NAMES = 64


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """The `result` of a sure `plan`, or of the query that a language model has `written`; else
    `readings`, at most two ways to read the question, with the `unknown` words. Neither where the
    question is none of a table's."""

    plan: Plan | None = None
    result: Result | None = None
    readings: tuple[Plan, ...] = ()
    unknown: tuple[str, ...] = ()
    written: WrittenQuery | None = None

    @property
    def table_ids(self) -> tuple[int, ...]:
        """The tables that it was computed from."""
        return self.written.table_ids if self.written else self.plan.tables if self.plan else ()

    @property
    def language(self) -> str:
        """Of the question; empty where nothing was computed."""
        source = self.written or self.plan
        return source.language if source else ""


def ask_tables(
    question: str,
    tables: QuerySet[Table] | Callable[[], QuerySet[Table]],
    *,
    today: date | None = None,
    find_model: Callable[[], ChatModel | None] | None = None,
) -> TableAnswer:
    """Answer from `tables`, those that the reader may see, or what finds them. Without a word that
    asks for something computed, no statement is run. Where the grammar is not sure, or does not
    compute what is asked of names of the tables, the model that `find_model` gives writes a
    query."""
    if not has_measure(question):
        return TableAnswer()
    if callable(tables):
        tables = tables()
    schemas = load_schemas(tables)
    today = today or timezone.localdate()
    language = question_language(question)
    found = plan_question(
        question, schemas, today=today, language=language, similarity=_similarity(tables)
    )
    if found is not None and not isinstance(found, Unsure):
        return TableAnswer(found, compute(found, tables))
    is_for_model = find_model is not None and (
        isinstance(found, Unsure)
        or (
            asks_to_compute(question)
            and names_tables(question, schemas, today=today, language=language)
        )
    )
    if is_for_model and find_model is not None and (model := find_model()) is not None:
        from tables.sql.writer import ask_model  # noqa: PLC0415 (sqlglot is slow to load)

        answered = ask_model(question, schemas, tables, model=model, today=today, language=language)
        if answered is not None:
            written, result = answered
            return TableAnswer(result=result, written=written)
    if found is None:
        return TableAnswer()
    return TableAnswer(readings=found.readings, unknown=found.unknown)


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
