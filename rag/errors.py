"""Errors while an answer is made, with codes and messages a client can act on. Begin with
`failure_event`."""

import logging

from django.utils.translation import gettext, gettext_noop

from common.errors import RagsiteError
from common.leases import DatabaseUnavailable
from common.stored_messages import translated_message
from inference.interfaces import (
    AnswerRefused,
    BackendUnavailable,
    EmptyAnswer,
    InferenceError,
    MalformedAnswer,
)
from rag.events import Failed

logger = logging.getLogger(__name__)

#: Error class → code, HTTP status, and the text for the client, empty for the error's own: that one
#: may quote the model server and its address, which are the operator's.
_MODEL_ERRORS: tuple[tuple[type[InferenceError], str, int, str], ...] = (
    (AnswerRefused, "model_refused", 422, ""),
    (EmptyAnswer, "model_empty", 502, ""),
    (
        MalformedAnswer,
        "model_malformed",
        502,
        gettext_noop(
            "The chat model sent an unreadable answer. The log of the site has the details."
        ),
    ),
    (
        BackendUnavailable,
        "model_unavailable",
        503,
        gettext_noop(
            "The chat model does not respond at the moment. Ask again shortly. The log of the site"
            " has the details."
        ),
    ),
    (
        InferenceError,
        "model_error",
        502,
        gettext_noop("The chat model refused the request. The log of the site has the details."),
    ),
)


class ModelFailed(RagsiteError):
    """A chat model failed; `code` and `status` depend on the kind of failure."""

    def __init__(self, error: InferenceError) -> None:
        self.code, self.status, message = next(
            (code, status, message)
            for kind, code, status, message in _MODEL_ERRORS
            if isinstance(error, kind)
        )
        if message:
            logger.warning("%s: %s", self.code, error)
        own = str(error)
        super().__init__(
            gettext(message) if message else translated_message(own[:1].upper() + own[1:])
        )


class NoChatModel(RagsiteError):
    """Something was requested that needs a chat model."""

    code = "no_chat_model"
    status = 409

    def __init__(self, what: str) -> None:
        super().__init__(
            gettext(
                "{what} needs a chat model, and none is connected. Set CHAT_BACKEND and"
                " CHAT_OPTIONS, or name a model in the request."
            ).format(what=what)
        )


def failure_event(error: Exception) -> Failed:
    """The event for an error. Unexpected errors are logged, and their text is not sent to the
    client."""
    if isinstance(error, InferenceError) and not isinstance(error, RagsiteError):
        error = ModelFailed(error)
    if isinstance(error, RagsiteError):
        return Failed(error.code, str(error), error.status)
    logger.exception("an answer failed", exc_info=error)
    if isinstance(error, DatabaseUnavailable.CAUSES):
        away = DatabaseUnavailable()
        return Failed(away.code, str(away), away.status)
    return Failed(
        "internal_error",
        gettext("The site has an internal error. The log of the site has the details."),
        500,
    )
