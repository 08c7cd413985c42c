"""Pages of contexts (turns of conversations): list, search, read, forget."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from django.contrib import messages
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from common.errors import NotFound, RagsiteError
from memory import services
from memory.models import Context, Fact
from memory.services.memories import contexts_of_question
from memory.views.owner import MemoryOwner, memory_page, memory_response

M = TypeVar("M", bound=Model)

PAGE_SIZE = 25
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TimePage(Generic[M]):
    """Rows of a page. `newer` and `older` are query parameters of the adjacent pages, or empty."""

    rows: list[M]
    newer: str
    older: str


def page_by_time(
    queryset: QuerySet[M],
    params: Mapping[str, Any],
    *,
    size: int = PAGE_SIZE,
    field: str = "created_at",
) -> TimePage[M]:
    """The page after `?before=PLACE`, before `?after=PLACE`, or the first one, ordered by `field`.

    A place is a time and an id.
    """
    before, after = _parse_place(params.get("before")), _parse_place(params.get("after"))
    if after is not None:
        moment, pk = after
        newer = queryset.filter(Q(**{f"{field}__gt": moment}) | Q(**{field: moment, "pk__gt": pk}))
        rows = list(newer.order_by(field, "pk")[: size + 1])
        has_newer, has_older = len(rows) > size, True
        rows = rows[:size][::-1]
    else:
        older = queryset
        if before is not None:
            moment, pk = before
            older = older.filter(Q(**{f"{field}__lt": moment}) | Q(**{field: moment, "pk__lt": pk}))
        rows = list(older.order_by(f"-{field}", "-pk")[: size + 1])
        has_newer, has_older = before is not None, len(rows) > size
        rows = rows[:size]
    return TimePage(
        rows=rows,
        newer=_place_token(rows[0], field) if rows and has_newer else "",
        older=_place_token(rows[-1], field) if rows and has_older else "",
    )


def _place_token(row: Model, field: str) -> str:
    return f"{(getattr(row, field) - _EPOCH) // timedelta(microseconds=1)}.{row.pk}"


def _parse_place(value: Any) -> tuple[datetime, int] | None:
    written, dot, pk = str(value or "").partition(".")
    sign, digits = (-1, written[1:]) if written.startswith("-") else (1, written)
    if not (dot and _is_number(digits) and _is_number(pk)):
        return None
    try:
        return _EPOCH + timedelta(microseconds=sign * int(digits)), int(pk)
    except OverflowError:
        return None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


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
        turns = page_by_time(rows, request.GET)
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
        max_results=MAX_SEARCH_RESULTS if shows_more else SEARCH_RESULTS,
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
        raise NotFound("That is not remembered any more. It was forgotten, or pruned.")
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
            request, f"{removed:,} turn{' is' if removed == 1 else 's are'} forgotten."
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
        raise NotFound("There is no such turn. It may have been forgotten, or pruned.")
    return turn


def _learnt_facts(owner: MemoryOwner, turn: Context) -> list[Fact]:
    facts = Fact.objects.of(owner.scope).filter(source=turn)
    return list(facts.defer("embedding", "search_vector").order_by("key", "-valid_from"))
