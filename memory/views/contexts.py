"""Pages of contexts (turns of conversations): list, search, read, forget."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_http_methods, require_safe

from common.errors import NotFound, RagsiteError
from common.pagination import newest_first
from memory import services
from memory.models import Context, Fact
from memory.services.memories import contexts_of_question
from memory.views.owner import MemoryOwner, memory_page, memory_response

PAGE_SIZE = 25
SEARCH_RESULTS = 20
MAX_SEARCH_RESULTS = 100


@require_safe
@memory_page
def context_list(request: HttpRequest, owner: MemoryOwner) -> HttpResponse:
    """Contexts, the newest first; with `?find=` a search, the best first."""
    find = request.GET.get("find", "").replace("\0", "").strip()
    status = 200
    if find:
        try:
            context = _search_results(request, owner, find)
        except RagsiteError as error:
            context, status = {"error": str(error)}, error.status
    else:
        conversation = request.GET.get("conversation", "").replace("\0", "")
        rows = Context.objects.of(owner.scope).defer("embedding", "search_vector")
        if conversation:
            rows = rows.filter(conversation=conversation)
        turns = newest_first(rows, request.GET, size=PAGE_SIZE, field="created_at")
        here = {"conversation": conversation}
        context = {
            "turns": turns.rows,
            "conversation": conversation,
            "newer_url": turns.newer and owner.url("memory_contexts", **here, after=turns.newer),
            "older_url": turns.older and owner.url("memory_contexts", **here, before=turns.older),
        }
    context |= {"find": find}
    return memory_response(request, owner, "memory/contexts.html", context, status=status)


def _search_results(request: HttpRequest, owner: MemoryOwner, find: str) -> dict[str, Any]:
    """`?all=1` includes irrelevant hits, `?more=1` returns a longer list."""
    shows_all, shows_more = (request.GET.get(name) == "1" for name in ("all", "more"))
    result = services.search_memory(
        scope=owner.scope,
        query=find,
        k=MAX_SEARCH_RESULTS if shows_more else SEARCH_RESULTS,
        threshold=0.0 if shows_all else None,
    )
    here = {"find": find, "more": "1" if shows_more else ""}
    return {
        "result": result,
        "all_url": owner.url("memory_contexts", **here, all="1") if result.below else "",
        "fewer_url": owner.url("memory_contexts", **here) if shows_all else "",
        "more_url": owner.url("memory_contexts", find=find, more="1", all="1" if shows_all else "")
        if len(result.hits) == SEARCH_RESULTS
        else "",
    }


@require_safe
@memory_page
def context_detail(request: HttpRequest, owner: MemoryOwner, pk: int) -> HttpResponse:
    """A context in full, with the facts learnt from it."""
    turn = _get_context(owner, pk)
    context = {"turn": turn, "facts": _learnt_facts(owner, turn)}
    return memory_response(request, owner, "memory/context.html", context)


@require_safe
@memory_page
def find_and_forget(request: HttpRequest, owner: MemoryOwner) -> HttpResponse:
    """Redirect to deleting the last context in which the user said `?said=`, or whose message
    starts so.
    """
    begins = request.GET.get("said", "").replace("\0", "")
    rows = Context.objects.of(owner.scope).filter(user_message__startswith=begins)
    turn = rows.order_by("-created_at", "-pk").values_list("pk", flat=True).first()
    if not begins or turn is None:
        raise NotFound(gettext("This turn no longer exists. It was forgotten or pruned."))
    return redirect(owner.url("memory_context_forget", turn))


@require_http_methods(["GET", "HEAD", "POST"])
@memory_page
def forget_context(request: HttpRequest, owner: MemoryOwner, pk: int) -> HttpResponse:
    """Confirmation; on POST delete this context, or with `which=all` all with the same question."""
    turn = _get_context(owner, pk)
    question = turn.user_message.strip()
    if request.method == "POST":
        if request.POST.get("which") == "all" and question:
            removed = services.clear_memory(scope=owner.scope, question=question)
        else:
            removed = services.forget_contexts(scope=owner.scope, ids=[turn.pk])
        messages.success(
            request,
            ngettext("Forgot {number} turn.", "Forgot {number} turns.", removed).format(
                number=number_format(removed, force_grouping=True)
            ),
        )
        return redirect(owner.url("memory_contexts"))
    context = {
        "turn": turn,
        "equal": len(contexts_of_question(scope=owner.scope, question=question)) if question else 1,
        "facts": _learnt_facts(owner, turn),
    }
    return memory_response(request, owner, "memory/context_forget.html", context)


def _get_context(owner: MemoryOwner, pk: int) -> Context:
    rows = Context.objects.of(owner.scope).defer("embedding", "search_vector")
    turn = rows.filter(pk=pk).first()
    if turn is None:
        raise NotFound(gettext("This turn does not exist. It may have been forgotten or pruned."))
    return turn


def _learnt_facts(owner: MemoryOwner, turn: Context) -> list[Fact]:
    facts = Fact.objects.of(owner.scope).filter(source=turn)
    return list(facts.defer("embedding", "search_vector").order_by("key", "-valid_from"))
