"""Text to chunks with exact offsets: chunkers by name, their options, and `get_chunker`. Pure
Python and Rust: no Django, no Celery, no model."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from common.errors import InvalidInput
from common.translation import gettext, gettext_noop
from reading.chunkers.atoms import measure_for
from reading.chunkers.base import ChunkerError, Embed, Span, TokenCounter
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


@dataclass(frozen=True, slots=True)
class ChunkerKind:
    """A chunker to choose from. `summary` is a line for people, `defaults` are of its options."""

    summary: str
    strategy: Strategy
    defaults: Mapping[str, int] = field(default_factory=lambda: {"max_tokens": 400, "overlap": 50})


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
            {"max_tokens": 400, "overlap": 0},
        ),
        "fixed": ChunkerKind(
            gettext_noop("Always as many words as fit, wherever that cuts."),
            partial(split_document, weigh=equal_worths, arrange=partial(pack_atoms, share=False)),
        ),
        "window": ChunkerKind(
            gettext_noop("A few sentences that slide over the text, so that neighbors share some."),
            split_windows,
            {"size": 6, "step": 3, "max_tokens": 400},
        ),
        "semantic": ChunkerKind(
            gettext_noop("Where the meaning changes. The model reads every sentence for it: slow."),
            split_by_meaning,
            {"max_tokens": 400, "overlap": 50, "min_tokens": 60, "group": 2, "percentile": 90},
        ),
        PARENT_CHILD: ChunkerKind(
            gettext_noop("Small chunks are searched, the larger passage around them is shown."),
            split_parents,
            {"max_tokens": 120, "overlap": 0, "parent_tokens": 800},
        ),
        "none": ChunkerKind(
            gettext_noop(
                "Each document is one chunk. Fails for one that the model cannot read at once."
            ),
            split_nothing,
            {},
        ),
    }
)


#: Names of two options, whether their values go together, and what to do where they do not.
_PAIRS: tuple[tuple[str, str, Callable[[int, int], bool], str], ...] = (
    ("overlap", "max_tokens", operator.lt, gettext_noop("Make overlap smaller than max_tokens.")),
    ("min_tokens", "max_tokens", operator.le, gettext_noop("Make min_tokens at most max_tokens.")),
    (
        "parent_tokens",
        "max_tokens",
        operator.ge,
        gettext_noop("Make parent_tokens at least max_tokens."),
    ),
    (
        "step",
        "size",
        lambda step, size: step <= size <= 2 * step,
        gettext_noop(
            "Make step at most size, so that no sentence is left out, and at least half of it, so"
            " that only neighbors overlap."
        ),
    ),
)


def check_options(name: str, given: Mapping[str, Any]) -> dict[str, int]:
    """The values of all options of the chunker `name`. Raises InvalidInput with the field
    `chunker` or `chunker_options.NAME`.
    """
    from reading.chunkers.options import ChunkerOptions  # noqa: PLC0415 (loads pydantic)

    kind = CHUNKERS.get(name)
    if kind is None:
        raise InvalidInput(
            gettext("There is no chunker “{name}”. Use {names}.").format(
                name=name, names=", ".join(CHUNKERS)
            ),
            field="chunker",
        )
    chosen = ChunkerOptions.from_data(given, at="chunker_options").given()
    values = {**kind.defaults, **chosen}
    for option in chosen.keys() - kind.defaults.keys():
        message = (
            gettext("The chunker “{chunker}” has no option “{option}”. It has: {names}.")
            if kind.defaults
            else gettext("The chunker “{chunker}” has no option “{option}”. It has none.")
        )
        raise InvalidInput(
            message.format(chunker=name, option=option, names=", ".join(kind.defaults)),
            field=f"chunker_options.{option}",
        )
    for one, other, fits, cure in _PAIRS:
        if one in values and other in values and not fits(values[one], values[other]):
            message = gettext("{one} {value} does not fit {other} {limit}.").format(
                one=one, value=values[one], other=other, limit=values[other]
            )
            raise InvalidInput(f"{message} {gettext(cure)}", field=f"chunker_options.{one}")
    return values


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
    needed by `semantic`. Raises ChunkerError, and InvalidInput for options.
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
