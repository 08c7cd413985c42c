"""Answers computed from tables: the value first, then the rows that it was computed from, each
cited. Begin with `answer_from_tables`."""

from dataclasses import dataclass
from time import perf_counter

from rag.context import RagContext
from rag.events import Citation, Retrieval
from rag.tools.tables import ask_visible_tables, cite_rows
from tables.wording import worded


@dataclass(frozen=True, slots=True)
class ComputedAnswer:
    """An answer in `language`; `pieces` are its texts and citations in order."""

    retrieval: Retrieval
    language: str
    pieces: tuple[str | Citation, ...]


def answer_from_tables(
    question: str, *, context: RagContext, language: str = "", with_model: bool = False
) -> ComputedAnswer | None:
    """The computed answer to a question that the tables surely answer, else None. `language` is
    that of the answer, by default the question's. `with_model` lets a chat model write SQL, whose
    result may have no rows to cite."""
    began = perf_counter()
    answer = ask_visible_tables(question, context=context, with_model=with_model)
    if answer.result is None:
        return None
    cited = cite_rows(answer, context=context)
    if not cited and answer.written is None:
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
    return ComputedAnswer(retrieval, language or answer.language, tuple(pieces))
