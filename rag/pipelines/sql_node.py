"""The `sql` node: a query over catalogued tables, checked against the catalogue, and run where the
node says so and the caller may use a connection to the database."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from accounts.audit import Action, Kind, record_change
from common.rls import workspace_context
from common.text import pluralized
from documents.question_language import question_language
from documents.sql.catalogue import dialect_rules, guess_dialect
from documents.sql.checker import SqlCheck, check_sql
from documents.sql.replies import extract_sql
from inference.interfaces import ChatMessage
from memory.injection import estimated_tokens
from rag.answering.phrases import is_refusal, not_found_text
from rag.events import Citation
from rag.models import DatabaseConnection
from rag.pipelines import nodes
from rag.pipelines.definition import SqlNode
from rag.pipelines.engine.scheduler import (
    NodeCall,
    NodeResult,
    RunError,
)
from rag.pipelines.runtime import NodeContext, RunResources, Verbatim, reply_text
from rag.sql import table_search
from rag.sql.runnable import DIALECT, NotRunnable, runnable_sql
from rag.sql.running import QueryFailed, QueryResult, connection_for, run_query
from rag.sql.table_search import TableSearchResult, find_tables

#: How often a query that is run is written, the first time included.
MAX_RUN_ATTEMPTS = 3
#: Rows in the text of an answer.
MAX_SHOWN_ROWS = 20
#: What Markdown would read as its own.
_MARKDOWN = re.compile(r"([\\`*\[\]<>|&])")


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A query that passed its check, and what it gave where it was run on `connection`, a name."""

    checked: SqlCheck
    result: QueryResult | None = None
    connection: str = ""


def answer_with_sql(call: NodeCall, resources: RunResources) -> NodeResult:
    """Find tables, have the model write SQL, check it, and run it where that is allowed. Faults,
    and errors of the database, go back to the model, which has `max_iter` attempts. Raises RunError
    with those of the last one."""
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
    written = _write_sql(node_context, question, finding, refusal)
    if written is None:
        return _emit_text(call, node_context, refusal)
    pieces = _answer_pieces(written, finding)
    for piece in pieces:
        call.emit(piece if isinstance(piece, Citation) else Verbatim(piece))
    text = "".join(piece for piece in pieces if isinstance(piece, str))
    return NodeResult(
        text,
        is_computed=written.result is not None,
        value=_single_value(written.result),
        sources=node_context.sources,
    )


def _write_sql(
    node_context: NodeContext, question: str, finding: TableSearchResult, refusal: str
) -> CheckedStatement | None:
    """SQL that passes the check, and is run; None if the model says that the tables do not contain
    the answer."""
    node = cast("SqlNode", node_context.call.node)
    connections = _connections(node_context, finding)
    marker, budget = nodes.new_marker(), node_context.resources.budget_tokens
    fitting_tables = table_search.fit_tables(finding.tables, budget=budget, count=estimated_tokens)
    dialect = node.dialect or guess_dialect(fitting_tables[0].database)
    messages = nodes.build_messages(
        node_context,
        marker,
        table_search.sql_rules(dialect=dialect, not_found=refusal),
        table_search.RUN_RULES if connections else "",
        node.prompt,
        blocks=[
            nodes.data_block(marker, *table_search.describe_table(each)) for each in fitting_tables
        ],
        question=question,
    )
    reason = ""
    attempts = min(node.max_iter, MAX_RUN_ATTEMPTS) if connections else node.max_iter
    for _ in range(attempts):
        reply = reply_text(node_context.ask(messages))
        statement = extract_sql(reply)
        if not statement and is_refusal(reply):
            return None
        reason = table_search.NO_SQL_IN_REPLY
        if statement:
            checked = check_sql(statement, finding.databases, dialect=node.dialect)
            reason = checked.reason
            if checked.passes:
                try:
                    return _run(node_context, checked, connections)
                except (NotRunnable, QueryFailed) as error:
                    reason = str(error)
        # A message of the database may quote what its tables hold.
        told = nodes.data_block(marker, "What is wrong with it:", reason)
        again = table_search.SQL_RETRY.format(reason=told)
        messages += [ChatMessage("assistant", reply), ChatMessage("user", again)]
    raise RunError(
        "invalid_sql",
        f"The SQL that the model wrote does not fit the catalogue, or cannot be run. {reason}",
        status=422,
        node=node.id,
    )


#: By the collection and label of a database.
_Connections = Mapping[tuple[int | None, str], DatabaseConnection]


def _connections(node_context: NodeContext, finding: TableSearchResult) -> _Connections:
    """On which the caller may run queries over the databases that were found; none where the node
    runs nothing."""
    node, context = cast("SqlNode", node_context.call.node), node_context.context
    if node.run != "allowed" or (node.dialect or DIALECT) != DIALECT:
        return {}
    with workspace_context(context.workspace.pk, collections=context.key_collections):
        found = {
            (each.collection_id, each.database): connection_for(
                context, collection_id=each.collection_id, database=each.database
            )
            for each in finding.databases
        }
    return {key: connection for key, connection in found.items() if connection is not None}


def _run(
    node_context: NodeContext, checked: SqlCheck, connections: _Connections
) -> CheckedStatement:
    """What the query gives, where the caller may run it. Every run is in the history, without the
    query, whose values could be private. Raises NotRunnable and QueryFailed."""
    context = node_context.context
    connection = connections.get((checked.collection_id, checked.database))
    if connection is None:
        return CheckedStatement(checked)
    statement = runnable_sql(checked)
    context.check()
    with workspace_context(context.workspace.pk, collections=context.key_collections):
        values: dict[str, int | bool] = {"is_done": False}
        try:
            with node_context.call.ledger.use("tool", "run_query", statement) as use:
                result = run_query(connection, statement)
                use.output = pluralized(len(result.rows), "row")
            values = {
                "is_done": True,
                "rows": len(result.rows),
                "milliseconds": result.milliseconds,
            }
        finally:
            record_change(
                action=Action.QUERIED,
                kind=Kind.DATABASE,
                workspace_id=context.workspace.pk,
                object_id=connection.pk,
                collection_id=connection.collection_id,
                values=values,
                user=context.user,
            )
    return CheckedStatement(checked, result, connection.name)


def _single_value(result: QueryResult | None) -> float | str | None:
    """What a query gives whose answer is one cell."""
    if result is None or (len(result.rows), len(result.columns)) != (1, 1):
        return None
    cell = result.rows[0][0]
    return float(cell) if cell is not None and result.is_number[0] else cell


def _result_text(result: QueryResult) -> str:
    """The one value, or the first rows as a table in Markdown. Cells are shown as they are: nothing
    in them is a link, an image or HTML."""
    names = [_MARKDOWN.sub(r"\\\1", name) for name in result.columns]
    if not result.rows:
        return "No rows.\n\n"
    rows = [[_cell(cell) for cell in row] for row in result.rows[:MAX_SHOWN_ROWS]]
    if (len(result.rows), len(names)) == (1, 1):
        return f"**{rows[0][0] or '–'}** ({names[0]})\n\n"
    ruler = ["---:" if is_number else "---" for is_number in result.is_number]
    lines = [f"| {' | '.join(cells)} |" for cells in (names, ruler, *rows)]
    hidden = len(result.rows) - len(rows)
    if hidden or result.is_cut:
        more = "at least " if result.is_cut else ""
        lines.append(f"\n… and {more}{pluralized(max(hidden, 1), 'more row')}.")
    return "\n".join(lines) + "\n\n"


def _cell(text: str | None) -> str:
    return "" if text is None else _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _answer_pieces(written: CheckedStatement, finding: TableSearchResult) -> list[str | Citation]:
    """The result, the statement, and the tables it uses, each with a citation of its
    description."""
    checked = written.checked
    shown = _result_text(written.result) if written.result else ""
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", checked.sql)), default=0))
    text = f"{shown}{fence}sql\n{checked.sql}\n{fence}\n\nTables: "
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
    ran = f"run on {written.connection}" if written.result else "not run"
    return [*pieces, f". Checked against the catalogue of {checked.database}, and {ran}."]


def _emit_text(call: NodeCall, node_context: NodeContext, text: str) -> NodeResult:
    call.emit(Verbatim(text))
    return NodeResult(text, sources=node_context.sources)
