"""Pages of the extraction queue, of quota usage, of export and erasure."""

from django.contrib import messages
from django.db.models import Case, Count, Max, Sum, Value, When
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common.errors import NotFound
from common.text import pluralized
from memory import services
from memory.forms import ERASE_WORD, EraseForm
from memory.models import ExtractionItem, Pruning
from memory.services.memories import retry_extractions
from memory.templatetags.memory import plain
from memory.views.owner import MemoryOwner, memory_page, memory_response

LISTED_CONVERSATIONS = 50
_State = ExtractionItem.State
#: Failures first, then what is under way, then the rest.
STATE_ORDER = Case(
    When(state=_State.DEAD, then=Value(0)),
    When(state=_State.RUNNING, then=Value(1)),
    default=Value(2),
)


@require_safe
@memory_page
def conversation_list(request: HttpRequest, owner: MemoryOwner) -> HttpResponse:
    """Waiting and failed conversations, and statistics of extraction."""
    conversations = ExtractionItem.objects.of(owner.scope)
    waiting = conversations.exclude(state=_State.IDLE).order_by(
        STATE_ORDER, "-last_message_at", "-id"
    )
    rows = list(waiting[: LISTED_CONVERSATIONS + 1])
    context = {
        "rows": rows[:LISTED_CONVERSATIONS],
        "more": len(rows) > LISTED_CONVERSATIONS,
        "learnt": conversations.exclude(extracted_at=None).aggregate(
            conversations=Count("pk"),
            facts=Sum("facts", default=0),
            contexts=Sum("contexts", default=0),
            last=Max("extracted_at"),
        ),
    }
    return memory_response(request, owner, "memory/reading.html", context)


@require_POST
@memory_page
def retry_conversation(request: HttpRequest, owner: MemoryOwner, pk: int) -> HttpResponse:
    """Put a dead conversation back into the queue."""
    conversation = ExtractionItem.objects.of(owner.scope).filter(pk=pk).first()
    if conversation is None:
        raise NotFound("There is no such conversation. It may have been erased.")
    name = plain(conversation.key)
    if retry_extractions(item_ids=[pk]):
        messages.success(request, f"“{name}” is read again, as soon as a worker is free.")
    else:
        messages.success(request, f"“{name}” had not been given up. It is tried by itself.")
    return redirect(owner.url("memory_reading"))


@require_safe
@memory_page
def storage_page(request: HttpRequest, owner: MemoryOwner) -> HttpResponse:
    """Usage of the quotas, prunings, and links to export and erase."""
    used = services.usage(scope=owner.scope)
    parts = [
        ("Turns of conversations", used.rows, used.max_rows, False),
        ("Their size", used.bytes, used.max_bytes, True),
        ("Facts, former values included", used.facts, used.max_facts, False),
    ]
    quota_meters = [
        {
            "label": label,
            "used": number,
            "most": most,
            "share": number / most if most else 0.0,
            "is_size": is_size,
        }
        for label, number, most, is_size in parts
    ]
    context = {"used": used, "meters": quota_meters}
    return memory_response(request, owner, "memory/storage.html", context)


@require_safe
@memory_page
def export_memory_file(request: HttpRequest, owner: MemoryOwner) -> StreamingHttpResponse:
    """Everything as JSON Lines, streamed."""
    response = StreamingHttpResponse(
        services.export_memory(scope=owner.scope), content_type="application/x-ndjson"
    )
    name = f"memory-{timezone.localdate().isoformat()}.jsonl"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "private, no-store"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@memory_page
def erase_page(request: HttpRequest, owner: MemoryOwner) -> HttpResponse:
    """Confirmation; erase everything when the word is typed."""
    form = EraseForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        erased = services.erase_memory(scope=owner.scope)
        erased_message = (
            f"Everything is erased: {pluralized(erased.facts, 'fact')} with their former values,"
            f" {pluralized(erased.contexts, 'turn')},"
            f" {pluralized(erased.conversations, 'conversation')}"
            " in the queue and"
            f" {pluralized(erased.prunings, 'record')} of pruning."
        )
        messages.success(request, erased_message)
        return redirect(owner.url("memory"))
    context = {
        "form": form,
        "word": ERASE_WORD,
        "used": services.usage(scope=owner.scope),
        "conversations": ExtractionItem.objects.of(owner.scope).count(),
        "prunings": Pruning.objects.of(owner.scope).count(),
    }
    status = 400 if form.errors else 200
    return memory_response(request, owner, "memory/erase.html", context, status=status)
