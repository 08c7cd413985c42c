"""Base of all errors that are meant for users and programs."""


class ExplainedError(Exception):
    """An error whose `str(error)` says what is wrong and the cure; commands and admins show it."""


class RagsiteError(ExplainedError):
    """An error of a request that the caller can act on.

    `code` is stable and machine-readable; `status` is the HTTP status, and `retry_after` the
    seconds after which a retry may help.
    """

    code = "error"
    status = 400
    retry_after: int | None = None


class InvalidInput(RagsiteError):
    """A value of the request is invalid; `field` says where."""

    code = "invalid"

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class NotFound(RagsiteError):
    """The named object does not exist, or is not visible to this user: both look the same on
    purpose.
    """

    code = "not_found"
    status = 404


class Forbidden(RagsiteError):
    """The user is known but lacks the right."""

    code = "permission_denied"
    status = 403


class Conflict(RagsiteError):
    """The object exists already, or was changed meanwhile."""

    code = "conflict"
    status = 409


class EmbedderUnavailable(RagsiteError):
    """A vector is needed, and the embedding model does not work."""

    code = "embedder_unavailable"
    status = 503
