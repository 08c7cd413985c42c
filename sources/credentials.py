"""Passwords and tokens of sources, encrypted by a key that is not in the database. Begin with
`encrypt`.

The keys are RAGSITE_CREDENTIALS_KEYS, the newest first, else made from the site's secret key.
Former keys still decrypt, so that a key can be changed: `manage.py sources encrypt` writes all
anew.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from common.errors import RagsiteError


class UnreadableCredentials(RagsiteError):
    """They were encrypted by a key that is not here."""

    code = "credentials_unreadable"
    status = 409


def encrypt(credentials: Mapping[str, str]) -> bytes:
    """The credentials by name, for the database; empty where there are none."""
    if not credentials:
        return b""
    return _ciphers().encrypt(json.dumps(dict(credentials)).encode())


def decrypt(stored: bytes | memoryview) -> dict[str, str]:
    """Raises UnreadableCredentials, such as after a restore without the key."""
    if not stored:
        return {}
    try:
        plain: dict[str, str] = json.loads(_ciphers().decrypt(bytes(stored)))
    except InvalidToken as error:
        raise UnreadableCredentials(
            "The passwords of this source cannot be read: they were kept with another key. Set"
            " RAGSITE_CREDENTIALS_KEYS to that one, or enter them anew."
        ) from error
    return plain


def _ciphers() -> MultiFernet:
    secrets = settings.CREDENTIALS_KEYS or [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_key(secret)) for secret in secrets])


@cache  # it takes 80 ms
def _key(secret: str) -> bytes:
    """Any text makes a key, of the 32 bytes that Fernet wants."""
    digest = hashlib.scrypt(secret.encode(), salt=b"ragsite credentials", n=2**14, r=8, p=1)
    return base64.urlsafe_b64encode(digest[:32])
