"""Judging hits: what a person says of a document as an answer to a question."""

import hashlib
import unicodedata
from typing import Any

from django.db import transaction

from accounts.history import Action, Kind, note_change
from common.errors import InvalidInput
from documents.models import Chunk, Collection, Document
from search.models import Judgement
from search.query import MAX_QUERY_CHARACTERS

Grade = Judgement.Grade


def normalised(question: str) -> str:
    """The question without what nobody sees: composed characters, single spaces."""
    text = question.replace("\0", " ").encode(errors="replace").decode()
    return " ".join(unicodedata.normalize("NFC", text).split())


def question_key(question: str) -> str:
    """Equal for questions that differ in case and spaces only."""
    return hashlib.sha256(normalised(question).casefold().encode()).hexdigest()


def judge(
    *,
    collection: Collection,
    question: str,
    document: Document,
    grade: int,
    user: Any,
    chunk: Chunk | None = None,
    note: str | None = None,
) -> Judgement:
    """Say how good `document` is for `question`, instead of what was said of it before.

    `chunk` is the passage that was looked at; without a `note`, an earlier one stays. Raises
    InvalidInput for an empty question, for no grade, and for a document or a passage from
    elsewhere.
    """
    question = normalised(question)
    if not question or len(question) > MAX_QUERY_CHARACTERS:
        raise InvalidInput(
            f"A question has 1 to {MAX_QUERY_CHARACTERS:,} characters.", field="question"
        )
    if grade not in Grade.values:
        known = ", ".join(f"{each.value} ({each.label})" for each in Grade)
        raise InvalidInput(f"There is no grade {grade}. There are: {known}.", field="grade")
    if document.collection_id != collection.pk:
        raise InvalidInput(
            f"The document is not in “{collection}”. Judge it in its own collection.",
            field="document",
        )
    if chunk is not None and chunk.document_id != document.pk:
        raise InvalidInput("The passage is not of this document.", field="chunk")
    said: dict[str, Any] = {
        "grade": grade,
        "chunk": chunk,
        "user": user if getattr(user, "pk", None) else None,
        **({} if note is None else {"note": note}),
    }
    with transaction.atomic():
        judgement, _ = Judgement.objects.update_or_create(
            workspace_id=collection.workspace_id,
            collection=collection,
            question_sha256=question_key(question),
            document=document,
            defaults=said,
            create_defaults={"question": question, **said},
        )
        note_judgement(Action.JUDGED, judgement, user=user)
    return judgement


def unjudge(*, collection: Collection, question: str, document: Document) -> None:
    """Take back what was said, if anything was."""
    rows = Judgement.objects.filter(
        collection=collection, question_sha256=question_key(question), document=document
    )
    with transaction.atomic():
        for row in rows.select_for_update():
            note_judgement(Action.TAKEN_BACK, row)
            row.delete()


def note_judgement(action: Action, judgement: Judgement, *, user: Any = None) -> None:
    """Say in the history who judged, and how."""
    note_change(
        action=action,
        kind=Kind.JUDGEMENT,
        workspace_id=judgement.workspace_id,
        thing=judgement.pk,
        collection_id=judgement.collection_id,
        document_id=judgement.document_id,
        values={"grade": Grade(judgement.grade)},
        user=user,
    )
