"""What a memory takes up, taking it along, and erasing it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from common.wording import counted
from memory import services
from memory.forms import ERASE, EraseForm
from memory.models import ExtractionItem, Pruning
from memory.services import Erased, Usage
from memory.views.whose import Whose, memory_page, memory_response


@require_safe
@memory_page
def index(request: HttpRequest, whose: Whose) -> HttpResponse:
    """Rows and bytes of the quota, what was pruned, and the ways out."""
    used = services.usage(scope=whose.scope)
    context = {"used": used, "meters": _meters(used)}
    return memory_response(request, whose, "memory/storage.html", context)


def _meters(used: Usage) -> list[dict[str, object]]:
    parts = [
        ("Turns of conversations", used.rows, used.max_rows, False),
        ("Their size", used.bytes, used.max_bytes, True),
        ("Facts, former values included", used.facts, used.max_facts, False),
    ]
    return [
        {
            "label": label,
            "used": number,
            "most": most,
            "share": number / most if most else 0.0,
            "is_size": is_size,
        }
        for label, number, most, is_size in parts
    ]


@require_safe
@memory_page
def export(request: HttpRequest, whose: Whose) -> StreamingHttpResponse:
    """Everything as JSON Lines, as it is read."""
    response = StreamingHttpResponse(
        services.export_memory(scope=whose.scope), content_type="application/x-ndjson"
    )
    name = f"memory-{timezone.localdate().isoformat()}.jsonl"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "private, no-store"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@memory_page
def erase(request: HttpRequest, whose: Whose) -> HttpResponse:
    """Show what goes; remove all of it when the word is typed."""
    form = EraseForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        messages.success(request, _told(services.erase_memory(scope=whose.scope)))
        return redirect(whose.url("memory"))
    context = {
        "form": form,
        "word": ERASE,
        "used": services.usage(scope=whose.scope),
        "conversations": ExtractionItem.objects.of(whose.scope).count(),
        "prunings": Pruning.objects.of(whose.scope).count(),
    }
    status = 400 if form.errors else 200
    return memory_response(request, whose, "memory/erase.html", context, status=status)


def _told(erased: Erased) -> str:
    return (
        f"Everything is erased: {counted(erased.facts, 'fact')} with their former values,"
        f" {counted(erased.contexts, 'turn')}, {counted(erased.conversations, 'conversation')}"
        " in the queue and"
        f" {counted(erased.prunings, 'record')} of pruning."
    )
