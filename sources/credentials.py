"""Passwords and tokens of sources, encrypted by a key that is not in the database. Begin with
`encrypt`.

The keys are RAGSITE_CREDENTIALS_KEYS, the newest first, else made from the site's secret key.
Former keys still decrypt, so that a key can be changed: `manage.py sources encrypt` writes all
anew.
"""

import json
from collections.abc import Mapping

from django.utils.translation import gettext

from common import encryption


class UnreadableCredentials(encryption.UnreadableSecret):
    """They were encrypted by a key that is not here."""


def encrypt(credentials: Mapping[str, str]) -> bytes:
    """The credentials by name, for the database; empty where there are none."""
    return encryption.encrypt(json.dumps(dict(credentials)).encode()) if credentials else b""


def decrypt(stored: bytes | memoryview) -> dict[str, str]:
    """Raises UnreadableCredentials, such as after a restore without the key."""
    if not stored:
        return {}
    try:
        plain: dict[str, str] = json.loads(encryption.decrypt(stored))
    except encryption.UnreadableSecret as error:
        raise UnreadableCredentials(
            gettext(
                "The passwords of this source were encrypted with another key. Add that key to"
                " RAGSITE_CREDENTIALS_KEYS, or enter the passwords again."
            )
        ) from error
    return plain
