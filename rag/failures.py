"""What goes wrong while an answer is made, in words and codes that a client can act on."""

import logging

from common.errors import RagsiteError
from common.outages import DatabaseUnavailable
from inference.base import (
    AnswerRefused,
    BackendUnavailable,
    EmptyAnswer,
    InferenceError,
    MalformedAnswer,
)
from rag.events import Failed

logger = logging.getLogger(__name__)

_LOG = "The site's log has its own words."
#: Kind → code, HTTP status, and what a client is told where it is not the message itself: that one
#: may quote the model server and its address, which are the operator's.
_MODEL: tuple[tuple[type[InferenceError], str, int, str], ...] = (
    (AnswerRefused, "model_refused", 422, ""),
    (EmptyAnswer, "model_empty", 502, ""),
    (
        MalformedAnswer,
        "model_malformed",
        502,
        f"The chat model's server answered something that makes no sense. {_LOG}",
    ),
    (
        BackendUnavailable,
        "model_unavailable",
        503,
        f"The chat model does not answer just now. Ask again in a moment. {_LOG}",
    ),
    (InferenceError, "model_error", 502, f"The chat model did not take the request. {_LOG}"),
)


class ModelFailed(RagsiteError):
    """A model that did not do what it was asked for."""

    def __init__(self, error: InferenceError) -> None:
        self.code, self.status, told = next(
            (code, status, told) for kind, code, status, told in _MODEL if isinstance(error, kind)
        )
        if told:
            logger.warning("%s: %s", self.code, error)
        super().__init__(told or _sentence(str(error)))


class NoChatModel(RagsiteError):
    """Something was asked for that quotations cannot do."""

    code = "no_chat_model"
    status = 409

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} needs a chat model, and none is connected. Set CHAT_BACKEND and CHAT_OPTIONS,"
            " or ask for one by its name."
        )


def failed(error: Exception, *, trace: int | None = None) -> Failed:
    """The event that says it. What nobody foresaw is logged, and not told to the client."""
    if isinstance(error, InferenceError) and not isinstance(error, RagsiteError):
        error = ModelFailed(error)
    if isinstance(error, RagsiteError):
        return Failed(error.code, str(error), error.status, trace)
    logger.exception("an answer failed", exc_info=error)
    if isinstance(error, DatabaseUnavailable.CAUSES):
        away = DatabaseUnavailable()
        return Failed(away.code, str(away), away.status, trace)
    return Failed("internal_error", "The site made a mistake. Its log has the reason.", 500, trace)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
