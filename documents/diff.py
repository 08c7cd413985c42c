"""Differences between two texts, by paragraph and then by word. Begin with `diff_texts`. Pure
Python."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

#: Unchanged paragraphs shown before and after a change.
CONTEXT_PARAGRAPHS = 1
#: Longer texts are not compared word by word, which takes quadratic time.
MAX_WORDS = 1_000
#: Minimum share of common words; otherwise both texts are shown completely.
MIN_WORD_OVERLAP = 0.3
_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_PARAGRAPHS = re.compile(r"\n(?:[ \t]*\n)+")


#: Whether some words are "same", "gone" (deleted) or "new"; and the words.
DiffPiece = tuple[str, str]


@dataclass(frozen=True, slots=True)
class DiffBlock:
    """A paragraph with its changes; or, without pieces, `left_out` unchanged paragraphs."""

    pieces: tuple[DiffPiece, ...] = ()
    left_out: int = 0


def diff_texts(before: str, after: str) -> list[DiffBlock]:
    """Changed paragraphs with one unchanged paragraph around them; empty if nothing changed."""
    old, new = _paragraphs(before), _paragraphs(after)
    matcher = SequenceMatcher(
        None,
        [_comparison_key(text) for text in old],
        [_comparison_key(text) for text in new],
        autojunk=False,
    )
    steps = matcher.get_opcodes()
    blocks: list[DiffBlock] = []
    for at, (step, first, last, new_first, new_last) in enumerate(steps):
        if step != "equal":
            # The n-th deleted paragraph is compared with the n-th new one.
            pairs = zip_longest(old[first:last], new[new_first:new_last], fillvalue="")
            blocks += [DiffBlock(diff_words(gone, come)) for gone, come in pairs]
            continue
        same = [DiffBlock((("same", paragraph),)) for paragraph in old[first:last]]
        head = 0 if at == 0 else CONTEXT_PARAGRAPHS
        tail = 0 if at == len(steps) - 1 else CONTEXT_PARAGRAPHS
        hidden = len(same) - head - tail
        if hidden > 1:
            same[head : head + hidden] = [DiffBlock(left_out=hidden)]
        blocks += same
    return blocks if any(step != "equal" for step, *_ in steps) else []


def diff_words(before: str, after: str) -> tuple[DiffPiece, ...]:
    """The differences of one paragraph, word by word."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    whole = tuple(piece for piece in (("gone", before), ("new", after)) if piece[1])
    if len(old) * len(new) > MAX_WORDS**2:
        return whole
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < MIN_WORD_OVERLAP:
        return whole
    pieces: list[DiffPiece] = []
    for step, first, last, new_first, new_last in matcher.get_opcodes():
        gone, come = "".join(old[first:last]), "".join(new[new_first:new_last])
        if step == "equal":
            pieces.append(("same", come))
            continue
        if gone:
            pieces.append(("gone", gone))
        if come:
            pieces.append(("new", come))
    return tuple(pieces)


def _paragraphs(text: str) -> list[str]:
    return [part for part in _PARAGRAPHS.split(text) if part.strip()]


def _comparison_key(paragraph: str) -> str:
    """The paragraph with white space normalised, which is no difference."""
    return " ".join(paragraph.split())
