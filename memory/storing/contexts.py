"""Contexts: a turn is kept once a user."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from common.errors import InvalidInput
from memory import texts
from memory.models import Origin
from memory.moments import moment
from memory.own_words import own_words
from memory.scopes import UserScope

# One statement, so that two requests with the same turn keep it once. A turn said again is as
# fresh as then; one that is told later of an earlier time is not made older.
_STORE = """
    INSERT INTO memory_context AS kept
        (workspace_id, user_id, conversation, user_message, assistant_response, created_at,
         content_sha256, origin, language, embed_attempts)
    VALUES (%(workspace)s, %(user)s, %(conversation)s, %(question)s, %(answer)s, %(moment)s,
            %(digest)s, %(origin)s, %(language)s::regconfig, 0)
    ON CONFLICT (workspace_id, user_id, content_sha256) DO UPDATE
    SET created_at = greatest(kept.created_at, excluded.created_at),
        conversation = CASE WHEN excluded.created_at >= kept.created_at
                            THEN excluded.conversation ELSE kept.conversation END
    RETURNING id, xmax = 0, embedding IS NULL
"""


@dataclass(frozen=True, slots=True)
class Archived:
    """The context's id; whether it was new, or only said again; whether it has yet to be
    embedded."""

    id: int
    is_new: bool
    waits: bool


def put_context(
    *,
    scope: UserScope,
    user_message: str,
    assistant_response: str = "",
    conversation: str = "",
    at: datetime | None = None,
    origin: str = Origin.TURN,
) -> Archived:
    """Keep a turn of `at`, by default now. The same turn again only gets a later time.

    Raises InvalidInput for one without any text, or with too much of it.
    """
    question = texts.storable(own_words(user_message), field="user_message")
    answer = texts.storable(assistant_response, field="assistant_response")
    if not (question.strip() or answer.strip()):
        raise InvalidInput("There is no text to remember.", field="user_message")
    parameters: dict[str, Any] = {
        "workspace": scope.workspace_id,
        "user": scope.user_id,
        "conversation": texts.name(conversation, field="conversation"),
        "question": question,
        "answer": answer,
        "moment": moment(at),
        "digest": texts.digest(question, answer),
        "origin": origin,
        "language": texts.search_configuration(f"{question}\n{answer}", scope=scope),
    }
    with connection.cursor() as cursor:
        cursor.execute(_STORE, parameters)
        return Archived(*cursor.fetchone())
