"""Conversations that facts are learnt from: those that wait, and those that were given up."""

from django.contrib import messages
from django.db.models import Case, Count, Max, Sum, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from common.errors import NotFound
from memory.models import ExtractionItem
from memory.services.extraction import retry_extractions
from memory.templatetags.memory import plain
from memory.views.whose import Whose, memory_page, memory_response

SHOWN = 50
State = ExtractionItem.State
#: Failures first, then what is under way, then the rest.
ORDER = Case(
    When(state=State.DEAD, then=Value(0)),
    When(state=State.RUNNING, then=Value(1)),
    default=Value(2),
)


@require_safe
@memory_page
def index(request: HttpRequest, whose: Whose) -> HttpResponse:
    """What waits to be read, what failed, and what has been learnt so far."""
    conversations = ExtractionItem.objects.of(whose.scope)
    waiting = conversations.exclude(state=State.IDLE).order_by(ORDER, "-last_message_at", "-id")
    rows = list(waiting[: SHOWN + 1])
    context = {
        "rows": rows[:SHOWN],
        "more": len(rows) > SHOWN,
        "learnt": conversations.exclude(extracted_at=None).aggregate(
            conversations=Count("pk"),
            facts=Sum("facts", default=0),
            contexts=Sum("contexts", default=0),
            last=Max("extracted_at"),
        ),
    }
    return memory_response(request, whose, "memory/reading.html", context)


@require_POST
@memory_page
def retry(request: HttpRequest, whose: Whose, pk: int) -> HttpResponse:
    """Read a conversation again that was given up."""
    conversation = ExtractionItem.objects.of(whose.scope).filter(pk=pk).first()
    if conversation is None:
        raise NotFound("There is no such conversation. It may have been erased.")
    name = plain(conversation.key)
    if retry_extractions(item_ids=[pk]):
        messages.success(request, f"“{name}” is read again, as soon as a worker is free.")
    else:
        messages.success(request, f"“{name}” had not been given up. It is tried by itself.")
    return redirect(whose.url("memory_reading"))
