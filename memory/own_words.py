"""What a user said, without what this site put behind it."""

from django.conf import settings
from django.utils.crypto import salted_hmac

from memory.injection import without_own_block


def sealing_keys() -> tuple[bytes, ...]:
    """What blocks of memory are tagged with: from SECRET_KEY, and from former ones to know them."""
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return tuple(
        salted_hmac("memory.injection", "", secret=secret, algorithm="sha256").digest()
        for secret in secrets
    )


def own_words(text: str) -> str:
    """`text` without the block of memory that this site put at its end, if it did."""
    return without_own_block(text, keys=sealing_keys())
