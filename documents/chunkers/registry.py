"""Chunkers by name. A new one is one file beside this one and one entry here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from documents.chunkers import options
from documents.chunkers.auto import AutoChunker
from documents.chunkers.base import Chunker, ChunkerError, Embed, TokenCounter
from documents.chunkers.code import CodeChunker
from documents.chunkers.fixed import FixedChunker
from documents.chunkers.markdown import MarkdownChunker
from documents.chunkers.measure import Measure, measure_for
from documents.chunkers.options import Option
from documents.chunkers.parent_child import ParentChildChunker
from documents.chunkers.prose import ParagraphChunker, SentenceChunker
from documents.chunkers.recursive import RecursiveChunker
from documents.chunkers.semantic import SemanticChunker
from documents.chunkers.splitting import Budget
from documents.chunkers.whole import WholeChunker
from documents.chunkers.window import WindowChunker

DEFAULT = "auto"
#: The one whose chunks know the larger passage that they are parts of.
PARENT_CHILD = "parent_child"


@dataclass(frozen=True, slots=True)
class Order:
    """What a chunker is made of: the options' values, what counts tokens, what the model reads at
    once less the context, and what embeds, where there is something."""

    values: Mapping[str, int]
    measure: Measure
    limit: int
    embed: Embed | None

    @property
    def budget(self) -> Budget:
        """Within what the model reads; the overlap is at most half of a chunk."""
        tokens = min(self.values["max_tokens"], self.limit)
        return Budget(tokens, min(self.values["overlap"], tokens // 2))


@dataclass(frozen=True, slots=True)
class ChunkerKind:
    """A chunker that can be chosen. `summary` is a line for people who choose."""

    summary: str
    make: Callable[[Order], Chunker]
    options: tuple[Option, ...] = (options.max_tokens(), options.overlap())


def _semantic(order: Order) -> Chunker:
    if order.embed is None:
        raise ChunkerError(
            "The chunker “semantic” needs a model that embeds sentences. Choose “recursive”."
        )
    values = order.values
    return SemanticChunker(
        order.measure,
        order.budget,
        min(values["min_tokens"], order.budget.tokens),
        values["group"],
        values["percentile"],
        order.embed,
    )


CHUNKERS: Mapping[str, ChunkerKind] = MappingProxyType(
    {
        "auto": ChunkerKind(
            "What suits the file: markdown, code or recursive.",
            lambda order: AutoChunker(
                plain=RecursiveChunker(order.measure, order.budget),
                markdown=MarkdownChunker(order.measure, order.budget),
                code=CodeChunker(order.measure, order.budget),
            ),
        ),
        "recursive": ChunkerKind(
            "At headings, else paragraphs, else sentences, else words. For any text.",
            lambda order: RecursiveChunker(order.measure, order.budget),
        ),
        "markdown": ChunkerKind(
            "Like recursive, with code blocks and tables kept whole.",
            lambda order: MarkdownChunker(order.measure, order.budget),
        ),
        "code": ChunkerKind(
            "Source code, with functions and classes kept whole.",
            lambda order: CodeChunker(order.measure, order.budget),
        ),
        "sentence": ChunkerKind(
            "As many whole sentences as fit.",
            lambda order: SentenceChunker(order.measure, order.budget),
        ),
        "paragraph": ChunkerKind(
            "As many whole paragraphs as fit.",
            lambda order: ParagraphChunker(order.measure, order.budget),
            (options.max_tokens(), options.overlap(0)),
        ),
        "fixed": ChunkerKind(
            "Always as many words as fit, wherever that cuts.",
            lambda order: FixedChunker(order.measure, order.budget),
        ),
        "window": ChunkerKind(
            "A few sentences that slide over the text, so that neighbours share some.",
            lambda order: WindowChunker(
                order.measure,
                min(order.values["max_tokens"], order.limit),
                order.values["size"],
                order.values["step"],
            ),
            (options.SIZE, options.STEP, options.max_tokens()),
        ),
        "semantic": ChunkerKind(
            "Where the meaning changes. The model reads every sentence for it: slow.",
            _semantic,
            (
                options.max_tokens(),
                options.overlap(),
                options.MIN_TOKENS,
                options.GROUP,
                options.PERCENTILE,
            ),
        ),
        PARENT_CHILD: ChunkerKind(
            "Small chunks are searched, the larger passage around them is shown.",
            lambda order: ParentChildChunker(
                order.measure, order.budget, order.values["parent_tokens"]
            ),
            (options.max_tokens(120), options.overlap(0), options.PARENT_TOKENS),
        ),
        "none": ChunkerKind(
            "Each document is one chunk. Fails for one that the model cannot read at once.",
            lambda order: WholeChunker(order.measure, order.limit),
            (),
        ),
    }
)


def check_options(name: str, given: Mapping[str, Any]) -> dict[str, int]:
    """The values of all options of the chunker `name`. Raises ChunkerError for what cannot be."""
    kind = CHUNKERS.get(name)
    if kind is None:
        raise ChunkerError(f"There is no chunker “{name}”. Choose one of: {', '.join(CHUNKERS)}.")
    return options.checked(name, kind.options, given)


def get_chunker(
    name: str,
    *,
    counter: TokenCounter,
    reserve: int = 0,
    embed: Embed | None = None,
    **given: Any,
) -> Chunker:
    """The chunker `name` with the `given` options, counting with `counter`.

    A chunk has at most `max_tokens` tokens and at most what the model reads less `reserve`,
    which is for the context that is embedded with it. `overlap` is cut to half of that. `embed` is
    needed by `semantic`. Raises `ChunkerError`.
    """
    values = check_options(name, given)
    limit = counter.max_tokens - reserve
    if limit < 1:
        raise ChunkerError(
            f"The context takes {reserve} of the {counter.max_tokens} tokens that the model "
            "reads and leaves none for the text. Shorten titles, or choose another model."
        )
    return CHUNKERS[name].make(Order(values, measure_for(counter), limit, embed))
