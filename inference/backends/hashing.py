"""An embedder without a model: hashed words and their n-grams. For tests, never by default."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from inference.interfaces import check_texts
from inference.vectors import check_vectors

# Long runs without a space (base64, Chinese) are cut, which bounds what is cached for one word.
WORD = re.compile(r"\w{1,32}|[^\w\s]")
NGRAM = 3
NGRAM_WEIGHT = 0.4  # a whole word in common outweighs a few letters in common
BATCH_ROWS = 4096


class HashingEmbedder:
    """Signed feature hashing (Weinberger et al. 2009) with square-root term frequency.

    The same vector in every process and on every machine; texts that share words are similar.
    Instructions are ignored.
    """

    def __init__(self, dimensions: int = 384, max_tokens: int = 256) -> None:
        self.dimensions = dimensions
        self.max_tokens = max_tokens
        self.model_name = f"hashing-{dimensions}"

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        check_texts(texts)
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), BATCH_ROWS):
            rows = slice(start, start + BATCH_ROWS)
            vectors[rows] = self._embed(texts[rows])
        return check_vectors(vectors, dimensions=self.dimensions)

    def embed_query(self, text: str, instruction: str | None = None) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector

    def embed_queries(
        self, texts: Sequence[str], instruction: str | None = None
    ) -> NDArray[np.float32]:
        return self.embed_documents(texts)

    def token_counter(self) -> "WordCounter":
        return WordCounter(self.max_tokens)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        slots: list[int] = []
        weights: list[float] = []
        features_of_word: list[int] = []
        row_of_word: list[int] = []
        frequency_of_word: list[float] = []
        for row, text in enumerate(texts):
            for word, frequency in Counter(WORD.findall(text.lower())).items():
                word_slots, word_weights = _features(word, self.dimensions)
                slots += word_slots
                weights += word_weights
                features_of_word.append(len(word_slots))
                row_of_word.append(row)
                frequency_of_word.append(sqrt(frequency))
        width = 2 * self.dimensions
        bins = np.array(slots) + width * np.repeat(row_of_word, features_of_word)
        values = np.array(weights) * np.repeat(frequency_of_word, features_of_word)
        sums = np.bincount(bins, weights=values, minlength=width * len(texts))
        positive, negative = sums.reshape(len(texts), 2, self.dimensions).swapaxes(0, 1)
        rows = (positive - negative).astype(np.float64, copy=False)
        cancelled = ~rows.any(axis=1)
        rows[cancelled, 0] = 1.0  # features of opposite sign may meet in few dimensions
        normalised: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return normalised


class WordCounter:
    """Counts words and single punctuation marks."""

    tokenizer: Tokenizer | None = None

    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens

    def count(self, text: str) -> int:
        return len(WORD.findall(text))


@lru_cache(maxsize=1 << 16)
def _features(word: str, dimensions: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Slots in 0..2*dimensions, the upper half counting negative, and their weights."""
    framed = f"<{word}>"
    ngrams = [framed[start : start + NGRAM] for start in range(len(framed) - NGRAM + 1)]
    slots = (_slot("word " + word, dimensions), *(_slot(gram, dimensions) for gram in ngrams))
    return slots, (1.0, *(NGRAM_WEIGHT,) * len(ngrams))


def _slot(feature: str, dimensions: int) -> int:
    digest = hashlib.blake2b(feature.encode(), digest_size=8).digest()
    return int.from_bytes(digest) % (2 * dimensions)
