"""sql: a query over catalogued tables, checked against the catalogue. It is never run."""

import re
from collections.abc import Iterable

from documents.languages import detect_language
from inference.base import ChatMessage
from rag.answering import rewriting
from rag.answering.tokens import estimated_tokens
from rag.answering.wording import is_refusal, not_found_text
from rag.events import Cited
from rag.pipelines.engine import NodeCall, NodeResult, RunError
from rag.pipelines.kit import Bench, Kit, text_of
from rag.pipelines.nodes import prompts
from rag.pipelines.pieces import Verbatim
from rag.sql import prompt
from rag.sql.checking import Checked, check
from rag.sql.dialects import dialect_of, rules_of
from rag.sql.finding import Described, Finding, find_tables


def query(call: NodeCall, kit: Kit) -> NodeResult:
    """Find tables, have the SQL written, check it; what does not fit goes back to the model, which
    has `max_iter` attempts. Raises RunError with what is wrong with the last one."""
    bench = kit.bench(call)
    rules_of(call.node.options["dialect"])  # an unknown one fails before anything is asked
    question = _whole(bench)
    finding = _find(bench, question)
    refusal = not_found_text(detect_language(question))
    if not finding.tables:
        return _said(call, bench, refusal)
    checked = _write(bench, question, finding, refusal)
    if checked is None:
        return _said(call, bench, refusal)
    pieces = list(_answer(checked, finding))
    for piece in pieces:
        call.emit(piece if isinstance(piece, Cited) else Verbatim(piece))
    text = "".join(piece for piece in pieces if isinstance(piece, str))
    return NodeResult(text, sources=bench.sources)


def _whole(bench: Bench) -> str:
    history = bench.kit.history
    return rewriting.rewritten(bench.call.question, history) if history else bench.call.question


def _find(bench: Bench, question: str) -> Finding:
    options = bench.call.node.options
    with bench.call.ledger.use("tool", "find_tables", question) as use:
        finding = find_tables(bench.context, question, collection=options["collection"])
        names = (f"{each.database}: {each.table.name}" for each in finding.tables)
        use.output = "\n".join(names)
    return finding


def _write(bench: Bench, question: str, finding: Finding, refusal: str) -> Checked | None:
    """SQL that passes; None where the model says that the tables do not hold it."""
    node = bench.call.node
    messages = _messages(bench, question, finding, refusal)
    reason = ""
    for _ in range(node.max_iter):
        reply = text_of(bench.ask(messages))
        statement = prompt.statement_in(reply)
        if not statement and is_refusal(reply):
            return None
        reason = prompt.NO_SQL
        if statement:
            checked = check(statement, finding.databases, dialect=node.options["dialect"])
            if checked.passes:
                return checked
            reason = checked.reason
        again = prompt.AGAIN.format(reason=reason)
        messages += [ChatMessage("assistant", reply), ChatMessage("user", again)]
    raise RunError(
        "invalid_sql",
        f"The SQL that the model wrote does not fit the catalogue. {reason}",
        status=422,
        node=node.id,
    )


def _messages(bench: Bench, question: str, finding: Finding, refusal: str) -> list[ChatMessage]:
    marked, budget = prompts.Marked(), bench.kit.budget_tokens
    shown = prompt.fitting(finding.tables, budget=budget, count=estimated_tokens)
    node = bench.call.node
    dialect = node.options["dialect"] or dialect_of(shown[0].database)
    rules = marked.rules(prompt.rules(dialect=dialect, not_found=refusal), node.prompt)
    blocks = prompts.handed(marked, bench.call.inputs, budget=budget)
    blocks += [marked.text(*prompt.told(described)) for described in shown]
    asked = prompts.asked(question, blocks)
    return prompts.conversation(rules, bench.kit.history, asked, budget)


def _answer(checked: Checked, finding: Finding) -> Iterable[str | Cited]:
    """The statement, and the tables that it uses, each with where it is described."""
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", checked.sql)), default=0))
    pieces: list[str] = [f"{fence}sql\n{checked.sql}\n{fence}\n\nTables: "]
    yield pieces[0]
    for place, table in enumerate(checked.used):
        described = finding.described(table, checked.database)
        pieces.append(f"{', ' if place else ''}{table.name}")
        yield pieces[-1]
        if described is not None:
            yield from _citation(described, pieces)
    yield f". Checked against the catalogue of {checked.database}, and not run."


def _citation(described: Described, pieces: list[str]) -> Iterable[str | Cited]:
    passage = described.passage
    pieces.append(" ")
    yield pieces[-1]
    at = sum(map(len, pieces))
    pieces.append(f"[{passage.number}]")
    yield pieces[-1]
    yield Cited(passage, at, passage.start, passage.end, passage.text)


def _said(call: NodeCall, bench: Bench, text: str) -> NodeResult:
    call.emit(Verbatim(text))
    return NodeResult(text, sources=bench.sources)
