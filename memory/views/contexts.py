"""Contexts: turns of conversations, listed, searched, read, forgotten."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from common.errors import NotFound, RagsiteError
from memory import services
from memory.models import Context, Fact
from memory.services.contexts import same_question
from memory.views.paging import page_by_time
from memory.views.whose import Whose, memory_page, memory_response

FOUND = 20
FOUND_MOST = 100


@require_safe
@memory_page
def index(request: HttpRequest, whose: Whose) -> HttpResponse:
    """The latest first; with `?find=` those that have to do with it, the best first."""
    find = request.GET.get("find", "").replace("\0", "").strip()
    status = 200
    if find:
        try:
            context = _found(request, whose, find)
        except RagsiteError as error:
            context, status = {"error": str(error)}, error.status
    else:
        context = _listed(request, whose)
    context |= {"find": find}
    return memory_response(request, whose, "memory/contexts.html", context, status=status)


def _found(request: HttpRequest, whose: Whose, find: str) -> dict[str, Any]:
    """`?all=1` shows the irrelevant too, `?more=1` a longer list."""
    shows_all, shows_more = (request.GET.get(name) == "1" for name in ("all", "more"))
    result = services.search_memory(
        scope=whose.scope,
        query=find,
        max_results=FOUND_MOST if shows_more else FOUND,
        threshold=0.0 if shows_all else None,
    )
    here = {"find": find, "more": "1" if shows_more else ""}
    return {
        "result": result,
        "all_url": whose.url("memory_contexts", **here, all="1") if result.below else "",
        "fewer_url": whose.url("memory_contexts", **here) if shows_all else "",
        "more_url": whose.url("memory_contexts", find=find, more="1", all="1" if shows_all else "")
        if len(result.hits) == FOUND
        else "",
    }


def _listed(request: HttpRequest, whose: Whose) -> dict[str, Any]:
    conversation = request.GET.get("conversation", "").replace("\0", "")
    rows = Context.objects.of(whose.scope).defer("embedding", "search_vector")
    if conversation:
        rows = rows.filter(conversation=conversation)
    turns = page_by_time(rows, request.GET)
    here = {"conversation": conversation}
    return {
        "turns": turns.rows,
        "conversation": conversation,
        "newer_url": turns.newer and whose.url("memory_contexts", **here, after=turns.newer),
        "older_url": turns.older and whose.url("memory_contexts", **here, before=turns.older),
    }


@require_safe
@memory_page
def detail(request: HttpRequest, whose: Whose, pk: int) -> HttpResponse:
    """What was said and answered, whole, and the facts that were learnt from it."""
    turn = _context(whose, pk)
    context = {"turn": turn, "facts": _learnt(whose, turn)}
    return memory_response(request, whose, "memory/context.html", context)


@require_safe
@memory_page
def said(request: HttpRequest, whose: Whose) -> HttpResponse:
    """To forgetting the last turn in which the user said `?said=`, or what begins so: an answer
    that was given with it knows no more of it."""
    begins = request.GET.get("said", "").replace("\0", "")
    rows = Context.objects.of(whose.scope).filter(user_message__startswith=begins)
    turn = rows.order_by("-created_at", "-pk").values_list("pk", flat=True).first()
    if not begins or turn is None:
        raise NotFound("That is not remembered any more. It was forgotten, or pruned.")
    return redirect(whose.url("memory_context_forget", turn))


@require_http_methods(["GET", "HEAD", "POST"])
@memory_page
def forget(request: HttpRequest, whose: Whose, pk: int) -> HttpResponse:
    """Show what goes; on POST forget this turn, or with `which=all` all with its question."""
    turn = _context(whose, pk)
    question = turn.user_message.strip()
    if request.method == "POST":
        if request.POST.get("which") == "all" and question:
            removed = services.clear_memory(scope=whose.scope, question=question)
        else:
            removed = services.forget_contexts(scope=whose.scope, ids=[turn.pk])
        messages.success(
            request, f"{removed:,} turn{' is' if removed == 1 else 's are'} forgotten."
        )
        return redirect(whose.url("memory_contexts"))
    context = {
        "turn": turn,
        "equal": len(same_question(scope=whose.scope, question=question)) if question else 1,
        "facts": _learnt(whose, turn),
    }
    return memory_response(request, whose, "memory/context_forget.html", context)


def _context(whose: Whose, pk: int) -> Context:
    rows = Context.objects.of(whose.scope).defer("embedding", "search_vector")
    turn = rows.filter(pk=pk).first()
    if turn is None:
        raise NotFound("There is no such turn. It may have been forgotten, or pruned.")
    return turn


def _learnt(whose: Whose, turn: Context) -> list[Fact]:
    facts = Fact.objects.of(whose.scope).filter(source=turn)
    return list(facts.defer("embedding", "search_vector").order_by("key", "-valid_from"))
