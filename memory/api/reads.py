"""The rows that the API shows, without what only a search reads."""

from datetime import datetime

from django.db.models import Func, IntegerField, QuerySet

from memory.keys import fact_key
from memory.models import Context, ExtractionItem, Fact
from memory.querysets import FactQuerySet
from memory.scopes import UserScope


def contexts(scope: UserScope | None, *, conversation: str | None = None) -> QuerySet[Context]:
    """What the user said, in one conversation or all."""
    rows = Context.objects.of(scope).defer("embedding", "search_vector")
    return rows if conversation is None else rows.filter(conversation=conversation)


def facts(scope: UserScope | None, *, as_of: datetime | None) -> QuerySet[Fact]:
    """What is true of the user, or was then."""
    rows = _facts(scope)
    return rows.current() if as_of is None else rows.as_of(as_of)


def history(scope: UserScope | None, *, key: str) -> QuerySet[Fact]:
    """All that `key` ever was."""
    return _facts(scope).filter(key=fact_key(key))


def conversations(scope: UserScope | None) -> QuerySet[ExtractionItem]:
    """The user's conversations, with how many messages wait instead of the messages."""
    rows = ExtractionItem.objects.of(scope).defer("messages", "taken")
    length = Func("messages", function="jsonb_array_length", output_field=IntegerField())
    return rows.annotate(waiting=length)


def _facts(scope: UserScope | None) -> FactQuerySet[Fact]:
    return Fact.objects.of(scope).defer("embedding", "search_vector")
