"""Every chat model that works for a workspace is a `MeteredChat`, which counts its tokens by
workspace, user, model, purpose and day, and towards the limits. Begin with `metered_chat`."""

import logging
from collections.abc import Generator, Sequence
from contextlib import closing
from datetime import timedelta
from typing import Unpack

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections, router, transaction
from django.utils import timezone

from common.rls import bypass_rls
from common.sql import release_connection
from inference.cancellation import Cancelled
from inference.chat_models import chat_model
from inference.interfaces import (
    AnswerRefused,
    ChatMessage,
    ChatModel,
    ChatOptions,
    EmptyAnswer,
    MalformedAnswer,
    Usage,
)
from inference.reasoning import Part
from inference.tokens import EstimatedTokens
from model_servers.models import ModelUsage
from model_servers.token_limits import count_tokens

logger = logging.getLogger(__name__)

Purpose = ModelUsage.Purpose
#: Errors after which the model has read the prompt all the same.
_WORKED = (Cancelled, AnswerRefused, EmptyAnswer, MalformedAnswer)

# One statement, so that calls at the same time lose nothing; of a workspace that was deleted
# meanwhile nothing is kept.
_ADD = """
    INSERT INTO model_servers_modelusage AS kept
        (workspace_id, user_id, model, purpose, day, calls, estimated_calls, input_tokens,
         output_tokens, cost)
    SELECT id, %s, %s, %s, %s, 1, %s, %s, %s, %s FROM accounts_workspace WHERE id = %s
    ON CONFLICT (day, workspace_id, user_id, model, purpose) DO UPDATE SET
        calls = kept.calls + 1,
        estimated_calls = kept.estimated_calls + excluded.estimated_calls,
        input_tokens = kept.input_tokens + excluded.input_tokens,
        output_tokens = kept.output_tokens + excluded.output_tokens,
        cost = coalesce(kept.cost + excluded.cost, kept.cost, excluded.cost)
"""


def metered_chat(
    name: str = "", *, workspace_id: int, user_id: int | None = None, purpose: Purpose
) -> "MeteredChat | None":
    """The chat model of this name, as `chat_model` finds it, with its tokens counted."""
    model = chat_model(name, workspace_id=workspace_id)
    if model is None:
        return None
    return MeteredChat(model, workspace_id=workspace_id, user_id=user_id, purpose=purpose)


class MeteredChat:
    """A chat model whose calls are counted once each, also those that are cancelled in the middle
    or fail after the model has begun; where the server says no numbers they are estimated."""

    def __init__(
        self, model: ChatModel, *, workspace_id: int, user_id: int | None = None, purpose: Purpose
    ) -> None:
        self._model = model
        self.model_name = model.model_name
        self._workspace_id, self._user_id = workspace_id, user_id
        self._purpose = purpose

    @property
    def context_tokens(self) -> int | None:
        """What is known now: a server may have told only when it refused."""
        known: int | None = getattr(self._model, "context_tokens", None)
        return known

    def complete(
        self, messages: Sequence[ChatMessage], **options: Unpack[ChatOptions]
    ) -> ChatMessage:
        try:
            message = self._model.complete(messages, **options)
        except _WORKED:
            self._count(messages, "")
            raise
        self._count(messages, message)
        return message

    def stream(
        self, messages: Sequence[ChatMessage], **options: Unpack[ChatOptions]
    ) -> Generator[Part, None, ChatMessage]:
        said: list[str] = []
        try:
            with closing(self._model.stream(messages, **options)) as parts:
                while True:
                    try:
                        part = next(parts)
                    except StopIteration as end:
                        message: ChatMessage = end.value
                        break
                    said.append(part if isinstance(part, str) else part.text)
                    yield part
        except BaseException as error:  # also that nobody waits for the rest
            if said or isinstance(error, _WORKED):
                self._count(messages, "".join(said))
            raise
        self._count(messages, message)
        return message

    def _count(self, messages: Sequence[ChatMessage], answer: ChatMessage | str) -> None:
        """Add a call that gave the whole `answer`, or its beginning as text. Never raises: the
        answer is there."""
        usage = None if isinstance(answer, str) else answer.usage
        is_estimated = usage is None
        if usage is None:
            said = answer if isinstance(answer, str) else _text(answer) + answer.reasoning
            counter = EstimatedTokens(0)
            usage = Usage(sum(counter.count(_text(each)) for each in messages), counter.count(said))
        tokens = usage.input_tokens + usage.output_tokens
        count_tokens(tokens, workspace_id=self._workspace_id, user_id=self._user_id)
        read: float | None = getattr(self._model, "input_price", None)
        written: float | None = getattr(self._model, "output_price", None)
        cost = None
        if read is not None or written is not None:
            cost = ((read or 0) * usage.input_tokens + (written or 0) * usage.output_tokens) / 1e6
        alias = router.db_for_write(ModelUsage)
        was_open = connections[alias].connection is not None
        values = [
            self._user_id,
            self.model_name[:200],
            self._purpose,
            timezone.localdate(),
            int(is_estimated),
            usage.input_tokens,
            usage.output_tokens,
            cost,
            self._workspace_id,
        ]
        try:
            # The statement names its workspace itself, which the work is for.
            with (
                bypass_rls(),
                transaction.atomic(using=alias),
                connections[alias].cursor() as cursor,
            ):
                cursor.execute(_ADD, values)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("the tokens of a call of %s are not kept: %s", self.model_name, error)
        finally:
            if not was_open:
                release_connection()  # as it was: the next call may be slow


def _text(message: ChatMessage) -> str:
    calls = (f"{call.name}{call.arguments}" for call in message.tool_calls)
    return "".join([message.content, *calls])


def prune_usage() -> int:
    """Delete rows older than RAGSITE_MODEL_USAGE_DAYS; returns how many."""
    oldest = timezone.localdate() - timedelta(days=settings.MODEL_USAGE_DAYS)
    return ModelUsage.objects.filter(day__lt=oldest).delete()[0]
