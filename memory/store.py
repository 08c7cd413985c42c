"""Writing contexts and facts: checks, deduplication, and a history without gaps or overlaps.

Begin with `put_context` and `put_fact`. No events and no embedding: see `memory.services`.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.formats import number_format
from django.utils.translation import gettext

from common.errors import InvalidInput, RagsiteError
from documents.languages import configuration, detect_language
from memory.fact_keys import fact_key
from memory.injection import strip_signed_block
from memory.models import Context, Fact, Origin
from memory.scopes import UserScope

#: A day within Python's years in every time zone: PostgreSQL's reach further on both ends, and a
#: row that cannot be read back would hide all others of its user.
FIRST_YEAR, LAST_YEAR = 2, 9998


def as_utc(at: datetime | None, *, field: str = "at") -> datetime:
    """`at` in UTC, by default now. Raises InvalidInput for a time without a zone, or out
    of range.
    """
    if at is None:
        return timezone.now()
    if timezone.is_naive(at):
        raise InvalidInput(
            gettext("“{at}” has no time zone. Add one, such as Z for UTC.").format(at=at),
            field=field,
        )
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise InvalidInput(
            gettext("The year must be from {first_year} to {last_year}, not {year}.").format(
                first_year=FIRST_YEAR, last_year=LAST_YEAR, year=at.year
            ),
            field=field,
        )
    return at.astimezone(UTC)


def signing_keys() -> tuple[bytes, ...]:
    """Keys that sign blocks of memory, derived from SECRET_KEY and its fallbacks."""
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return tuple(
        salted_hmac("memory.injection", "", secret=secret, algorithm="sha256").digest()
        for secret in secrets
    )


def strip_injected_memory(text: str) -> str:
    """`text` without the signed block of memory that this site appended, if there is one."""
    return strip_signed_block(text, keys=signing_keys())


def lock_facts(scope: UserScope) -> None:
    """Lock this user's facts until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))",
            [f"memory facts of {scope.user_id}", scope.workspace_id],
        )


#: Larger texts are documents. PostgreSQL refuses a search vector of 1 MB.
MAX_TEXT_BYTES = 100_000
REPLACEMENT = "\ufffd"


def storable_text(text: str, *, field: str) -> str:
    """`text` with characters that PostgreSQL cannot store replaced by �. Raises InvalidInput where
    it is too long.
    """
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = text.replace("\0", REPLACEMENT)
    size = len(text.encode())
    if size > MAX_TEXT_BYTES:
        raise InvalidInput(
            gettext(
                "This text has {size} bytes; a memory can have {limit}. Add it as a"
                " document instead."
            ).format(
                size=number_format(size, force_grouping=True),
                limit=number_format(MAX_TEXT_BYTES, force_grouping=True),
            ),
            field=field,
        )
    return text


def checked_name(text: str, *, field: str, limit: int = 255) -> str:
    """A caller's name, such as that of a conversation. Raises InvalidInput."""
    cleaned = storable_text(text, field=field)
    if len(cleaned) > limit:
        raise InvalidInput(
            gettext("A name has at most {limit} characters; this one has {length}.").format(
                limit=limit, length=number_format(len(cleaned), force_grouping=True)
            ),
            field=field,
        )
    return cleaned


def content_digest(*parts: str) -> str:
    """SHA-256 of the parts and their boundaries."""
    whole = sha256()
    for part in parts:
        data = part.encode()
        whole.update(len(data).to_bytes(8) + data)
    return whole.hexdigest()


def search_configuration(text: str, *, scope: UserScope) -> str:
    """The text search configuration for `text`.

    A turn is often too short to detect its language: it then gets that of the user's last turn, and
    the first one that of the site.
    """
    code = detect_language(text)
    if code:
        return configuration(code)
    last = Context.objects.of(scope).order_by("-created_at", "-id")
    return last.values_list("language", flat=True).first() or configuration(
        settings.FALLBACK_LANGUAGE
    )


# One statement, so that two concurrent requests store a turn once. A repeated turn gets the later
# time, never an earlier one.
_UPSERT_CONTEXT = """
    INSERT INTO memory_context AS kept
        (workspace_id, user_id, conversation, user_message, assistant_response, created_at,
         content_sha256, origin, language, embed_attempts)
    VALUES (%(workspace)s, %(user)s, %(conversation)s, %(question)s, %(answer)s, %(moment)s,
            %(digest)s, %(origin)s, %(language)s::regconfig, 0)
    ON CONFLICT (workspace_id, user_id, content_sha256) DO UPDATE
    SET created_at = greatest(kept.created_at, excluded.created_at),
        conversation = CASE WHEN excluded.created_at >= kept.created_at
                            THEN excluded.conversation ELSE kept.conversation END
    RETURNING id, xmax = 0, embedding IS NULL
"""


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """The context's id, whether it is new, and whether it still has to be embedded."""

    id: int
    is_new: bool
    needs_embedding: bool


def put_context(
    *,
    scope: UserScope,
    user_message: str,
    assistant_response: str = "",
    conversation: str = "",
    at: datetime | None = None,
    origin: str = Origin.TURN,
) -> ArchiveResult:
    """Store a turn at `at`, by default now. The same turn again only gets a later time.

    Raises InvalidInput for one without any text, or with too much of it.
    """
    question = storable_text(strip_injected_memory(user_message), field="user_message")
    answer = storable_text(assistant_response, field="assistant_response")
    if not (question.strip() or answer.strip()):
        raise InvalidInput(
            gettext("The text is empty. Send some text to remember."), field="user_message"
        )
    parameters: dict[str, Any] = {
        "workspace": scope.workspace_id,
        "user": scope.user_id,
        "conversation": checked_name(conversation, field="conversation"),
        "question": question,
        "answer": answer,
        "moment": as_utc(at),
        "digest": content_digest(question, answer),
        "origin": origin,
        "language": search_configuration(f"{question}\n{answer}", scope=scope),
    }
    with connection.cursor() as cursor:
        cursor.execute(_UPSERT_CONTEXT, parameters)
        return ArchiveResult(*cursor.fetchone())


class TooManyFacts(RagsiteError):
    """The user's quota of facts, history included, is used up."""

    code = "quota_used_up"
    status = 409


@dataclass(frozen=True, slots=True)
class FactChange:
    """The fact, whether it changed, and the value that it superseded."""

    fact: Fact
    changed: bool
    superseded: Fact | None = None


def put_fact(
    *,
    scope: UserScope,
    key: str,
    value: str,
    at: datetime | None = None,
    source: Context | None = None,
    origin: str = Origin.GIVEN,
    corrects: bool = False,
) -> FactChange:
    """`key` is `value` since `at`; see `memory.services.set_fact`. Raises InvalidInput and
    TooManyFacts.
    """
    name = fact_key(key)
    said = storable_text(value, field="value").strip()
    if not said:
        raise InvalidInput(
            gettext(
                "A fact needs a value. End the fact if it is no longer true, or forget it to"
                " remove it."
            ),
            field="value",
        )
    moment = min(as_utc(at), timezone.now())
    language = search_configuration(said, scope=scope)
    with transaction.atomic():
        lock_facts(scope)
        rows = list(Fact.objects.of(scope).filter(key=name).defer("embedding").latest_first())
        before = next((row for row in rows if row.valid_from <= moment), None)
        after = next((row for row in reversed(rows) if row.valid_from > moment), None)
        if before is not None and before.value == said and _is_valid_at(before, moment):
            # Record that the same value was given again.
            before.confirmed_at = max(before.confirmed_at, moment)
            before.save(update_fields=["confirmed_at"])
            return FactChange(before, changed=False)
        if after is not None and after.value == said:
            return FactChange(_extend_backwards(before, after, moment), changed=True)
        if Fact.objects.of(scope).count() >= settings.MEMORY_MAX_FACTS:
            raise TooManyFacts(
                gettext(
                    "This user has reached the limit of {limit} facts, including"
                    " history. Forget some first."
                ).format(limit=number_format(settings.MEMORY_MAX_FACTS, force_grouping=True))
            )
        if source is not None:
            # Locked until the fact is stored; None where it was deleted, or is another user's.
            sources = Context.objects.of(scope).select_for_update().only("pk")
            source = sources.filter(pk=source.pk).first()
        fact = Fact(
            workspace_id=scope.workspace_id,
            user_id=scope.user_id,
            key=name,
            value=said,
            valid_from=moment,
            confirmed_at=moment,
            source=source,
            origin=origin,
            language=language,
        )
        rest = None if corrects else _confirmed_remainder(before, moment)
        return FactChange(fact, changed=True, superseded=_insert(fact, before, rest, after))


def _is_valid_at(fact: Fact, moment: datetime) -> bool:
    return fact.valid_to is None or fact.valid_to > moment


def _insert(fact: Fact, before: Fact | None, rest: Fact | None, after: Fact | None) -> Fact | None:
    """Insert `fact` between its neighbours; returns the one before where that ends by it."""
    ended = end_fact(before, fact.valid_from)
    if ended is None and before is not None and before.valid_to == fact.valid_from:
        # It was ended at this moment, to be replaced.
        is_replaced = before.superseded_by_id is None and before.value != fact.value
        ended = before if is_replaced else None
    if rest is not None:
        rest.save(force_insert=True)
        after = rest
    if after is not None:
        fact.valid_to, fact.superseded_by = after.valid_from, after
    fact.save(force_insert=True)
    if ended is not None:
        ended.superseded_by = fact
        ended.save(update_fields=["superseded_by"])
    return ended


def _confirmed_remainder(before: Fact | None, moment: datetime) -> Fact | None:
    """The remainder of the former value, where it was confirmed after `moment`: it holds again from
    then on.
    """
    if before is None or not _is_valid_at(before, moment) or before.confirmed_at <= moment:
        return None
    return Fact(
        workspace_id=before.workspace_id,
        user_id=before.user_id,
        key=before.key,
        value=before.value,
        valid_from=before.confirmed_at,
        valid_to=before.valid_to,
        confirmed_at=before.confirmed_at,
        superseded_by_id=before.superseded_by_id,
        source_id=before.source_id,
        origin=before.origin,
        language=before.language,
    )


def end_value(*, scope: UserScope, key: str, at: datetime) -> Fact | None:
    """End the value that `key` has at `at`; None where it has none. If it was confirmed later, it
    holds again from then on. The caller has locked the user's facts.
    """
    rows = Fact.objects.of(scope).filter(key=key, valid_from__lte=at).defer("embedding")
    before = rows.latest_first().first()
    rest = _confirmed_remainder(before, at)
    ended = end_fact(before, at)
    if rest is not None:
        rest.save(force_insert=True)
    return ended


def end_fact(fact: Fact | None, moment: datetime) -> Fact | None:
    """End `fact` at `moment` where it would hold longer; None where there is nothing to end. The
    caller has locked the user's facts.
    """
    if fact is None or not _is_valid_at(fact, moment):
        return None
    fact.valid_to = max(moment, fact.valid_from)
    fact.confirmed_at = min(fact.confirmed_at, fact.valid_to)
    fact.save(update_fields=["valid_to", "confirmed_at"])
    return fact


def _extend_backwards(before: Fact | None, after: Fact, moment: datetime) -> Fact:
    """The same value was given for an earlier time: extend it backwards."""
    ended = end_fact(before, moment)
    if ended is not None:
        Fact.objects.filter(pk=ended.pk).update(superseded_by=after)
    after.valid_from = moment
    after.save(update_fields=["valid_from"])
    return after
