"""Encryption of what the database must not show: passwords of sources, secrets of second factors.

The key is not in the database: RAGSITE_CREDENTIALS_KEYS, else one made from the site's secret key.
Former keys still decrypt.
"""

import base64
import hashlib
from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings

from common.errors import RagsiteError
from common.translation import gettext

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet


class UnreadableSecret(RagsiteError):
    """It was encrypted by a key that is not here, such as after a restore without the key."""

    code = "credentials_unreadable"
    status = 409


def encrypt(plain: bytes) -> bytes:
    return _ciphers().encrypt(plain)


def decrypt(stored: bytes | memoryview) -> bytes:
    """Raises UnreadableSecret."""
    from cryptography.fernet import InvalidToken  # noqa: PLC0415 (few processes need it)

    try:
        return _ciphers().decrypt(bytes(stored))
    except InvalidToken as error:
        raise UnreadableSecret(
            gettext(
                "The secret was encrypted with another key. Add that key to"
                " RAGSITE_CREDENTIALS_KEYS."
            )
        ) from error


def _ciphers() -> "MultiFernet":
    from cryptography.fernet import Fernet, MultiFernet  # noqa: PLC0415

    secrets = settings.CREDENTIALS_KEYS or [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_key(secret)) for secret in secrets])


@cache  # it takes 80 ms
def _key(secret: str) -> bytes:
    """Any text makes a key, of the 32 bytes that Fernet wants."""
    digest = hashlib.scrypt(secret.encode(), salt=b"ragsite credentials", n=2**14, r=8, p=1)
    return base64.urlsafe_b64encode(digest[:32])
