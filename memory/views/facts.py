"""Pages of facts: list as of a day, add, correct, end, forget."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.db.models import Count, Exists, OuterRef, Q, Window
from django.db.models.functions import RowNumber
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_http_methods, require_POST

from common.errors import NotFound
from common.text import parse_integer
from common.web import errors_in_form
from memory import services
from memory.fact_keys import fact_key
from memory.forms import CorrectionForm, FactChangeForm, FactForm, FactListForm, end_of
from memory.models import LATEST_FIRST_ORDER, Fact, FactQuerySet
from memory.scopes import UserScope
from memory.templatetags.memory import label, plain
from memory.views.owner import MemoryOwner, memory_page, memory_response

FACTS_PAGE_SIZE = 25
#: Number of former values listed; the fact's own page has more.
LISTED_FORMER = 4


def current_facts(scope: UserScope, *, find: str, as_of: datetime | None) -> FactQuerySet[Fact]:
    """Facts that hold now or held at `as_of`; `find` occurs in key or value."""
    facts = Fact.objects.of(scope)
    known = facts.current() if as_of is None else facts.as_of(as_of)
    return _latest_per_key(_matching(known, find))


def ended_facts(scope: UserScope, *, find: str = "") -> FactQuerySet[Fact]:
    """The last value of every key without a current one."""
    facts = Fact.objects.of(scope)
    now = facts.current().filter(key=OuterRef("key"))
    return _latest_per_key(_matching(facts.filter(~Exists(now)), find))


def _matching(facts: FactQuerySet[Fact], find: str) -> FactQuerySet[Fact]:
    if not find:
        return facts
    key = "_".join(find.casefold().split())
    return facts.filter(Q(key__icontains=key) | Q(value__icontains=find))


def _latest_per_key(facts: FactQuerySet[Fact]) -> FactQuerySet[Fact]:
    return facts.latest_per_key().defer("embedding", "search_vector")


def fact_rows(
    scope: UserScope, facts: Sequence[Fact], *, as_of: datetime | None
) -> list[dict[str, Any]]:
    """Facts of the page: the `former` values and how many `more`; for a past day the current fact,
    `now`, None where there is none.
    """
    if as_of is not None:
        current = Fact.objects.of(scope).current().filter(key__in=[fact.key for fact in facts])
        now = {fact.key: fact for fact in current.defer("embedding", "search_vector")}
        return [{"fact": fact, "now": now.get(fact.key)} for fact in facts]
    # The latest values of each key before the shown one.
    shown = {fact.key: fact.pk for fact in facts}
    others = Fact.objects.of(scope).filter(key__in=shown).exclude(pk__in=shown.values())
    rows = (
        others.annotate(
            place=Window(RowNumber(), partition_by="key", order_by=LATEST_FIRST_ORDER),
            total=Window(Count("*"), partition_by="key"),
        )
        .filter(place__lte=LISTED_FORMER)
        .order_by("key", *LATEST_FIRST_ORDER)
        .defer("embedding", "search_vector")
    )
    former: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        former[row.key].append(row)
    return [
        {"fact": fact, "former": values, "more": values[0].total - len(values) if values else 0}
        for fact in facts
        for values in [former[fact.key]]
    ]


MAX_HISTORY = 100
MAX_PREVIEWED = 10
MAX_QUOTED_CHARACTERS = 80


@require_http_methods(["GET", "HEAD", "POST"])
@memory_page
def fact_list(request: HttpRequest, owner: MemoryOwner) -> HttpResponse:
    """The user's facts, and the form for a new one."""
    posted = request.method == "POST"
    form = FactForm(request.POST if posted else None)
    if form.is_valid():
        with errors_in_form(form):
            messages.success(request, _set(owner, form, key=form.cleaned_data["key"]))
            return redirect(owner.url("memory"))
    context = _fact_page(request, owner) | {"form": form}
    status = 400 if form.errors or context["shown"].errors else 200
    return memory_response(request, owner, "memory/facts.html", context, status=status)


def _fact_page(request: HttpRequest, owner: MemoryOwner) -> dict[str, Any]:
    shown = FactListForm(request.GET)
    valid = shown.is_valid()
    find = shown.cleaned_data.get("find", "").strip()
    day = shown.cleaned_data.get("as_of")
    as_of = end_of(day)
    shows_ended = request.GET.get("shown") == "ended" and as_of is None
    facts = (
        ended_facts(owner.scope, find=find)
        if shows_ended
        else current_facts(owner.scope, find=find, as_of=as_of)
    )
    first = parse_integer(request.GET.get("from", "")) or 0
    rows = list(facts[first : first + FACTS_PAGE_SIZE + 1]) if valid else []
    here = {"find": find, "as_of": day, "shown": "ended" if shows_ended else ""}
    return {
        "shown": shown,
        "facts": fact_rows(owner.scope, rows[:FACTS_PAGE_SIZE], as_of=as_of),
        "find": find,
        "as_of": as_of,
        "shows_ended": shows_ended,
        "ended": ended_facts(owner.scope).count(),
        "previous_url": owner.url("memory", **here, **_offset_params(first - FACTS_PAGE_SIZE))
        if first
        else "",
        "following_url": owner.url("memory", **here, **_offset_params(first + FACTS_PAGE_SIZE))
        if len(rows) > FACTS_PAGE_SIZE
        else "",
    }


def _offset_params(place: int) -> dict[str, object]:
    return {"from": place if place > 0 else ""}


@require_http_methods(["GET", "HEAD", "POST"])
@memory_page
def fact_detail(request: HttpRequest, owner: MemoryOwner, key: str) -> HttpResponse:
    """One fact with all its values, and the form to correct it."""
    rows = _history(owner, key)
    last = rows[0]
    form = CorrectionForm(request.POST if request.method == "POST" else None, last=last)
    if form.is_valid():
        with errors_in_form(form):
            messages.success(request, _set(owner, form, key=key))
            return redirect(owner.url("memory_fact", last.key))
    context = {
        "form": form,
        "key": last.key,
        "last": last,
        "rows": rows[:MAX_HISTORY],
        "more": max(len(rows) - MAX_HISTORY, 0),
    }
    status = 400 if form.errors else 200
    return memory_response(request, owner, "memory/fact.html", context, status=status)


@require_POST
@memory_page
def end_fact(request: HttpRequest, owner: MemoryOwner, key: str) -> HttpResponse:
    """End the fact and keep its history."""
    text = gettext("“{key}” was already ended.")
    if services.clear_fact(scope=owner.scope, key=key):
        text = gettext("“{key}” is no longer true. Its last value stays in the history.")
    messages.success(request, text.format(key=label(fact_key(key))))
    return redirect(owner.url("memory"))


@require_http_methods(["GET", "HEAD", "POST"])
@memory_page
def forget_fact(request: HttpRequest, owner: MemoryOwner, key: str) -> HttpResponse:
    """Confirmation; on POST delete the fact with its history."""
    if request.method == "POST":
        removed = services.forget_fact(scope=owner.scope, key=key)
        values = ngettext("{number} value", "{number} values", removed).format(
            number=number_format(removed, force_grouping=True)
        )
        messages.success(
            request,
            gettext("Forgot “{key}” with {values}.").format(
                key=label(fact_key(key)), values=values
            ),
        )
        return redirect(owner.url("memory"))
    rows = _history(owner, key)
    context = {"key": rows[0].key, "rows": rows[:MAX_PREVIEWED], "count": len(rows)}
    return memory_response(request, owner, "memory/fact_forget.html", context)


def _history(owner: MemoryOwner, key: str) -> list[Fact]:
    """All values of a key, the latest first; raises NotFound for none."""
    rows = services.history(scope=owner.scope, key=key)
    if not rows:
        raise NotFound(
            gettext("Nothing is remembered under “{key}”. It may have been forgotten.").format(
                key=label(fact_key(key))
            )
        )
    return rows


def _set(owner: MemoryOwner, form: FactChangeForm, *, key: str) -> str:
    """Set the fact to the form's value; what has changed. Raises RagsiteError."""
    value = form.cleaned_data["value"]
    change = services.set_fact(
        scope=owner.scope, key=key, value=value, at=form.moment(), corrects=True
    )
    assert change is not None  # which it is of nobody's memory only
    fact, before = change.fact, change.superseded
    name, value = label(fact.key), _shorten(fact.value)
    if not change.changed:
        return gettext("“{name}” is still “{value}”.").format(name=name, value=value)
    if fact.valid_to is not None:
        return gettext("“{name}” was “{value}” then. The current value stays.").format(
            name=name, value=value
        )
    if before is not None:
        return gettext("“{name}” is now “{value}”; “{value_2}” is in its history.").format(
            name=name, value=value, value_2=_shorten(before.value)
        )
    return f"“{name}” is “{value}”."


def _shorten(value: str) -> str:
    line = plain(value)
    return (
        line
        if len(line) <= MAX_QUOTED_CHARACTERS
        else f"{line[: MAX_QUOTED_CHARACTERS - 1].rstrip()}…"
    )
