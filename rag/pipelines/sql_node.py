"""The `sql` node: a query over catalogued tables, checked against the catalogue and never run."""

import re
from typing import cast

from documents.question_language import question_language
from documents.sql.catalogue import dialect_rules, guess_dialect
from documents.sql.checker import SqlCheck, check_sql
from documents.sql.replies import extract_sql
from inference.interfaces import ChatMessage
from memory.injection import estimated_tokens
from rag.answering.phrases import is_refusal, not_found_text
from rag.events import Citation
from rag.pipelines import nodes
from rag.pipelines.definition import SqlNode
from rag.pipelines.engine.scheduler import (
    NodeCall,
    NodeResult,
    RunError,
)
from rag.pipelines.runtime import NodeContext, RunResources, Verbatim, reply_text
from rag.sql import table_search
from rag.sql.table_search import TableSearchResult, find_tables


def answer_with_sql(call: NodeCall, resources: RunResources) -> NodeResult:
    """Find tables, have the model write SQL, check it; faults go back to the model, which has
    `max_iter` attempts. Raises RunError with the faults of the last one."""
    node_context, node = resources.node_context(call), cast("SqlNode", call.node)
    # An unknown dialect fails before the model is called.
    dialect_rules(node.dialect)
    question = nodes.standalone_question(node_context)
    with call.ledger.use("tool", "find_tables", question) as use:
        finding = find_tables(node_context.context, question, collection=node.collection)
        use.output = "\n".join(f"{each.database}: {each.table.name}" for each in finding.tables)
    refusal = not_found_text(question_language(question))
    if not finding.tables:
        return _emit_text(call, node_context, refusal)
    checked = _write_sql(node_context, question, finding, refusal)
    if checked is None:
        return _emit_text(call, node_context, refusal)
    pieces = _answer_pieces(checked, finding)
    for piece in pieces:
        call.emit(piece if isinstance(piece, Citation) else Verbatim(piece))
    text = "".join(piece for piece in pieces if isinstance(piece, str))
    return NodeResult(text, sources=node_context.sources)


def _write_sql(
    node_context: NodeContext, question: str, finding: TableSearchResult, refusal: str
) -> SqlCheck | None:
    """SQL that passes the check; None if the model says that the tables do not contain the
    answer."""
    node = cast("SqlNode", node_context.call.node)
    marker, budget = nodes.new_marker(), node_context.resources.budget_tokens
    fitting_tables = table_search.fit_tables(finding.tables, budget=budget, count=estimated_tokens)
    dialect = node.dialect or guess_dialect(fitting_tables[0].database)
    messages = nodes.build_messages(
        node_context,
        marker,
        table_search.sql_rules(dialect=dialect, not_found=refusal),
        node.prompt,
        blocks=[
            nodes.data_block(marker, *table_search.describe_table(each)) for each in fitting_tables
        ],
        question=question,
    )
    reason = ""
    for _ in range(node.max_iter):
        reply = reply_text(node_context.ask(messages))
        statement = extract_sql(reply)
        if not statement and is_refusal(reply):
            return None
        reason = table_search.NO_SQL_IN_REPLY
        if statement:
            checked = check_sql(statement, finding.databases, dialect=node.dialect)
            if checked.passes:
                return checked
            reason = checked.reason
        again = table_search.SQL_RETRY.format(reason=reason)
        messages += [ChatMessage("assistant", reply), ChatMessage("user", again)]
    raise RunError(
        "invalid_sql",
        f"The SQL that the model wrote does not fit the catalogue. {reason}",
        status=422,
        node=node.id,
    )


def _answer_pieces(checked: SqlCheck, finding: TableSearchResult) -> list[str | Citation]:
    """The statement and the tables it uses, each with a citation of its description."""
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", checked.sql)), default=0))
    text = f"{fence}sql\n{checked.sql}\n{fence}\n\nTables: "
    pieces: list[str | Citation] = [text]
    for place, table in enumerate(checked.used):
        described = finding.described(table, checked.database)
        name = f"{', ' if place else ''}{table.name}{' ' if described else ''}"
        text += name
        pieces.append(name)
        if described is not None:
            passage = described.passage
            mark = f"[{passage.number}]"
            pieces += [
                mark,
                Citation(passage, len(text), passage.start, passage.end, passage.text),
            ]
            text += mark
    return [*pieces, f". Checked against the catalogue of {checked.database}, and not run."]


def _emit_text(call: NodeCall, node_context: NodeContext, text: str) -> NodeResult:
    call.emit(Verbatim(text))
    return NodeResult(text, sources=node_context.sources)
