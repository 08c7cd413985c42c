"""Evaluation sets: BEIR folders on disk (`load_dataset`) and the golden set of a
collection (`golden_set`).
"""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accounts.models import Workspace
from common.errors import Conflict, ExplainedError, NotFound
from documents.models import Collection
from documents.services import get_collection
from search.models import Judgement

FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")


class DatasetError(ExplainedError):
    """A folder that is no valid evaluation set."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A document or a query: id, title, text and its other fields."""

    id: str
    title: str
    text: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Dataset:
    """`judgements` are query id → document id → grade (0: not relevant)."""

    name: str
    corpus: tuple[Entry, ...]
    queries: tuple[Entry, ...]
    judgements: dict[str, dict[str, int]]


def load_dataset(directory: Path) -> Dataset:
    """Reads a BEIR folder. Queries without a judgement are left out."""
    missing = [name for name in FILES if not (directory / name).is_file()]
    if missing:
        raise DatasetError(
            f"{directory} is no evaluation set: {', '.join(missing)} missing. It must hold"
            f" {', '.join(FILES)}."
        )
    path = directory / "qrels.tsv"
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


#: Characters of a question's hash that form its id.
ID_CHARACTERS = 12


def judged_collection(*, workspace: str, slug: str = "") -> Collection:
    """The named collection of the workspace, or the only one with judgements.

    Raises NotFound for a missing one, and Conflict where none or several have judgements.
    """
    owner = Workspace.objects.filter(slug=workspace).first()
    if owner is None:
        raise NotFound(f"There is no workspace “{workspace}”.")
    if slug:
        return get_collection(workspace=owner, slug=slug)
    judged = Judgement.objects.filter(workspace=owner).values("collection")
    collections = list(Collection.objects.filter(pk__in=judged).order_by("slug"))
    if len(collections) == 1:
        return collections[0]
    if not collections:
        raise Conflict(
            f"Nothing is judged in workspace “{workspace}”. Judge the answers of some questions in"
            " the admin, under Judgements."
        )
    slugs = ", ".join(collection.slug for collection in collections)
    raise Conflict(f"Several collections have judgements. Name one with --collection: {slugs}.")


def count_answered_questions(collection: Collection) -> int:
    """How many questions of the collection have a relevant document."""
    golden = Judgement.objects.filter(collection=collection).golden()
    questions: int = golden.order_by().values("question_sha256").distinct().count()
    return questions


def golden_set(collection: Collection) -> Dataset:
    """The collection's judged questions as a dataset without corpus. Raises Conflict
    where there are none.
    """
    rows = (
        Judgement.objects.filter(collection=collection)
        .golden()
        .order_by("question_sha256", "document__key")
        .values_list("question_sha256", "question", "document__key", "grade")
    )
    questions: dict[str, str] = {}
    judgements: dict[str, dict[str, int]] = {}
    for digest, question, key, grade in rows:
        query_id = digest[:ID_CHARACTERS]
        questions.setdefault(query_id, question)
        judgements.setdefault(query_id, {})[key] = grade
    if not questions:
        raise Conflict(
            f"No question of “{collection.slug}” has a good answer yet. Judge some in the admin,"
            " under Judgements."
        )
    return Dataset(
        name=f"{collection.workspace.slug}/{collection.slug}",
        corpus=(),
        queries=tuple(
            Entry(id=query_id, title="", text=question, fields={})
            for query_id, question in questions.items()
        ),
        judgements=judgements,
    )


def export_dataset(dataset: Dataset, directory: Path) -> None:
    """Writes `queries.jsonl` and `qrels.tsv`, without the corpus."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "queries.jsonl").open("w", encoding="utf-8") as file:
        for query in dataset.queries:
            line = {"_id": query.id, "text": query.text}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    with (directory / "qrels.tsv").open("w", encoding="utf-8") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        for query_id, grades in dataset.judgements.items():
            for key, grade in grades.items():
                file.write(f"{query_id}\t{key}\t{grade}\n")
