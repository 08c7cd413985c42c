"""Source code: functions and classes stay whole where they fit."""

from dataclasses import dataclass

from documents.chunkers.base import Span
from documents.chunkers.boundaries import HEADING, WORD, keep_blocks_whole, natural_worth
from documents.chunkers.measure import Measure
from documents.chunkers.splitting import Budget, split_document
from documents.chunkers.windows import Window
from documents.code_languages import LANGUAGES
from documents.parsers import ParsedDocument
from documents.parsers.code_blocks import code_blocks

#: An outermost block is a better place than one inside it, and that better than those in there.
_OUTER, _OUTER_STEP = 2, 0.15

_LANGUAGES = {language.media_type: language.name for language in LANGUAGES}


def is_code(document: ParsedDocument) -> bool:
    """Whether it is source code, or settings, in a language that is known here."""
    return document.media_type in _LANGUAGES


@dataclass(frozen=True, slots=True)
class CodeChunker:
    """Cuts before classes and functions, else at blank lines, else between lines.

    Text that is no source code is cut between lines too.
    """

    measure: Measure
    budget: Budget

    def split(self, document: ParsedDocument) -> list[Span]:
        blocks = code_blocks(document.text, _LANGUAGES.get(document.media_type, ""))
        return split_document(
            document,
            measure=self.measure,
            budget=self.budget,
            blocks=[(block.start, block.end) for block in blocks],
            weigh=_weigh,
        )


def _weigh(window: Window, budget: int) -> list[float]:
    text, atoms = window.text, window.atoms
    worth = natural_worth(text, atoms)
    if not worth:
        return worth
    # Nothing is to fit the first time: so everything is cut between its lines.
    keep_blocks_whole(worth, text, atoms, [(atoms.starts[0], atoms.ends[-1])], budget=0)
    keep_blocks_whole(worth, text, atoms, window.blocks, budget=budget)
    around: list[int] = []
    for start, end in window.blocks:
        around = [outer for outer in around if outer > start]
        first = atoms.at(start)
        if worth[first] > WORD:
            # The head of a class goes with its first method rather than with what is before it.
            worth[first] = HEADING + _OUTER_STEP * max(0, _OUTER - len(around))
        around.append(end)
    return worth
