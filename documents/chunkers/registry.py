"""Chunkers by name. A new one is one file beside this one and one line here."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from documents.chunkers.auto import AutoChunker
from documents.chunkers.base import Chunker, ChunkerError, Embed, TokenCounter
from documents.chunkers.markdown import MarkdownChunker
from documents.chunkers.measure import Measure, measure_for
from documents.chunkers.recursive import RecursiveChunker
from documents.chunkers.splitting import Budget
from documents.chunkers.whole import WholeChunker

DEFAULT_MAX_TOKENS = 400
DEFAULT_OVERLAP = 50

#: Each is given the measure, the budget of a chunk, and what the model reads at once.
CHUNKERS: Mapping[str, Callable[[Measure, Budget, int], Chunker]] = MappingProxyType(
    {
        "auto": lambda measure, budget, _: AutoChunker(
            RecursiveChunker(measure, budget), MarkdownChunker(measure, budget)
        ),
        "markdown": lambda measure, budget, _: MarkdownChunker(measure, budget),
        "none": lambda measure, _, limit: WholeChunker(measure, limit),
        "recursive": lambda measure, budget, _: RecursiveChunker(measure, budget),
    }
)


def get_chunker(
    name: str,
    *,
    counter: TokenCounter,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    overlap: int = DEFAULT_OVERLAP,
    reserve: int = 0,
    embed: Embed | None = None,
) -> Chunker:
    """The chunker `name`, counting with `counter`.

    A chunk has at most `max_tokens` tokens and at most what the model reads less `reserve`,
    which is for the context that is embedded with it. `overlap` is cut to half of that.
    Raises `ChunkerError`.
    """
    make = CHUNKERS.get(name)
    if make is None:
        raise ChunkerError(f"There is no chunker “{name}”. Choose one of: {', '.join(CHUNKERS)}.")
    if not 0 <= overlap < max_tokens:
        raise ChunkerError(
            f"An overlap of {overlap} tokens does not fit chunks of {max_tokens}. "
            "Make overlap at least 0 and smaller than max_tokens."
        )
    limit = counter.max_tokens - reserve
    if limit < 1:
        raise ChunkerError(
            f"The context takes {reserve} of the {counter.max_tokens} tokens that the model "
            "reads and leaves none for the text. Shorten titles, or choose another model."
        )
    tokens = min(max_tokens, limit)
    return make(measure_for(counter), Budget(tokens, min(overlap, tokens // 2)), limit)
