"""Signed webhooks: what others send to start a run, and what the site sends. Begin with `verify`.

Ours are those of https://www.standardwebhooks.com: HMAC-SHA256 over id, time and body. GitHub signs
the body alone, GitLab shows a token; both are taken too.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping

from django.utils.translation import gettext

from common.errors import RagsiteError
from common.translation import format_number

SECRET_PREFIX = "whsec_"  # noqa: S105 (how a secret begins, as the standard says)
SECRET_BYTES = 32
#: How far a signed time may be from ours, either way: what is older was recorded and sent again.
MAX_AGE_SECONDS = 300
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
GITHUB_SIGNATURE = "x-hub-signature-256"
GITLAB_TOKEN = "x-gitlab-token"  # noqa: S105 (the name of a header)


class BadSignature(RagsiteError):
    """A call that is not signed with the secret, or was signed long ago."""

    code = "bad_signature"
    status = 401


def new_secret() -> str:
    """A random secret, as it is shown once."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign(body: bytes, *, secret: str, message_id: str, at: int) -> dict[str, str]:
    """Headers of a call with this body at `at`, in seconds since 1970."""
    digest = hmac.digest(_key(secret), _signed(message_id, str(at), body), hashlib.sha256)
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {ID: message_id, TIMESTAMP: str(at), SIGNATURE: signature}


def verify(body: bytes, headers: Mapping[str, str], *, secret: str) -> None:
    """Raise BadSignature unless the call was signed with the secret, or shows it.

    `headers` are found by lower-case names. Without a secret nothing is right.
    """
    if not secret:
        raise _bad()
    if given := headers.get(SIGNATURE, ""):
        _check_time(headers.get(TIMESTAMP, ""))
        digest = hmac.digest(
            _key(secret), _signed(headers.get(ID, ""), headers[TIMESTAMP], body), hashlib.sha256
        )
        wanted = f"v1,{base64.b64encode(digest).decode()}"
        matches = [_equal(each, wanted) for each in given.split(" ")]
    elif given := headers.get(GITHUB_SIGNATURE, ""):
        matches = [_equal(given, "sha256=" + hmac.new(secret.encode(), body, "sha256").hexdigest())]
    else:
        matches = [_equal(headers.get(GITLAB_TOKEN, ""), secret)]
    if not any(matches):
        raise _bad()


def _check_time(text: str) -> None:
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise _bad()
    age = abs(time.time() - int(text))
    if age > MAX_AGE_SECONDS:
        raise BadSignature(
            gettext(
                "The timestamp of the call is {age} seconds off; {limit} are allowed. Sign each"
                " call anew, and set the clock of the machine that sends it."
            ).format(age=format_number(age), limit=MAX_AGE_SECONDS)
        )


def _bad() -> BadSignature:
    return BadSignature(
        gettext(
            "The signature of the call does not match the secret of this source. Send `{id}`,"
            " `{timestamp}` and `{signature}`, or the headers of GitHub or GitLab."
        ).format(id=ID, timestamp=TIMESTAMP, signature=SIGNATURE)
    )


def _signed(message_id: str, at: str, body: bytes) -> bytes:
    return f"{message_id}.{at}.".encode() + body


def _key(secret: str) -> bytes:
    """The bytes that the secret stands for; those of any other text are its letters."""
    try:
        if secret.startswith(SECRET_PREFIX):
            return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        pass
    return secret.encode()


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogateescape"), wanted.encode())
