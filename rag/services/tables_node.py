"""The `tables` node: an answer computed from tables of documents, with its rows cited."""

import json
from typing import cast

from common.rls import workspace_context
from documents.question_language import question_language
from rag.answering.phrases import language_code, not_found_text, say
from rag.events import Citation
from rag.pipelines import nodes
from rag.pipelines.definition import TablesNode
from rag.pipelines.engine.scheduler import NodeCall, NodeResult
from rag.pipelines.runtime import NodeContext, RunResources, Verbatim
from rag.services.table_answers import ComputedAnswer, compose_answer
from rag.tools.tables import ask_visible_tables, reading_texts
from search.query import MAX_QUERY_CHARACTERS
from tables.asking import TableAnswer


def answer_with_tables(call: NodeCall, resources: RunResources) -> NodeResult:
    """Ask the tables that the user may see. Where they give no answer, the next steps are handed
    nothing (as JSON: the readings), and a run that ends here says what may be meant."""
    node_context, node = resources.node_context(call), cast("TablesNode", call.node)
    context = node_context.context
    question = _question(node_context)
    with (
        call.ledger.use("tool", "query_tables", question) as use,
        workspace_context(context.workspace.pk, collections=context.key_collections),
    ):
        collections = [node.collection] if node.collection else []
        answer = ask_visible_tables(question, context=context, collections=collections)
        language = language_code(resources.language)
        computed = compose_answer(answer, context=context, language=language)
        pieces = computed.pieces if computed else (_refusal(answer, question, language),)
        text = use.output = "".join(piece for piece in pieces if isinstance(piece, str))
    for piece in pieces:
        call.emit(piece if isinstance(piece, Citation) else Verbatim(piece))
    output = text if computed else ""
    return NodeResult(
        _as_json(answer, computed, output) if node.outputs == "json" else output,
        is_computed=computed is not None,
        value=answer.result.value if computed and answer.result else None,
        sources=node_context.sources,
    )


def _question(node_context: NodeContext) -> str:
    """What the node asks, on one line. A longer text is no question to a table."""
    node, given = cast("TablesNode", node_context.call.node), ""
    if node.asks == "input":
        given = " ".join(nodes.join_inputs(node_context.call).split())
    question = given or nodes.standalone_question(node_context)
    return question if len(question) <= MAX_QUERY_CHARACTERS else ""


def _refusal(answer: TableAnswer, question: str, language: str) -> str:
    """That nothing was computed, and how the question may be meant."""
    spoken = language or question_language(question)
    text = not_found_text(spoken)
    if answer.readings:
        listed = "\n".join(f"- {text}" for text in reading_texts(answer.readings, language=spoken))
        text += f"\n\n{say('readings', spoken)}\n\n{listed}"
    return text


def _as_json(answer: TableAnswer, computed: ComputedAnswer | None, text: str) -> str:
    """The answer under the names of the API. A row has the number by which to cite it."""
    result = answer.result if computed else None
    rows = [
        {
            "citation": each.passage.number,
            "document": each.row.document_title,
            "location": each.row.location,
            "cells": list(each.row.cells),
        }
        for each in (computed.cited if computed else ())
    ]
    return json.dumps(
        {
            "is_computed": computed is not None,
            "text": text,
            "value": result.value if result else None,
            "unit": result.unit if result else "",
            "count": result.count if result else 0,
            "explanation": result.explanation if result else "",
            "columns": list(result.columns) if result else [],
            "groups": [
                {"name": group.name, "value": group.value, "count": group.count}
                for group in (result.groups if result else ())
            ],
            "rows": rows,
            "readings": reading_texts(answer.readings),
            "unknown": list(answer.unknown),
        },
        ensure_ascii=False,
    )
