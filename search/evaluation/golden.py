"""The golden set of a collection: its questions with good answers, as an evaluation set."""

import json
from pathlib import Path

from accounts.models import Workspace
from common.errors import Conflict, NotFound
from documents.models import Collection
from documents.services import get_collection
from search.evaluation.dataset import Dataset, Entry
from search.models import Judgement

#: As much of a question's hash names it: short to read, and the same next time.
ID_CHARACTERS = 12


def judged_collection(*, workspace: str, slug: str = "") -> Collection:
    """The named collection, or the only one with judgements, of the workspace of that slug.

    Raises NotFound for what is not there, and Conflict where none or several have judgements.
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


def answered_questions(collection: Collection) -> int:
    """How many questions of the collection have a good answer."""
    golden = Judgement.objects.filter(collection=collection).golden()
    questions: int = golden.order_by().values("question_sha256").distinct().count()
    return questions


def golden_set(collection: Collection) -> Dataset:
    """Its questions with a good or pinned document, by the documents' keys. No corpus: it is the
    collection itself. Raises Conflict where no question has an answer."""
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


def export_set(dataset: Dataset, directory: Path) -> None:
    """Write `queries.jsonl` and `qrels.tsv`; the documents stay where they are."""
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
