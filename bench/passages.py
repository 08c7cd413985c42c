"""Generated passages, vectors and queries: as many as wanted, and always the same ones."""

import json
import random
import re
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
#: Its figures change with every run.
LEFT_OUT = ROOT / "docs" / "reference" / "performance.md"
BATCH = 1_000
DIMENSIONS = 384
#: Dimensions that the vectors really vary in: of embeddings of text it is tens, not hundreds.
LATENT = 64
#: Least number of words of a long passage.
LONG_WORDS = 190

Vectors = NDArray[np.float32]


class Passage(NamedTuple):
    """A generated passage; `number` is its id in both designs."""

    number: int
    title: str
    text: str


def metadata(number: Any) -> dict[str, Any]:
    """Metadata of a passage, or of an array of passages, by number. Texts and vectors are drawn at
    random, so a value says nothing about them."""
    return {"tenant": number % 5000, "topic": number % 50, "recent": (number % 10 < 3) * 1}


class Query(NamedTuple):
    """A query with its vector, and the number by which filters take their values."""

    text: str
    vector: Vectors
    number: int


class Corpus:
    """Titles and sentences of real documents. The same numbers always give the same passages.

    `is_long`: passages of about 200 words and questions of twelve, instead of about 60 and three to
    eight.
    """

    def __init__(
        self,
        documents: Sequence[tuple[str, str]],
        questions: Sequence[str],
        *,
        is_long: bool = False,
    ) -> None:
        parts = [(title, sentences(text)) for title, text in documents]
        self.documents = [(title, found) for title, found in parts if found]
        self.pool = [sentence for _, found in self.documents for sentence in found]
        self.questions = questions
        self.is_long = is_long
        chance = np.random.default_rng(1)
        self._basis = chance.normal(size=(LATENT, DIMENSIONS)).astype(np.float32) / LATENT**0.5
        self._centroids = chance.normal(size=(len(self.documents), LATENT)).astype(np.float32)

    def passages(self, batch: int) -> list[Passage]:
        """Numbers batch * 1,000 onwards: three sentences in a row of one document, one to three of
        others (as many as make 200 words if long), and in 30 % of the passages an invented word
        that stands nowhere else."""
        chance = random.Random(f"passages {batch}")
        made = []
        for place, document in enumerate(self._sources(batch)):
            title, own = self.documents[document]
            start = chance.randrange(max(1, len(own) - 2))
            parts = own[start : start + 3]
            if self.is_long:
                while sum(len(part.split()) for part in parts) < LONG_WORDS:
                    parts.append(chance.choice(self.pool))
            else:
                parts += chance.choices(self.pool, k=chance.randint(1, 3))
            if chance.random() < 0.3:
                parts.append("".join(chance.choices("bcdfghjklmnpqrtvwxz", k=10)) + ".")
            made.append(Passage(batch * BATCH + place, title, " ".join(parts)))
        return made

    def vectors(self, size: int) -> Vectors:
        """Unit vectors of the first `size` passages, around a centroid for each source document.
        They vary in LATENT of their dimensions."""
        parts = []
        for batch in range(-(-size // BATCH)):
            noise = np.random.default_rng([2, batch]).normal(size=(BATCH, LATENT))
            latent = self._centroids[self._sources(batch)] + noise.astype(np.float32)
            parts.append(_unit(latent @ self._basis))
        return np.concatenate(parts)[:size]

    def queries(self, count: int, vectors: Vectors) -> list[Query]:
        """Questions of the corpus, or else some words of a passage, each with a vector near one."""
        chance, drawn = random.Random("queries"), np.random.default_rng(3)
        texts = list(self.questions)
        if not texts:
            known = [passage.text.split() for passage in self.passages(0)]
            for words in chance.choices(known, k=count):
                most = 12 if self.is_long else 8
                start = chance.randrange(max(1, len(words) - most))
                count_words = most if self.is_long else chance.randint(3, most)
                texts.append(" ".join(words[start : start + count_words]))
        chance.shuffle(texts)
        # Quotes, minus signs and OR have a meaning in searches of the site.
        plain = (re.sub(r"[^\w\s'’]|\bOR\b", " ", text).strip() for text in cycle(texts))
        near, numbers = drawn.integers(len(vectors), size=(2, count))
        noise = drawn.normal(size=(count, LATENT)).astype(np.float32)
        asked = _unit(vectors[near] + 0.5 * _unit(noise @ self._basis))
        return list(map(Query, plain, asked, numbers.tolist()))

    def _sources(self, batch: int) -> NDArray[np.int64]:
        return np.random.default_rng([1, batch]).integers(len(self.documents), size=BATCH)


def sentences(text: str) -> list[str]:
    """Sentences of Markdown or plain text, without code, tables and headings."""
    text = re.sub(r"```.*?```|<!--.*?-->|^[|#!].*?$", "\n\n", text, flags=re.S | re.M)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).translate({ord(c): " " for c in "`*_|<>"})
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n|\n\s*-\s|^- ", text))
    found = [each for part in paragraphs for each in re.split(r"(?<=[.!?])\s+", part)]
    return [each for each in found if 30 <= len(each) <= 400]


def read_corpus(folder: Path | None, *, is_long: bool = False) -> Corpus:
    """This documentation, or corpus.jsonl and queries.jsonl of a folder."""
    if folder is None:
        pages = sorted({*(ROOT / "docs").rglob("*.md")} - {LEFT_OUT})
        documents = [(page.stem.replace("-", " "), page.read_text()) for page in pages]
        return Corpus(documents, [], is_long=is_long)
    lines = [json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")]
    queries = folder / "queries.jsonl"
    questions = [json.loads(line)["text"] for line in queries.open()] if queries.exists() else []
    documents = [(line.get("title", ""), line["text"]) for line in lines]
    return Corpus(documents, questions, is_long=is_long)


def _unit(vectors: Any) -> Vectors:
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit
