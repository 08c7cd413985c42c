"""Text to chunks with exact offsets: chunkers by name, their options, and `get_chunker`. Pure
Python and Rust: no Django, no Celery, no model."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from common.translation import gettext, gettext_noop
from reading.chunkers.atoms import measure_for
from reading.chunkers.base import ChunkerError, Embed, Option, Span, TokenCounter, checked_options
from reading.chunkers.splitter import Chunker, Strategy, pack_atoms, split_document
from reading.chunkers.strategies import (
    equal_worths,
    paragraph_worths,
    sentence_worths,
    split_by_meaning,
    split_by_type,
    split_code,
    split_markdown,
    split_nothing,
    split_parents,
    split_windows,
)

__all__ = [
    "CHUNKERS",
    "PARENT_CHILD",
    "Chunker",
    "ChunkerError",
    "Embed",
    "Span",
    "TokenCounter",
    "check_options",
    "get_chunker",
]

#: The one whose chunks know the larger passage that they are parts of.
PARENT_CHILD = "parent_child"


def _max_tokens(default: int = 400) -> Option:
    return Option("max_tokens", default, 8, 8192, "Tokens of a chunk, at most.")


def _overlap(default: int = 50) -> Option:
    return Option("overlap", default, 0, 4096, "Tokens that a chunk repeats of the one before it.")


@dataclass(frozen=True, slots=True)
class ChunkerKind:
    """A chunker to choose from. `summary` is a line for people."""

    summary: str
    strategy: Strategy
    options: tuple[Option, ...] = (_max_tokens(), _overlap())


CHUNKERS: Mapping[str, ChunkerKind] = MappingProxyType(
    {
        "auto": ChunkerKind(
            gettext_noop("What suits the file: markdown, code or recursive."),
            split_by_type,
        ),
        "recursive": ChunkerKind(
            gettext_noop("At headings, else paragraphs, else sentences, else words. For any text."),
            split_document,
        ),
        "markdown": ChunkerKind(
            gettext_noop("Like recursive, with code blocks and tables kept whole."),
            split_markdown,
        ),
        "code": ChunkerKind(
            gettext_noop("Source code, with functions and classes kept whole."),
            split_code,
        ),
        "sentence": ChunkerKind(
            gettext_noop("As many whole sentences as fit."),
            partial(split_document, weigh=sentence_worths),
        ),
        "paragraph": ChunkerKind(
            gettext_noop("As many whole paragraphs as fit."),
            partial(split_document, weigh=paragraph_worths),
            (_max_tokens(), _overlap(0)),
        ),
        "fixed": ChunkerKind(
            gettext_noop("Always as many words as fit, wherever that cuts."),
            partial(split_document, weigh=equal_worths, arrange=partial(pack_atoms, share=False)),
        ),
        "window": ChunkerKind(
            gettext_noop("A few sentences that slide over the text, so that neighbors share some."),
            split_windows,
            (
                Option("size", 6, 1, 100, "Sentences of a window, if they fit."),
                Option("step", 3, 1, 100, "Sentences by which the window moves."),
                _max_tokens(),
            ),
        ),
        "semantic": ChunkerKind(
            gettext_noop("Where the meaning changes. The model reads every sentence for it: slow."),
            split_by_meaning,
            (
                _max_tokens(),
                _overlap(),
                Option("min_tokens", 60, 1, 4096, "Tokens that a piece has at least."),
                Option("group", 2, 1, 10, "Sentences that are compared with as many behind them."),
                Option("percentile", 90, 1, 99, "Distances above this share of all are cuts."),
            ),
        ),
        PARENT_CHILD: ChunkerKind(
            gettext_noop("Small chunks are searched, the larger passage around them is shown."),
            split_parents,
            (
                _max_tokens(120),
                _overlap(0),
                Option("parent_tokens", 800, 8, 32_768, "Tokens of a parent, at most."),
            ),
        ),
        "none": ChunkerKind(
            gettext_noop(
                "Each document is one chunk. Fails for one that the model cannot read at once."
            ),
            split_nothing,
            (),
        ),
    }
)


def check_options(name: str, given: Mapping[str, Any]) -> dict[str, int]:
    """The values of all options of the chunker `name`. Raises ChunkerError for invalid ones."""
    kind = CHUNKERS.get(name)
    if kind is None:
        raise ChunkerError(
            gettext("There is no chunker “{name}”. Use {names}.").format(
                name=name, names=", ".join(CHUNKERS)
            )
        )
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
            gettext_noop(
                "The context takes {reserve} of the {limit} tokens that the model reads, which"
                " leaves none for the text. Shorten titles, or choose another model."
            ).format(reserve=reserve, limit=counter.max_tokens)
        )
    strategy = CHUNKERS[name].strategy
    if strategy is split_by_meaning and embed is None:
        raise ChunkerError(
            gettext_noop(
                "The chunker “semantic” needs a model that embeds sentences. Choose “recursive”."
            )
        )
    return Chunker(strategy, values, measure_for(counter), limit, embed)
