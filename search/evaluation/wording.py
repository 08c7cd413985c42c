"""Texts and questions of the site's own sentences, so that words are as frequent as there."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from documents.models import Chunk
from search.evaluation.material import Material, Passage, Writer
from search.query import QueryError, parse_query
from search.snippets import sentences

SENTENCES_A_CHUNK = 7
#: A person asks with so many words of a sentence, or with a heading.
MOST_WORDS = 12
#: One question in four is a heading, where there are any, and one has nothing but common words.
SHARE = 4
#: So many lexemes are common, and a question of them has that many.
COMMON = 20
COMMON_WORDS = range(2, 6)

_FREQUENT = """
    SELECT lexeme FROM documents_chunk, unnest(tsvector_to_array(search_vector)) AS lexeme
    WHERE id = ANY(%s) AND lexeme ~ '^[[:alpha:]]{2,}$'
    GROUP BY lexeme ORDER BY count(*) DESC, lexeme LIMIT %s
"""


def writer(material: Material, collections: Sequence[str], chance: np.random.Generator) -> Writer:
    """Passages of sentences drawn from all chunks that share their origin's language, under its
    context, in each of `collections` in turn."""
    pools = _sentences_by_language(material.chunks)

    def write(numbers: range, origins: NDArray[np.int64]) -> Iterator[Passage]:
        for number, origin in zip(numbers, origins, strict=True):
            chunk = material.chunks[origin]
            pool = pools[chunk.language]
            drawn = chance.integers(0, len(pool), SENTENCES_A_CHUNK)
            yield Passage(
                collection=collections[number % len(collections)],
                text=" ".join(pool[place] for place in drawn),
                context=chunk.context,
                language=chunk.language,
            )

    return write


def _sentences_by_language(chunks: Iterable[Chunk]) -> dict[str, list[str]]:
    pools: dict[str, list[str]] = defaultdict(list)
    for chunk in chunks:
        spans = sentences(chunk.text) or [(0, len(chunk.text))]
        pools[chunk.language] += [chunk.text[start:end] for start, end in spans]
    return pools


def make_questions(material: Material, count: int, chance: np.random.Generator) -> list[str]:
    """`count` questions in no order: beginnings of sentences, headings, and common words alone."""
    headings = [chunk.heading_path[-1] for chunk in material.chunks if chunk.heading_path]
    of_sentences = [
        text for pool in _sentences_by_language(material.chunks).values() for text in pool
    ]
    asked = _common(material, count // SHARE, chance)
    asked += _some(headings, count // SHARE, chance)
    asked += _some(of_sentences, count - len(asked), chance)
    return [str(question) for question in chance.permutation(asked)]


def _some(texts: Sequence[str], count: int, chance: np.random.Generator) -> list[str]:
    """The beginnings of at most `count` different texts that say nothing in the query language."""
    beginnings = dict.fromkeys(" ".join(text.split()[:MOST_WORDS]) for text in texts)
    plain = [text for text in beginnings if _is_plain(text)]
    return [plain[place] for place in chance.permutation(len(plain))[:count]]


def _is_plain(text: str) -> bool:
    try:
        query = parse_query(text)
    except QueryError:
        return False
    return not (query.phrases or query.excluded)


def _common(material: Material, count: int, chance: np.random.Generator) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_FREQUENT, [[chunk.pk for chunk in material.chunks], COMMON])
        lexemes = [lexeme for (lexeme,) in cursor.fetchall()]
    return [
        " ".join(chance.permutation(lexemes)[: chance.choice(COMMON_WORDS)]) for _ in range(count)
    ]
