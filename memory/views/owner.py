"""Whose memory a page shows (`memory_page`: one's own or, for an editor, that of a user of a
program), and what is stored of it: the extraction queue, usage of quotas, export and erasure."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.humanize.templatetags.humanize import intcomma
from django.db.models import Case, Count, Max, Q, Sum, Value, When
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_workspace import request_workspace
from accounts.models import Workspace
from common.errors import NotFound
from common.web import View, login_required_page
from memory import services
from memory.forms import ERASE_WORD, EraseForm
from memory.models import Context, ExtractionItem, Fact, Pruning
from memory.scopes import UserScope, account_id, scope_of
from memory.services.memories import retry_extractions
from memory.templatetags.memory import plain

_State = ExtractionItem.State


@dataclass(frozen=True, slots=True)
class MemoryOwner:
    """The user whose memory a page shows. `user_id` is empty for one's own."""

    scope: UserScope
    workspace: Workspace
    user_id: str

    @property
    def is_own(self) -> bool:
        """Whether it is the visitor's own memory."""
        return not self.user_id

    def url(self, name: str, *args: Any, **params: Any) -> str:
        """URL of a page about the same user; parameters without a value are left out."""
        given = {"user_id": self.user_id, **params}
        query = urlencode({name: value for name, value in given.items() if value not in ("", None)})
        return f"{reverse(name, args=args)}?{query}".removesuffix("?")


def memory_page(view: Callable[..., HttpResponseBase]) -> View:
    """Decorator of a view that takes a `MemoryOwner`, selected by `?user_id=`, after the
    request.
    """

    @login_required_page
    @wraps(view)
    def view_for_owner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        workspace = request_workspace(request)
        scope = scope_of(user=request.user, workspace=workspace, user_id=request.GET.get("user_id"))
        if scope is None:
            raise NotFound(
                gettext(
                    "An empty user id and the id “unknown” have no memory. Enter another"
                    " user id, or open Memory for your own."
                )
            )
        is_own = scope.user_id == account_id(request.user)
        owner = MemoryOwner(scope, workspace, "" if is_own else scope.user_id)
        return view(request, owner, *args, **kwargs)

    return view_for_owner


def memory_response(
    request: HttpRequest,
    owner: MemoryOwner,
    template: str,
    context: dict[str, Any],
    *,
    status: int = 200,
) -> HttpResponse:
    """Render the page. It is not cached by the browser, so that erased memory cannot reappear."""
    conversations = ExtractionItem.objects.of(owner.scope).aggregate(
        waiting=Count("pk", filter=Q(state__in=[_State.WAITING, _State.RUNNING])),
        dead=Count("pk", filter=Q(state=_State.DEAD)),
    )
    counts = {
        "facts": Fact.objects.of(owner.scope).current().count(),
        "contexts": Context.objects.of(owner.scope).count(),
        **conversations,
    }
    frame = {
        "whose": owner,
        "counts": counts,
        "injects": settings.MEMORY_INJECTION,
    }
    response = render(request, template, frame | context, status=status)
    response["Cache-Control"] = "private, no-store"
    return response


LISTED_CONVERSATIONS = 50
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
        raise NotFound(gettext("This conversation does not exist. It may have been erased."))
    name = plain(conversation.key)
    if retry_extractions(item_ids=[pk]):
        messages.success(
            request,
            gettext("“{name}” is in the queue again.").format(name=name),
        )
    else:
        messages.success(
            request,
            gettext("“{name}” has not failed for good. The workers retry it.").format(name=name),
        )
    return redirect(owner.url("memory_reading"))


@require_safe
@memory_page
def storage_page(request: HttpRequest, owner: MemoryOwner) -> HttpResponse:
    """Usage of the quotas, prunings, and links to export and erase."""
    used = services.usage(scope=owner.scope)
    parts = [
        (gettext("Turns of conversations"), used.rows, used.max_rows, False),
        (gettext("Their size"), used.bytes, used.max_bytes, True),
        (gettext("Facts, former values included"), used.facts, used.max_facts, False),
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
        erased_message = gettext(
            "Erased everything. Facts: {facts}; turns: {contexts}; conversations in the"
            " queue: {conversations}; records of pruning: {prunings}."
        ).format(
            facts=intcomma(erased.facts),
            contexts=intcomma(erased.contexts),
            conversations=intcomma(erased.conversations),
            prunings=intcomma(erased.prunings),
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
