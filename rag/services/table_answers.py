"""Answers computed from tables: the value first, then a small table of the rows that it is from,
each cited. Begin with `read_tables`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from rag.answering.coreference import needs_history
from rag.answering.phrases import language_code
from rag.context import RagContext
from rag.events import Citation, Retrieval, Tables
from rag.services.questions import AnswerRequest
from rag.tools.tables import CitedRow, ask_visible_tables, cite_rows, reading_texts
from search.log import record_computed
from tables.asking import TableAnswer
from tables.models import Table
from tables.phrases import phrases_of
from tables.plan_tokens import plan_token
from tables.questions.plan import Plan
from tables.services import row_url
from tables.wording import WordedAnswer, displayed_columns, row_line, table_lines, worded


@dataclass(frozen=True, slots=True)
class ComputedAnswer:
    """An answer in `language`: `pieces` are its texts and citations in order, `cited` the rows that
    they cite."""

    language: str
    text: WordedAnswer
    cited: tuple[CitedRow, ...]
    pieces: tuple[str | Citation, ...]


@dataclass(frozen=True, slots=True)
class TablesRead:
    """What tables have to do with a question. With a `retrieval` its `pieces`, texts and citations
    in order, are the answer in `language`."""

    event: Tables = field(default_factory=Tables)
    retrieval: Retrieval | None = None
    language: str = ""
    pieces: tuple[str | Citation, ...] = ()


def read_tables(request: AnswerRequest) -> TablesRead:
    """The computed answer to a question that the tables surely answer, or to the reading that was
    chosen; readings where it is not sure. Neither where the question refers to earlier ones.
    Raises InvalidInput for a reading that is none, NotFound where its tables are gone."""
    asked, context = request.asked, request.context
    if not asked.reading and asked.history and needs_history(asked.message, asked.history):
        return TablesRead()
    began = perf_counter()
    answer = ask_visible_tables(
        asked.message,
        context=context,
        scope=request.scope,
        reading=asked.reading,
        with_model=request.chat is not None,
    )
    if answer.result is None:
        return TablesRead(_readings(answer, context, language=language_code(asked.language)))
    composed = compose_answer(answer, context=context, language=language_code(asked.language))
    if composed is None:
        return TablesRead()
    retrieval = Retrieval(
        query=asked.message,
        passages=tuple(dict.fromkeys(each.passage for each in composed.cited)),
        elapsed_ms=round((perf_counter() - began) * 1000, 1),
    )
    documents = _documents_of(answer.table_ids, context)
    if asked.logged:
        record_computed(
            question=asked.message,
            scope=request.scope,
            user=context.user,
            source="chat" if context.user else "command",
            tables=answer.table_ids,
            documents=[each.row.document_id for each in composed.cited] or documents,
            count=answer.result.count,
            milliseconds=retrieval.elapsed_ms,
        )
    computed = computed_data(answer, composed.text, composed.cited)
    event = Tables(computed | {"is_chosen": bool(asked.reading)}, documents=tuple(documents))
    return TablesRead(event, retrieval, composed.language, composed.pieces)


def compose_answer(
    answer: TableAnswer, *, context: RagContext, language: str = ""
) -> ComputedAnswer | None:
    """What tables answered in words, with its rows cited; None where they gave nothing to cite.
    `language` is by default the question's."""
    if answer.result is None:
        return None
    cited = cite_rows(answer, context=context)
    if not cited and answer.plan and (answer.result.count or answer.plan.measure != "count"):
        return None
    language = language or answer.language
    text = worded(answer, language=language, listed_rows=len(cited))
    return ComputedAnswer(language, text, tuple(cited), _pieces(answer, text, cited))


def computed_data(
    answer: TableAnswer, text: WordedAnswer, cited: Sequence[CitedRow]
) -> dict[str, Any]:
    """A computed answer as JSON: for programs, and for the card that pages show."""
    plan, result, written = answer.plan, answer.result, answer.written
    if result is None:
        raise ValueError("Only a computed answer has data.")
    columns = displayed_columns(answer)
    return {
        "value": result.value,
        "unit": result.unit,
        "worded": text.value,
        "measure": text.measure,
        "explanation": result.explanation,
        "count": result.count,
        "group_head": text.group_head,
        "period": plan.period if plan and plan.group is not None else None,
        "groups": [
            {"name": group.name, "value": group.value, "worded": shown, "count": group.count}
            for group, (_, shown) in zip(result.groups, text.groups, strict=False)
        ],
        "more_groups": len(result.groups) - len(text.groups),
        "columns": [result.columns[at] for at in columns],
        "rows": [
            {
                "number": each.passage.number,
                "cells": [each.row.cells[at] for at in columns],
                "document": each.row.document_id,
                "title": each.row.document_title,
                "location": each.row.location,
                "url": row_url(each.row),
            }
            for each in cited
        ],
        "reading": plan_token(plan) if plan else "",
        "sql": written.sql if written else "",
        "result_columns": list(written.columns) if written else [],
        "result_rows": [list(row) for row in written.rows] if written else [],
    }


def readings_data(readings: Sequence[Plan], *, language: str = "") -> list[Mapping[str, str]]:
    """Readings as JSON: what each computes, and what to send back to choose it."""
    texts = reading_texts(readings, language=language)
    return [
        {"text": text, "reading": plan_token(plan)}
        for text, plan in zip(texts, readings, strict=True)
    ]


def _documents_of(table_ids: Iterable[int], context: RagContext) -> list[int]:
    """The documents of these tables that the user may see."""
    tables = Table.objects.filter(pk__in=set(table_ids))
    if context.user is not None:
        tables = tables.visible_to(context.user)
    return sorted(set(tables.values_list("document_id", flat=True)))


def _readings(answer: TableAnswer, context: RagContext, *, language: str) -> Tables:
    if not answer.readings:
        return Tables()
    readings = readings_data(answer.readings, language=language)
    phrases = phrases_of(language or answer.readings[0].language)
    quoted = ", ".join(f"“{reading['text']}”" for reading in readings)
    text = phrases.did_you_mean.format(readings=quoted)
    if answer.unknown:
        words = ", ".join(f"“{word}”" for word in answer.unknown)
        text += f" {phrases.not_understood.format(words=words)}"
    documents = _documents_of((pk for plan in answer.readings for pk in plan.tables), context)
    return Tables(None, tuple(readings), answer.unknown, text, tuple(documents))


def _pieces(
    answer: TableAnswer, text: WordedAnswer, cited: Sequence[CitedRow]
) -> tuple[str | Citation, ...]:
    pieces: list[str | Citation] = [f"{text.head}\n"]
    length = len(text.head) + 1
    columns = displayed_columns(answer)
    if cited and answer.result:
        head = "\n".join(table_lines([*(answer.result.columns[at] for at in columns), ""]))
        pieces.append(f"\n{head}")
        length += len(head) + 1
    for each in cited:
        line = f"\n{row_line([each.row.cells[at] for at in columns])} "
        mark = f"[{each.passage.number}]"
        at = length + len(line)
        citation = Citation(each.passage, at, each.row.start, each.row.end, each.quote)
        pieces += [f"{line}{mark}", citation, " |"]
        length = at + len(mark) + 2
    if text.more:
        pieces.append(f"\n\n{text.more}")
    return tuple(pieces)
