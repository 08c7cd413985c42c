"""Questions that tables answer, with their rows as passages: the tool `query_tables`, and
`ask_visible_tables` for answers of a chat."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from django.conf import settings
from django.db.models import QuerySet

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
from search.results import Scope
from search.whole_documents import whole_documents
from tables.asking import TableAnswer, ask_tables, compute_plan
from tables.execute import EvidenceRow
from tables.models import Table
from tables.plan_tokens import read_plan_token
from tables.questions.plan import Plan
from tables.wording import worded, worded_reading

logger = logging.getLogger(__name__)

#: Rows that an answer cites.
MAX_CITED_ROWS = 5


@dataclass(frozen=True, slots=True)
class CitedRow:
    """A row with the passage that has it."""

    row: EvidenceRow
    passage: Passage

    @property
    def quote(self) -> str:
        before = self.passage.start
        return self.passage.text[self.row.start - before : self.row.end - before]


def ask_visible_tables(
    question: str,
    *,
    context: RagContext,
    scope: Scope | None = None,
    collections: Sequence[str] = (),
    reading: str = "",
    with_model: bool = True,
) -> TableAnswer:
    """Ask the tables in `scope`, by default in `collections` or those of the context, that the user
    may see. `reading` is the token of a plan, which is computed in place of the question. Under a
    filter only tables of documents that it takes whole count, and none where it leaves out single
    passages. `with_model` lets a chat model write SQL for what is not understood without one, where
    there is one and the key may ask it. Raises InvalidInput for a token that is none, NotFound
    where its tables are gone."""
    scope = scope or context.search_scope(collections)

    def visible_tables() -> QuerySet[Table]:
        found = Table.objects.filter(
            workspace=context.workspace, collection__in=scope.collection_ids
        ).current()
        if context.user is not None:
            found = found.visible_to(context.user)
        if scope.is_filtered:
            documents = found.values_list("document_id", flat=True).distinct()
            found = found.filter(document__in=whole_documents(scope, documents) or ())
        return found

    if reading:
        return compute_plan(read_plan_token(reading), visible_tables())
    asks_model = with_model and settings.TABLES_WITH_MODEL and context.allows("chat")
    find_model = partial(_chat_model, context) if asks_model else None
    return ask_tables(question, visible_tables, find_model=find_model)


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
    return [
        CitedRow(row, passages[row.chunk_id])
        for row in rows
        if row.chunk_id is not None and row.chunk_id in passages
    ]


def reading_texts(readings: Sequence[Plan], *, language: str = "") -> list[str]:
    """What each reading computes, in `language` or that of the question; with the name of a
    document where they would read the same."""
    texts = [worded_reading(plan, language=language) for plan in readings]
    if len(set(texts)) == len(texts):
        return texts
    firsts = Table.objects.filter(pk__in=[plan.tables[0] for plan in readings])
    titles = {table.pk: table.document.display_title for table in firsts.select_related("document")}
    return [
        f"{text} ({titles.get(plan.tables[0], '')})"
        for text, plan in zip(texts, readings, strict=True)
    ]


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
        texts = reading_texts(answer.readings, language="en")
        lines += [f"Perhaps: {prefix_lines(text)}" for text in texts]
        if answer.unknown:
            unknown = ", ".join(map(quote_name, answer.unknown))
            lines.append(f"Not understood: {unknown}. Use words of the tables.")
        return "\n".join(lines)
    cited = cite_rows(answer, context=scope)
    text = worded(answer, language="en", listed_rows=len(cited))
    lines = [prefix_lines(text.head)]
    for each in cited:
        names = zip(answer.result.columns, each.row.cells, strict=False)
        cells = "; ".join(f"{name}: {cell}" for name, cell in names if cell)
        lines.append(f"\n{format_location(each.passage)}\n{prefix_lines(cells)}")
    return "\n".join([*lines, *([text.more] if text.more else [])])


TOOLS = tools_by_name("documents", (query_tables,), writing=set())
