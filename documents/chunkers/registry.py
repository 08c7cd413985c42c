"""Chunkers by name. A new one is one file beside this one and one entry here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from documents.chunkers.atoms import TokenMeasure, measure_for
from documents.chunkers.base import (
    GROUP_OPTION,
    MIN_TOKENS_OPTION,
    PARENT_TOKENS_OPTION,
    PERCENTILE_OPTION,
    SIZE_OPTION,
    STEP_OPTION,
    Chunker,
    ChunkerError,
    Embed,
    Option,
    TokenCounter,
    checked_options,
    max_tokens_option,
    overlap_option,
)
from documents.chunkers.splitter import Budget, pack_atoms
from documents.chunkers.strategies import (
    AutoChunker,
    GapChunker,
    ParentChildChunker,
    SemanticChunker,
    WholeDocumentChunker,
    WindowChunker,
    atomic_blocks,
    code_extents,
    code_worths,
    equal_worths,
    paragraph_worths,
    sentence_worths,
)

#: The one whose chunks know the larger passage that they are parts of.
PARENT_CHILD = "parent_child"


@dataclass(frozen=True, slots=True)
class ChunkerContext:
    """Arguments of a chunker: option values, token measure, the model's context less the
    chunk's own context, and an embedder if there is one."""

    values: Mapping[str, int]
    measure: TokenMeasure
    limit: int
    embed: Embed | None

    @property
    def budget(self) -> Budget:
        """At most the model's limit; the overlap at most half a chunk."""
        tokens = min(self.values["max_tokens"], self.limit)
        return Budget(tokens, min(self.values["overlap"], tokens // 2))


@dataclass(frozen=True, slots=True)
class ChunkerKind:
    """A chunker to choose from. `summary` is a line for people."""

    summary: str
    make: Callable[[ChunkerContext], Chunker]
    options: tuple[Option, ...] = (max_tokens_option(), overlap_option())


def _markdown_chunker(order: ChunkerContext) -> GapChunker:
    return GapChunker(order.measure, order.budget, blocks=atomic_blocks)


def _code_chunker(order: ChunkerContext) -> GapChunker:
    return GapChunker(order.measure, order.budget, code_worths, blocks=code_extents)


def _make_semantic(order: ChunkerContext) -> Chunker:
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
                plain=GapChunker(order.measure, order.budget),
                markdown=_markdown_chunker(order),
                code=_code_chunker(order),
            ),
        ),
        "recursive": ChunkerKind(
            "At headings, else paragraphs, else sentences, else words. For any text.",
            lambda order: GapChunker(order.measure, order.budget),
        ),
        "markdown": ChunkerKind(
            "Like recursive, with code blocks and tables kept whole.",
            _markdown_chunker,
        ),
        "code": ChunkerKind(
            "Source code, with functions and classes kept whole.",
            _code_chunker,
        ),
        "sentence": ChunkerKind(
            "As many whole sentences as fit.",
            lambda order: GapChunker(order.measure, order.budget, sentence_worths),
        ),
        "paragraph": ChunkerKind(
            "As many whole paragraphs as fit.",
            lambda order: GapChunker(order.measure, order.budget, paragraph_worths),
            (max_tokens_option(), overlap_option(0)),
        ),
        "fixed": ChunkerKind(
            "Always as many words as fit, wherever that cuts.",
            lambda order: GapChunker(
                order.measure, order.budget, equal_worths, partial(pack_atoms, share=False)
            ),
        ),
        "window": ChunkerKind(
            "A few sentences that slide over the text, so that neighbours share some.",
            lambda order: WindowChunker(
                order.measure,
                min(order.values["max_tokens"], order.limit),
                order.values["size"],
                order.values["step"],
            ),
            (SIZE_OPTION, STEP_OPTION, max_tokens_option()),
        ),
        "semantic": ChunkerKind(
            "Where the meaning changes. The model reads every sentence for it: slow.",
            _make_semantic,
            (
                max_tokens_option(),
                overlap_option(),
                MIN_TOKENS_OPTION,
                GROUP_OPTION,
                PERCENTILE_OPTION,
            ),
        ),
        PARENT_CHILD: ChunkerKind(
            "Small chunks are searched, the larger passage around them is shown.",
            lambda order: ParentChildChunker(
                order.measure, order.budget, order.values["parent_tokens"]
            ),
            (max_tokens_option(120), overlap_option(0), PARENT_TOKENS_OPTION),
        ),
        "none": ChunkerKind(
            "Each document is one chunk. Fails for one that the model cannot read at once.",
            lambda order: WholeDocumentChunker(order.measure, order.limit),
            (),
        ),
    }
)


def check_options(name: str, given: Mapping[str, Any]) -> dict[str, int]:
    """The values of all options of the chunker `name`. Raises ChunkerError for invalid ones."""
    kind = CHUNKERS.get(name)
    if kind is None:
        raise ChunkerError(f"There is no chunker “{name}”. Choose one of: {', '.join(CHUNKERS)}.")
    return checked_options(name, kind.options, given)


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
    return CHUNKERS[name].make(ChunkerContext(values, measure_for(counter), limit, embed))
