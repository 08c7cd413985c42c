"""Questions that tables answer, with their rows as passages: the tool `query_tables`, and
`ask_visible_tables` for answers of a chat."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from django.conf import settings

from accounts.rate_limits import TooManyRequests
from common.tools import nonempty, tools_by_name
from inference.interfaces import ChatModel, InferenceError
from model_servers.token_limits import require_tokens
from model_servers.usage import Purpose, metered_chat
from rag.context import RagContext
from rag.events import Passage
from rag.tools.document_tools import AnyCollection, format_location, prefix_lines, quote_name
from rag.tools.summaries import read_passages
from search.query import MAX_QUERY_CHARACTERS
from tables.asking import TableAnswer, ask_tables
from tables.execute import EvidenceRow
from tables.models import Table
from tables.questions.words import has_measure
from tables.wording import worded

logger = logging.getLogger(__name__)

#: Rows that an answer cites.
MAX_CITED_ROWS = 5


@dataclass(frozen=True, slots=True)
class CitedRow:
    """A row with the passage that has it; `start` and `end` are offsets in the document's text."""

    row: EvidenceRow
    passage: Passage
    start: int
    end: int

    @property
    def quote(self) -> str:
        return self.passage.text[self.start - self.passage.start : self.end - self.passage.start]


def ask_visible_tables(
    question: str,
    *,
    context: RagContext,
    collections: Sequence[str] = (),
    with_model: bool = True,
) -> TableAnswer:
    """Ask the tables in `collections`, or those of the context, that the user may see. Nothing is
    answered under a filter, which may leave some rows of a table out. `with_model` lets a chat
    model write SQL for what is not understood without one, where there is one and the key may ask
    it."""
    if not has_measure(question):
        return TableAnswer()
    scope = context.search_scope(collections)
    if scope.is_filtered:
        return TableAnswer()
    tables = Table.objects.filter(
        workspace=context.workspace, collection__in=scope.collection_ids
    ).current()
    if context.user is not None:
        tables = tables.visible_to(context.user)
    asks_model = with_model and settings.TABLES_WITH_MODEL and context.allows("chat")
    return ask_tables(
        question, tables, find_model=partial(_chat_model, context) if asks_model else None
    )


def _chat_model(context: RagContext) -> ChatModel | None:
    """The workspace's default chat model; None without one, and where its tokens are used up."""
    workspace, user = context.workspace.pk, context.user_id
    try:
        model = metered_chat(workspace_id=workspace, user_id=user, purpose=Purpose.TABLES)
        if model is not None:
            require_tokens(workspace_id=workspace, user_id=user)
    except (InferenceError, TooManyRequests) as error:
        logger.info("no chat model is asked about tables: %s", error)
        return None
    return model


def cite_rows(answer: TableAnswer, *, context: RagContext) -> list[CitedRow]:
    """The first rows of a computed answer, each in its numbered passage."""
    rows = [row for row in (answer.result.rows if answer.result else ()) if row.chunk_id]
    rows = rows[:MAX_CITED_ROWS]
    read = read_passages(list(dict.fromkeys(row.chunk_id or 0 for row in rows)))
    passages = {passage.chunk_id: passage for passage in context.found.add(read)}
    cited = []
    for row in rows:
        if passage := passages.get(row.chunk_id or 0):
            offset = max(row.start - passage.start, 0)
            line = passage.text[offset:].split("\n", 1)[0]
            cited.append(CitedRow(row, passage, row.start, row.start + len(line)))
    return cited


def query_tables(
    *,
    scope: RagContext,
    question: Annotated[
        str,
        nonempty(
            "A question in words, such as: How many bikes cost more than 4,000?",
            most=MAX_QUERY_CHARACTERS,
        ),
    ],
    collection: AnyCollection = "",
) -> str:
    """Count, sum, average, compare or rank over the rows of tables in documents (spreadsheets, CSV,
    tables of PDF, Word, HTML, Markdown). The result is computed exactly, and shown with the rows
    that it was computed from, each with the number [n] by which to cite it."""
    answer = ask_visible_tables(
        question, context=scope, collections=[collection] if collection else []
    )
    if answer.result is None:
        lines = ["Nothing was computed: the question is not understood as one of a table's."]
        lines += [f"Perhaps: {prefix_lines(plan.describe())}" for plan in answer.readings]
        if answer.unknown:
            unknown = ", ".join(map(quote_name, answer.unknown))
            lines.append(f"Not understood: {unknown}. Use words of the tables.")
        return "\n".join(lines)
    cited = cite_rows(answer, context=scope)
    text = worded(answer, language="en", shown_rows=len(cited))
    lines = [prefix_lines(text.head)]
    for each in cited:
        names = zip(answer.result.columns, each.row.cells, strict=False)
        cells = "; ".join(f"{name}: {cell}" for name, cell in names if cell)
        lines.append(f"\n{format_location(each.passage)}\n{prefix_lines(cells)}")
    return "\n".join([*lines, *([text.more] if text.more else [])])


TOOLS = tools_by_name("documents", (query_tables,), writing=set())
