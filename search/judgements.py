"""Relevance judgements: a person's grade of a document as an answer to a question.
Begin with `judge`.
"""

import hashlib
import unicodedata
from typing import Any

from django.db import transaction
from django.utils.formats import number_format
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from common.errors import InvalidInput
from common.text import parse_integer
from documents.models import Chunk, Collection, Document
from search.models import Judgement
from search.query import MAX_QUERY_CHARACTERS

Grade = Judgement.Grade


def normalize_question(question: str) -> str:
    """The question in NFC with single spaces."""
    text = question.replace("\0", " ").encode(errors="replace").decode()
    return " ".join(unicodedata.normalize("NFC", text).split())


def question_key(question: str) -> str:
    """Hash that is equal for questions differing only in case and spaces."""
    return hashlib.sha256(normalize_question(question).casefold().encode()).hexdigest()


def row_id(value: str | None) -> int:
    """A value of a form as an id; -1, which no row has, for anything else."""
    number = parse_integer(value or "")
    return -1 if number is None else number


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
    """Stores the grade of `document` for `question`, replacing an earlier one.

    `chunk` is the passage that was shown; without `note`, an earlier note stays. Raises
    InvalidInput for an empty question, an unknown grade, and a document or passage from
    elsewhere.
    """
    question = normalize_question(question)
    if not question or len(question) > MAX_QUERY_CHARACTERS:
        raise InvalidInput(
            gettext("A question has 1 to {limit} characters.").format(
                limit=number_format(MAX_QUERY_CHARACTERS, force_grouping=True)
            ),
            field="question",
        )
    if grade not in Grade.values:
        known = ", ".join(f"{each.value} ({each.label})" for each in Grade)
        raise InvalidInput(
            gettext("There is no grade {grade}. There are: {known}.").format(
                grade=grade, known=known
            ),
            field="grade",
        )
    if document.collection_id != collection.pk:
        raise InvalidInput(
            gettext(
                "The document is not in “{collection}”. Judge it in its own collection."
            ).format(collection=collection),
            field="document",
        )
    if chunk is not None and chunk.document_id != document.pk:
        raise InvalidInput(gettext("The passage is not of this document."), field="chunk")
    values: dict[str, Any] = {
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
            defaults=values,
            create_defaults={"question": question, **values},
        )
        record_judgement(Action.JUDGED, judgement, user=user)
    return judgement


def remove_judgement(*, collection: Collection, question: str, document: Document) -> None:
    """Removes the judgement, if there is one."""
    rows = Judgement.objects.filter(
        collection=collection, question_sha256=question_key(question), document=document
    )
    with transaction.atomic():
        for row in rows.select_for_update():
            record_judgement(Action.TAKEN_BACK, row)
            row.delete()


def record_judgement(action: Action, judgement: Judgement, *, user: Any = None) -> None:
    """Records the judgement in the audit log."""
    record_change(
        action=action,
        kind=Kind.JUDGEMENT,
        workspace_id=judgement.workspace_id,
        object_id=judgement.pk,
        collection_id=judgement.collection_id,
        document_id=judgement.document_id,
        values={"grade": Grade(judgement.grade)},
        user=user,
    )
