"""Evaluation sets on disk: `corpus.jsonl`, `queries.jsonl`, `qrels.tsv`, as BEIR lays them out."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")


class DatasetError(Exception):
    """A folder that is no evaluation set; the message says what is missing or wrong."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A document or a query: its id, its text, and whatever else its line says."""

    id: str
    title: str
    text: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Dataset:
    """`judgements` are query id → document id → grade (0 is not relevant)."""

    name: str
    corpus: tuple[Entry, ...]
    queries: tuple[Entry, ...]
    judgements: dict[str, dict[str, int]]


def load_dataset(directory: Path) -> Dataset:
    """Read a set. Queries without a judgement are left out: nothing can be said of them."""
    missing = [name for name in FILES if not (directory / name).is_file()]
    if missing:
        raise DatasetError(
            f"{directory} is no evaluation set: {', '.join(missing)} missing. It must hold"
            f" {', '.join(FILES)}."
        )
    judgements = _judgements(directory / "qrels.tsv")
    queries = tuple(
        entry for entry in _entries(directory / "queries.jsonl") if entry.id in judgements
    )
    if not queries:
        raise DatasetError(f"{directory}: no query of queries.jsonl has a judgement in qrels.tsv.")
    return Dataset(
        name=directory.resolve().name,
        corpus=tuple(_entries(directory / "corpus.jsonl")),
        queries=queries,
        judgements=judgements,
    )


def _entries(path: Path) -> Iterator[Entry]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                fields = json.loads(line)
                yield Entry(
                    id=str(fields.pop("_id")),
                    title=str(fields.pop("title", "") or ""),
                    text=str(fields.pop("text")),
                    fields=fields,
                )
            except (ValueError, KeyError, AttributeError) as error:
                raise DatasetError(
                    f"{path}, line {number}: not an object with _id and text ({error})."
                ) from error


def _judgements(path: Path) -> dict[str, dict[str, int]]:
    judgements: dict[str, dict[str, int]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        for number, row in enumerate(rows, start=1):
            if number == 1 and not row[-1].strip().lstrip("-").isdigit():
                continue  # the header line
            try:
                query_id, document_id, grade = row
                judgements.setdefault(query_id, {})[document_id] = int(grade)
            except ValueError as error:
                raise DatasetError(
                    f"{path}, line {number}: not query id, document id and grade ({error})."
                ) from error
    return judgements
