"""The base of all errors that are meant for a person or a program, not for a traceback."""


class RagsiteError(Exception):
    """Something that the caller can act on: `str(error)` says what is wrong and the cure.

    `code` is stable and machine-readable; `status` is the HTTP status a request gets for it, and
    `retry_after` the seconds after which it may be worth another try.
    """

    code = "error"
    status = 400
    retry_after: int | None = None


class InvalidInput(RagsiteError):
    """The request names something that cannot be; `field` says where."""

    code = "invalid"

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class NotFound(RagsiteError):
    """The named thing does not exist, or not for this user: both look the same on purpose."""

    code = "not_found"
    status = 404


class Forbidden(RagsiteError):
    """The user is known, and may not do this."""

    code = "permission_denied"
    status = 403


class Conflict(RagsiteError):
    """The thing is there already, or changed meanwhile."""

    code = "conflict"
    status = 409
