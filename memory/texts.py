"""What may be kept of a text, which language it is in, and when two are the same."""

from hashlib import sha256

from django.conf import settings

from common.errors import InvalidInput
from documents.languages import configuration, detect_language
from memory.models import Context
from memory.scopes import UserScope

#: Larger texts are documents. PostgreSQL refuses a search vector of 1 MB.
MAX_TEXT_BYTES = 100_000
REPLACEMENT = "\ufffd"


def storable(text: str, *, field: str) -> str:
    """`text` with what PostgreSQL cannot hold shown as �. Raises InvalidInput where it is too
    long."""
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = text.replace("\0", REPLACEMENT)
    size = len(text.encode())
    if size > MAX_TEXT_BYTES:
        raise InvalidInput(
            f"This text has {size:,} bytes and a memory at most {MAX_TEXT_BYTES:,}. Add it as a"
            " document instead.",
            field=field,
        )
    return text


def name(text: str, *, field: str, most: int = 255) -> str:
    """A caller's name for something, such as a conversation. Raises InvalidInput."""
    cleaned = storable(text, field=field)
    if len(cleaned) > most:
        raise InvalidInput(
            f"A name has at most {most} characters, this one has {len(cleaned):,}.", field=field
        )
    return cleaned


def digest(*parts: str) -> str:
    """SHA-256 of the parts; where one ends and the next begins counts."""
    whole = sha256()
    for part in parts:
        data = part.encode()
        whole.update(len(data).to_bytes(8) + data)
    return whole.hexdigest()


def search_configuration(text: str, *, scope: UserScope) -> str:
    """The text search configuration that `text` is indexed by.

    A turn is often too short to tell its language: it is then in the one of the user's last turn,
    and the first one in the site's.
    """
    code = detect_language(text)
    if code:
        return configuration(code)
    last = Context.objects.of(scope).order_by("-created_at", "-id")
    return last.values_list("language", flat=True).first() or configuration(
        settings.FALLBACK_LANGUAGE
    )
