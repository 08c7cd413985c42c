"""How much of a text extractive summaries cover, against its first sentences, the first sentence of
each part, and random ones.

    python -m bench.summaries ../shared/data/xquad_en --sentences 5
    python -m bench.summaries --collection ragsite-docs --sentences 7

The first takes a question set whose passages have ids `ARTICLE-PARAGRAPH` as articles: how many of
their answers stand in the summary. The second takes the documents of a collection of the site: how
many of their headings the summary has a sentence of.
"""

import argparse
import json
import os
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
django.setup()

from rag.answering.central_sentences import (
    PASSAGES_PER_SENTENCE,
    central_sentences,
)
from rag.answering.extractive import Quote
from rag.events import Passage
from reading.segments import split_segments

Choose = Callable[[Sequence[Passage], int], list[Quote]]


def every_sentence(passages: Sequence[Passage]) -> list[Quote]:
    """All that could be quoted, in the order of the text."""
    quotes = [Quote(each, part) for each in passages for part in split_segments(each.text)]
    return [quote for quote in quotes if not quote.is_reference_only]


def first(passages: Sequence[Passage], most: int) -> list[Quote]:
    return every_sentence(passages)[:most]


def first_of_parts(passages: Sequence[Passage], most: int) -> list[Quote]:
    """The first sentence of each of `most` passages, evenly spread."""
    count = min(most, len(passages))
    spread = [passages[place * len(passages) // count] for place in range(count)]
    return [quote for each in spread for quote in every_sentence([each])[:1]]


def at_random(passages: Sequence[Passage], most: int) -> list[Quote]:
    quotes = every_sentence(passages)
    return random.Random(len(quotes)).sample(quotes, min(most, len(quotes)))


def articles(folder: Path) -> Iterator[tuple[list[Passage], list[str]]]:
    """Each article's paragraphs, and the answers to the questions about it."""
    texts: dict[str, list[Passage]] = defaultdict(list)
    for line in (folder / "corpus.jsonl").read_text().splitlines():
        row = json.loads(line)
        article, place = row["_id"].split("-")
        texts[article].append(_passage(row["text"], int(place)))
    about = {}
    for line in (folder / "qrels.tsv").read_text().splitlines():
        question, paragraph = [each for each in line.split("\t") if each][:2]
        about[question] = paragraph.split("-")[0]
    answers: dict[str, list[str]] = defaultdict(list)
    for line in (folder / "queries.jsonl").read_text().splitlines():
        row = json.loads(line)
        if article := about.get(row["_id"]):
            answers[article] += row["answers"][:1]
    yield from ((texts[article], answers[article]) for article in texts)


def _passage(text: str, place: int) -> Passage:
    return Passage(
        number=place + 1,
        chunk_id=place,
        document_id=1,
        document_key="",
        version=1,
        collection_slug="",
        title="",
        heading_path=(),
        page=None,
        text=text,
        start=place * 100_000,
        end=place * 100_000 + len(text),
        url="",
        language="",
        rank=0,
        similarity=None,
        lexical=None,
        fused=0.0,
        rerank=None,
    )


def answers_covered(folder: Path, most: int) -> dict[str, list[float]]:
    """Of each article, by method: the share of answers in the summary, and its characters."""
    found: dict[str, list[float]] = defaultdict(list)
    for passages, answers in articles(folder):
        for name, choose in METHODS.items():
            quotes = choose(passages, most)
            text = " ".join(quote.text for quote in quotes)
            hits = [
                bool(re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text)) for answer in answers
            ]
            found[name].append(sum(hits) / max(1, len(hits)))
            found[f"{name}, characters"].append(len(text))
            parts = {quote.passage.chunk_id for quote in quotes}
            found[f"{name}, paragraphs"].append(len(parts) / len(passages))
    return found


def headings_covered(slug: str, most: int) -> dict[str, list[float]]:
    """Of each document with at least four headings, by method: the share of its headings that a
    sentence stands under; only documents with more passages than are compared are sampled."""
    from documents.models import Document  # noqa: PLC0415 (Django is set up now)
    from rag.tools.summaries import (  # noqa: PLC0415
        document_text_of,
        read_passages,
        select_passages,
    )

    found: dict[str, list[float]] = defaultdict(list)
    documents = Document.objects.current().filter(collection__slug=slug, chunk_count__gt=0)
    for document in documents.select_related("collection"):
        text = document_text_of(document)
        whole = read_passages([pk for pk, _, _ in text.passages], document=document)
        headings = {passage.heading_path[:2] for passage in whole}
        if len(headings) < 4:
            continue
        for name, choose in METHODS.items():
            passages = whole
            if name == "central":
                passages = select_passages(text, most * PASSAGES_PER_SENTENCE)
            quotes = choose(passages, most)
            under = {quote.passage.heading_path[:2] for quote in quotes}
            found[name].append(len(under) / min(most, len(headings)))
            found[f"{name}, characters"].append(sum(len(quote.text) for quote in quotes))
    return found


METHODS: dict[str, Choose] = {
    "central": central_sentences,
    "first": first,
    "first of parts": first_of_parts,
    "random": at_random,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--collection", default="")
    parser.add_argument("--sentences", type=int, default=5)
    options = parser.parse_args()
    found = (
        answers_covered(options.folder, options.sentences)
        if options.folder
        else headings_covered(options.collection, options.sentences)
    )
    for name, values in found.items():
        print(f"{name:28} {sum(values) / len(values):10.3f}  of {len(values)}")


if __name__ == "__main__":
    main()
