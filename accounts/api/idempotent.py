"""`Idempotency-Key`: a request that is sent again gets the first answer. Begin with
`idempotent`.
"""

import json
from collections.abc import Callable
from functools import wraps
from hashlib import sha256
from hmac import new as new_hmac
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import idempotency
from common.parsers import IDEMPOTENCY_KEY

if TYPE_CHECKING:
    from accounts.api.base import WorkspaceView

IDEMPOTENCY_HEADER = OpenApiParameter(
    IDEMPOTENCY_KEY,
    {
        "type": "string",
        "minLength": 1,
        "maxLength": idempotency.MAX_KEY_CHARACTERS,
        "pattern": "^[ -~]+$",
    },
    OpenApiParameter.HEADER,
    description="Your own unique name for this request, such as a UUID. If it is sent again"
    " with the same body within 24 hours, the answer is the same and nothing is"
    " done.",
)
#: These depend on the caller and the moment, and are better asked anew.
NOT_STORED_STATUSES = {401, 403, 424, 429}

Handler = Callable[..., Response]


def idempotent(handler: Handler) -> Handler:
    """Make a handler of a `WorkspaceView` obey `Idempotency-Key`: a repeated request gets the first
    answer.

    Failures of the site (5xx), and answers that depend on the caller (401, 403, 429) or on a place
    outside (424), are not stored.
    """

    @wraps(handler)
    def guarded(self: "WorkspaceView", *args: Any, **kwargs: Any) -> Response:
        key = self.request.headers.get(IDEMPOTENCY_KEY)
        if key is None:
            return handler(self, *args, **kwargs)
        idempotency.check_key(key)
        turn = idempotency.claim_or_replay(
            user=self.request.user,
            workspace=self.workspace,
            key=key,
            fingerprint=fingerprint(self.request),
        )
        if turn.status is not None:
            headers = {"Idempotency-Replayed": "true"}
            if turn.location:
                headers["Location"] = turn.location
            data = json.loads(turn.body) if turn.body else None
            return Response(data, status=turn.status, headers=headers)
        mine = idempotency.claimed(turn)
        try:
            with idempotency.renew_lease(turn):
                try:
                    response = handler(self, *args, **kwargs)
                except Exception as error:
                    response = self.handle_exception(error)
        except BaseException:
            mine.delete()
            raise
        if response.status_code >= 500 or response.status_code in NOT_STORED_STATUSES:
            mine.delete()
        else:
            mine.update(
                status=response.status_code,
                body=JSONRenderer().render(response.data).decode(),
                location=response.headers.get("Location", ""),
            )
        return response

    guarded.is_once = True  # type: ignore[attr-defined]  # for the description
    return guarded


def fingerprint(request: Request) -> str:
    """Keyed SHA-256 of a request's address and body, from which nobody who reads the database can
    guess a password in it. Of a form its fields and files are hashed, because
    the boundaries between parts differ each time the same form is sent.
    """
    digest = new_hmac(settings.SECRET_KEY.encode(), digestmod=sha256)

    def add(part: Any) -> None:
        data = part if isinstance(part, bytes) else str(part).encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8) + data)

    data = request.data
    add(request.method)
    add(request.get_full_path())
    add(getattr(request, "body_sha256", ""))
    if hasattr(data, "lists"):
        for name, values in sorted(data.lists()):
            for value in values:
                add(name)
                if not isinstance(value, UploadedFile):
                    add(value)
                    continue
                content = sha256()
                for piece in value.chunks():
                    content.update(piece)
                value.seek(0)
                for part in (value.name, value.size, content.digest()):
                    add(part)
    return digest.hexdigest()
