"""Answers computed from tables: the value first, then the rows that it was computed from, each
cited. Begin with `answer_from_tables`; `compose_answer` is for who has asked the tables already."""

from dataclasses import dataclass
from time import perf_counter

from rag.context import RagContext
from rag.events import Citation, Retrieval
from rag.tools.tables import CitedRow, ask_visible_tables, cite_rows
from tables.asking import TableAnswer
from tables.wording import worded


@dataclass(frozen=True, slots=True)
class ComputedAnswer:
    """An answer in `language`; `pieces` are its texts and citations in order, `cited` the rows that
    they cite."""

    retrieval: Retrieval
    language: str
    pieces: tuple[str | Citation, ...]
    cited: tuple[CitedRow, ...]


def answer_from_tables(
    question: str, *, context: RagContext, language: str = ""
) -> ComputedAnswer | None:
    """The computed answer to a question that the tables surely answer, else None. `language` is
    that of the answer, by default the question's."""
    began = perf_counter()
    answer = ask_visible_tables(question, context=context)
    return compose_answer(answer, question, context=context, language=language, began=began)


def compose_answer(
    answer: TableAnswer,
    question: str,
    *,
    context: RagContext,
    language: str = "",
    began: float | None = None,
) -> ComputedAnswer | None:
    """What tables answered with its rows cited; None where they gave none. `began` is when they
    were asked, by `perf_counter`, by default now."""
    began = perf_counter() if began is None else began
    if answer.plan is None or answer.result is None or not answer.result.rows:
        return None
    cited = cite_rows(answer, context=context)
    if not cited:
        return None
    text = worded(answer, language=language, shown_rows=len(cited))
    pieces: list[str | Citation] = [f"{text.head}\n"]
    length = len(pieces[0])  # type: ignore[arg-type]
    for each in cited:
        cells = " · ".join(cell for cell in each.row.cells if cell)
        line, mark = f"\n- {cells} ", f"[{each.passage.number}]"
        at = length + len(line)
        pieces += [f"{line}{mark}", Citation(each.passage, at, each.start, each.end, each.quote)]
        length = at + len(mark)
    if text.more:
        pieces.append(f"\n\n{text.more}")
    retrieval = Retrieval(
        query=question,
        passages=tuple(dict.fromkeys(each.passage for each in cited)),
        elapsed_ms=round((perf_counter() - began) * 1000, 1),
    )
    spoken = language or answer.plan.language
    return ComputedAnswer(retrieval, spoken, tuple(pieces), tuple(cited))
