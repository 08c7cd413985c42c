"""Searching: the service against the bare SQL of its own plan, in one run.

    python -m bench.search [CHUNKS ...]

`bench.site speed`, on documents that are made here, of Zipf-distributed words with the hashing
embedder's vectors, and removed afterwards: so it needs no site and no model. 6,000 and 30,000
chunks unless others are named.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

os.environ["DJANGO_SETTINGS_MODULE"] = "ragsite.settings"
os.environ["EMBEDDER_BACKEND"] = "inference.backends.hashing.HashingEmbedder"
for variable in ("EMBEDDER_OPTIONS", "EMBEDDERS"):
    os.environ.pop(variable, None)

from ragsite import bootstrap

bootstrap.prepare(["manage.py", "evaluate"])

import numpy as np
from rich.console import Console

from accounts.services import get_or_create_workspace
from bench.synthetic import growth_sentence, measure_speed, speed_table
from documents.ingestion.sources import Source, text_source
from documents.models import Collection, EmbeddingSpace
from documents.services import add_space, delete_collection, drop_space, ingest_inline

SIZES = (6_000, 30_000)
NAME = "benchmark-documents"
DOCUMENTS = 400
SENTENCES = 12
WORDS_A_SENTENCE = 15
VOCABULARY = 30_000


def main(sizes: Sequence[int]) -> None:
    with documents() as space:
        measured = measure_speed(sizes=sizes, space=space)
    Console().print(speed_table(measured))
    if measured["growth"]:
        print(growth_sentence(measured["growth"]))


@contextmanager
def documents() -> Iterator[EmbeddingSpace]:
    """A space with the documents' chunks."""
    space, _ = add_space(name=NAME)
    collection = Collection.objects.create(
        workspace=get_or_create_workspace(slug=NAME), slug=NAME, name=NAME, space=space
    )
    try:
        ingest_inline(collection=collection, sources=sources(np.random.default_rng(1)))
        yield space
    finally:
        delete_collection(collection=collection)
        collection.workspace.delete()
        drop_space(space=space)


def sources(random: np.random.Generator) -> Iterator[Source]:
    for number in range(DOCUMENTS):
        text = " ".join(sentence(random) for _ in range(SENTENCES))
        yield text_source(str(number), text, language="en")


def sentence(random: np.random.Generator) -> str:
    ranks = np.minimum(random.zipf(1.3, WORDS_A_SENTENCE), VOCABULARY)
    return " ".join(map(word, ranks)).capitalize() + "."


def word(rank: int) -> str:
    """The word of a rank, in letters alone."""
    letters = ""
    while rank:
        rank, letter = divmod(int(rank), 20)
        letters += "bcdfghklmnprstvwxyza"[letter] + "aeiou"[letter % 5]
    return letters


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or SIZES)
