"""SentencePiece's unigram tokenizer over a vocabulary of any size, in little memory.

`tokenizers` keeps 250,000 pieces as a tree of hash tables of 270 MB, which takes seconds to build;
this is a dict of 40 MB, and reads a passage in about 2 ms. Begin with `UnigramTokenizer`.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from tokenizers import normalizers

from inference.local.model_folder import LazyModel
from inference.tokens import TextWindows, Window

_SPACE = "▁"
_KNOWN_WORDS = 20_000
#: How much less likely than the least likely piece a character without any is.
_UNKNOWN_PENALTY = 10.0


class UnigramTokenizer:
    """Splits each word into the pieces of the highest total score, by the algorithm of Viterbi
    (https://arxiv.org/abs/1804.10959). A word begins with the mark for a space. Thread-safe."""

    def __init__(
        self,
        pieces: Iterable[str],
        scores: Sequence[float],
        *,
        unknown: int,
        normalizer: normalizers.Normalizer,
    ) -> None:
        """`unknown` is the id of what no piece covers; neighboring ones are one token."""
        self._ids = {piece: number for number, piece in enumerate(pieces)}
        self._scores = array("d", scores)
        self._longest = max(map(len, self._ids))
        self._unknown = unknown
        self._unknown_score = min(self._scores) - _UNKNOWN_PENALTY
        self._normalizer = normalizer
        self._encode_word = lru_cache(_KNOWN_WORDS)(self._split)

    def encode(self, text: str) -> list[int]:
        """Ids without special tokens."""
        normalized = self._normalizer.normalize_str(text).replace(" ", _SPACE)
        if not normalized:
            return []
        words = normalized.removeprefix(_SPACE).split(_SPACE)
        return [token for word in words for token in self._encode_word(_SPACE + word)]

    def _split(self, word: str) -> tuple[int, ...]:
        ids, scores, size = self._ids, self._scores, len(word)
        # Of the best way to each place: its score, where its last piece begins, and that piece.
        best = [float("-inf")] * (size + 1)
        best[0] = 0.0
        begins, pieces = [0] * (size + 1), [0] * (size + 1)
        for start in range(size):
            before, is_covered = best[start], False
            for end in range(start + 1, min(size, start + self._longest) + 1):
                piece = ids.get(word[start:end])
                if piece is None:
                    continue
                is_covered = is_covered or end == start + 1
                if (score := before + scores[piece]) > best[end]:
                    best[end], begins[end], pieces[end] = score, start, piece
            if not is_covered and (score := before + self._unknown_score) > best[start + 1]:
                best[start + 1], begins[start + 1] = score, start
                pieces[start + 1] = self._unknown
        found: list[int] = []
        end = size
        while end:
            piece = pieces[end]
            if piece != self._unknown or found[-1:] != [self._unknown]:
                found.append(piece)
            end = begins[end]
        return tuple(reversed(found))


class UnigramWindows(TextWindows):
    """Counts and windows by it. The vocabulary is read with the first text, and again after
    `unigram.release_idle`."""

    def __init__(
        self,
        load: Callable[[], UnigramTokenizer],
        before: Window,
        after: Window,
        *,
        max_length: int,
    ) -> None:
        super().__init__(before, after, max_length=max_length)
        self.unigram = LazyModel(load)

    def encode(self, texts: Sequence[str]) -> list[Window]:
        unigram = self.unigram()
        return [unigram.encode(text) for text in texts]
