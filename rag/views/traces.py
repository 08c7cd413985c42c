"""Traces: runs of pipelines, listed and taken apart."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from common.web import page
from documents.models import Document
from memory.views.paging import page_by_time
from rag.context import RagContext
from rag.models import Trace
from rag.services.traces import cancel_run, get_trace, own_traces
from rag.views.asking import collection_names, context_of
from rag.views.rendered import render_answer
from rag.views.trace_sources import cited_sources, titles
from rag.views.waterfall import waterfall
from search.presentation import Choice

LISTED = 50


@require_safe
@page
def index(request: HttpRequest) -> HttpResponse:
    """One's own runs, newest first, of `?pipeline=` and in `?state=`."""
    asked = {name: request.GET.get(name, "").replace("\0", "") for name in ("pipeline", "state")}
    if asked["state"] not in Trace.State.values:
        asked["state"] = ""
    given = {name: value for name, value in asked.items() if value}
    rows = own_traces(context=context_of(request)).filter(**given)
    found = page_by_time(rows, request.GET, size=LISTED, field="started_at")
    context = {
        **asked,
        "traces": found.rows,
        "newer_url": _url(**asked, after=found.newer) if found.newer else "",
        "older_url": _url(**asked, before=found.older) if found.older else "",
        "all_url": _url(pipeline=asked["pipeline"]),
        "any_pipeline_url": _url(state=asked["state"]),
        "states": [
            Choice(
                label=str(label).capitalize(),
                url=_url(pipeline=asked["pipeline"], state=value),
                selected=value == asked["state"],
            )
            for value, label in Trace.State.choices
        ],
    }
    return _private(render(request, "rag/traces.html", context))


@require_safe
@page
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One run, step by step; without its texts where they quote what may be read no longer."""
    own = context_of(request)
    trace = get_trace(context=own, id=pk)
    spans = list(trace.spans.order_by("ordinal"))
    is_withheld = not _may_read(own, trace)
    if is_withheld:
        for told in (trace, *spans):
            _empty(told)
    answering = trace.messages.first()
    sources, cited = cited_sources(trace, collections=collection_names(own))
    context = {
        "trace": trace,
        "is_withheld": is_withheld,
        "waterfall": waterfall(trace, spans),
        "answer": render_answer(
            trace.answer, turn=trace.pk, sources=titles(sources), citations=cited
        )
        if trace.answer
        else "",
        "sources": sources,
        "pipeline_url": reverse("pipeline", args=[trace.pipeline]) if trace.pipeline else "",
        "conversation_url": _conversation_url(answering) if answering else "",
    }
    return _private(render(request, "rag/trace.html", context))


@require_POST
@page
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Have a run end."""
    cancel_run(context=context_of(request), id=pk)
    messages.success(request, "The run ends within a second.")
    return redirect("trace", pk=pk)


def _conversation_url(message: Any) -> str:
    address = reverse("conversation", args=[message.conversation_id])
    return f"{address}#turn-{message.pk}"


def _may_read(context: RagContext, trace: Trace) -> bool:
    visible = Document.objects.visible_to(context.user).filter(pk__in=trace.documents)
    return visible.count() == len(set(trace.documents))


def _empty(told: Any) -> None:
    for field in ("answer", "input", "output", "error"):
        if hasattr(told, field):
            setattr(told, field, "")


def _url(**params: str) -> str:
    given = {name: value for name, value in params.items() if value}
    return f"{reverse('traces')}?{urlencode(given)}".removesuffix("?")


def _private(response: HttpResponse) -> HttpResponse:
    """A browser keeps no copy: what quotes a deleted document must not come back."""
    response["Cache-Control"] = "private, no-store"
    return response
