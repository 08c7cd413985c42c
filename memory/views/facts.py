"""Facts: listed as of a day, added, corrected, ended, forgotten."""

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from common.errors import NotFound, RagsiteError
from memory import services
from memory.forms import CorrectionForm, FactForm, FactsShownForm, end_of
from memory.keys import fact_key
from memory.models import Fact
from memory.services import FactChange
from memory.templatetags.memory import label, plain
from memory.views.shown import PAGE_SIZE, ended, listed, shown_facts
from memory.views.whose import Whose, memory_page, memory_response

HISTORY = 100
PREVIEWED = 10
SAID = 80


@require_http_methods(["GET", "HEAD", "POST"])
@memory_page
def index(request: HttpRequest, whose: Whose) -> HttpResponse:
    """What is known of the user, and the form for more."""
    posted = request.method == "POST"
    form = FactForm(request.POST if posted else None)
    if form.is_valid():
        key, value = form.cleaned_data["key"], form.cleaned_data["value"]
        change = _set(whose, form, key=key, value=value, at=form.moment())
        if change is not None:
            messages.success(request, _told(change))
            return redirect(whose.url("memory"))
    context = _list(request, whose) | {"form": form}
    status = 400 if form.errors or context["shown"].errors else 200
    return memory_response(request, whose, "memory/facts.html", context, status=status)


def _list(request: HttpRequest, whose: Whose) -> dict[str, Any]:
    shown = FactsShownForm(request.GET)
    valid = shown.is_valid()
    find = shown.cleaned_data.get("find", "").strip()
    day = shown.cleaned_data.get("as_of")
    as_of = end_of(day)
    shows_ended = request.GET.get("shown") == "ended" and as_of is None
    facts = (
        ended(whose.scope, find=find)
        if shows_ended
        else listed(whose.scope, find=find, as_of=as_of)
    )
    first = _offset(request)
    rows = list(facts[first : first + PAGE_SIZE + 1]) if valid else []
    here = {"find": find, "as_of": day, "shown": "ended" if shows_ended else ""}
    return {
        "shown": shown,
        "facts": shown_facts(whose.scope, rows[:PAGE_SIZE], as_of=as_of),
        "find": find,
        "as_of": as_of,
        "shows_ended": shows_ended,
        "ended": ended(whose.scope).count(),
        "previous_url": whose.url("memory", **here, **_from(first - PAGE_SIZE)) if first else "",
        "following_url": whose.url("memory", **here, **_from(first + PAGE_SIZE))
        if len(rows) > PAGE_SIZE
        else "",
    }


def _from(place: int) -> dict[str, object]:
    return {"from": place if place > 0 else ""}


def _offset(request: HttpRequest) -> int:
    asked = request.GET.get("from", "")
    return int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else 0


@require_http_methods(["GET", "HEAD", "POST"])
@memory_page
def detail(request: HttpRequest, whose: Whose, key: str) -> HttpResponse:
    """One fact: every value that it had, and the form to correct it."""
    rows = _history(whose, key)
    last = rows[0]
    form = CorrectionForm(request.POST if request.method == "POST" else None, last=last)
    if form.is_valid():
        change = _set(whose, form, key=key, value=form.cleaned_data["value"], at=form.moment())
        if change is not None:
            messages.success(request, _told(change))
            return redirect(whose.url("memory_fact", last.key))
    context = {
        "form": form,
        "key": last.key,
        "last": last,
        "rows": rows[:HISTORY],
        "more": max(len(rows) - HISTORY, 0),
    }
    status = 400 if form.errors else 200
    return memory_response(request, whose, "memory/fact.html", context, status=status)


@require_POST
@memory_page
def end(request: HttpRequest, whose: Whose, key: str) -> HttpResponse:
    """It is true no longer; what it was stays in the history."""
    if services.clear_fact(scope=whose.scope, key=key):
        told = f"“{label(fact_key(key))}” is true no longer. Its history keeps what it was."
        messages.success(request, told)
    else:
        messages.success(request, f"“{label(fact_key(key))}” was not true any more.")
    return redirect(whose.url("memory"))


@require_http_methods(["GET", "HEAD", "POST"])
@memory_page
def forget(request: HttpRequest, whose: Whose, key: str) -> HttpResponse:
    """Show what goes, which is the whole history; remove it on POST."""
    if request.method == "POST":
        removed = services.forget_fact(scope=whose.scope, key=key)
        values = f"{removed:,} value{'' if removed == 1 else 's'}"
        messages.success(request, f"“{label(fact_key(key))}” is forgotten, with {values}.")
        return redirect(whose.url("memory"))
    rows = _history(whose, key)
    context = {"key": rows[0].key, "rows": rows[:PREVIEWED], "count": len(rows)}
    return memory_response(request, whose, "memory/fact_forget.html", context)


def _history(whose: Whose, key: str) -> list[Fact]:
    """All values of a key, the latest first, at least one."""
    rows = services.history(scope=whose.scope, key=key)
    if not rows:
        raise NotFound(
            f"Nothing is remembered under “{label(fact_key(key))}”. It may have been forgotten."
        )
    return rows


def _set(
    whose: Whose, form: Form, *, key: str, value: str, at: datetime | None
) -> FactChange | None:
    """The change; None where it is refused, with the reason beside the field."""
    try:
        return services.set_fact(scope=whose.scope, key=key, value=value, at=at, corrects=True)
    except RagsiteError as error:
        field = getattr(error, "field", "")
        form.add_error(field if field in form.fields else None, str(error))
        return None


def _told(change: FactChange) -> str:
    fact, before = change.fact, change.superseded
    name, value = label(fact.key), _short(fact.value)
    if not change.changed:
        return f"“{name}” is “{value}”, as it was."
    if fact.valid_to is not None:
        return f"“{name}” was “{value}” then. What is true now stays."
    if before is not None:
        return f"“{name}” is “{value}” now; “{_short(before.value)}” is in its history."
    return f"“{name}” is “{value}”."


def _short(value: str) -> str:
    line = plain(value)
    return line if len(line) <= SAID else f"{line[: SAID - 1].rstrip()}…"
