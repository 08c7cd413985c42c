"""Contexts that state a fact which has ended: they are put before no model any more."""

import re

from django.db.models import Q

from memory.extraction.languages import LANGUAGES
from memory.extraction.messages import UserMessage
from memory.extraction.rules import extract_by_rules
from memory.fact_keys import InvalidKey, fact_key
from memory.models import Context, Fact, Origin
from memory.scopes import UserScope

#: Contexts looked at for each fact, the latest first.
MAX_EXAMINED = 200


def mark_outdated(fact: Fact) -> int:
    """Mark contexts that state `fact` or repeat it in an answer, as of its end; returns how many.

    These are the turn that it was learnt from, those in which the rules read it, and answers with
    the value to a question of the user about themselves that does not mention it. What was said
    after the end stays.
    """
    scope = UserScope(fact.workspace_id, fact.user_id)
    subject = _subject(fact)
    mentions = Q(user_message__icontains=subject) | Q(assistant_response__icontains=subject)
    rows = Context.objects.of(scope).filter(outdated_at=None, created_at__lte=fact.valid_to)
    rows = rows.filter(Q(pk=fact.source_id) | mentions).only(
        "user_message", "assistant_response", "created_at"
    )
    latest = rows.order_by("-created_at", "-pk")[:MAX_EXAMINED]
    stale = [
        row.pk
        for row in latest
        if row.pk == fact.source_id or _states(row, fact) or _repeats(row, fact, subject)
    ]
    return Context.objects.filter(pk__in=stale).update(outdated_at=fact.valid_to)


def _subject(fact: Fact) -> str:
    """What texts about the fact mention: of “loves Chinese food” under `opinion_of_chinese_food`
    the last two words, else the value.
    """
    words = fact.value.split()
    for start in range(1, len(words)):
        rest = " ".join(words[start:])
        try:
            if fact.key.endswith(f"_{fact_key(rest)}"):
                return rest
        except InvalidKey:
            continue
    return fact.value


def _states(row: Context, fact: Fact) -> bool:
    found = extract_by_rules([UserMessage(row.user_message, row.created_at)])
    return any((key, value) == (fact.key, fact.value) for key, value, _ in found.facts)


def _repeats(row: Context, fact: Fact, subject: str) -> bool:
    whole = re.compile(rf"(?<!\w){re.escape(subject)}(?!\w)", re.IGNORECASE)
    if row.created_at < fact.valid_from or whole.search(row.user_message):
        return False
    # Only English and German are known; a chat model may have read any language.
    about_oneself = fact.origin == Origin.MODEL or any(
        language.patterns["first_person"].search(row.user_message) for language in LANGUAGES
    )
    return about_oneself and whole.search(row.assistant_response) is not None
