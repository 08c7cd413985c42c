"""Trace pages: list runs, show one as a waterfall of its steps with the sources it cites."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from common.pagination import newest_first
from common.web import login_required_page
from documents.models import Chunk, Document
from rag.answering.evidence import passage_url
from rag.models import Span, Trace
from rag.services.traces import cancel_run, get_trace, own_traces, withheld_traces
from rag.views.chat import collection_names, context_of_request, no_store
from rag.views.turns import render_answer, source_views
from search.presentation import Choice

_NUMBER = re.compile(r"\[(\d{1,4})\]")


def cited_sources(
    trace: Trace, *, collections: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[tuple[int, int]]]:
    """The sources that the trace's answer cites, and where: (offset, number). A source has no text
    if its chunk no longer exists. `collections` are names by slug. Only for a trace whose documents
    the user may all read."""
    found = {number: (document_id, chunk_id) for number, document_id, chunk_id in trace.sources}
    cited = [(match.start(), int(match[1])) for match in _NUMBER.finditer(trace.answer)]
    cited = [(at, number) for at, number in cited if number in found]
    wanted = {number: found[number] for _, number in cited}
    chunks = Chunk.objects.filter(pk__in=[pk for _, pk in wanted.values()])
    texts = chunks.defer("embedding", "search_vector").in_bulk()
    documents = Document.objects.filter(pk__in=[pk for pk, _ in wanted.values()])
    rows = documents.select_related("collection").in_bulk()
    passages = []
    for number, (document_id, chunk_id) in sorted(wanted.items()):
        if document_id not in rows:
            continue
        document, chunk = rows[document_id], texts.get(chunk_id)
        slug = document.collection.slug
        url = (
            passage_url(slug, document.pk, chunk.pk)
            if chunk
            else reverse("document", args=[slug, document.pk])
        )
        passages.append(
            {
                "number": number,
                "title": document.title,
                "document_key": document.key,
                "collection": slug,
                "heading_path": chunk.heading_path if chunk else [],
                "page": chunk.page if chunk else None,
                "location": chunk.location if chunk else "",
                "url": url,
                "text": chunk.text if chunk else "",
                "start": 0,
                "end": len(chunk.text) if chunk else 0,
            }
        )
    citations = [
        {"number": each["number"], "start": each["start"], "end": each["end"]} for each in passages
    ]
    return source_views(passages, citations, collections=collections), cited


#: Width of the SVG view box.
SCALE = 1000
#: Minimum width of a bar, so that quick steps are visible.
MIN_BAR_WIDTH = 6


def build_waterfall(trace: Trace, spans: Sequence[Span]) -> dict[str, Any]:
    """How long a run took, which may still be running, and a bar for each step, after its parent:
    `x` and `width` are parts of SCALE, `depth` counts its ancestors."""
    begin = min([trace.started_at, *(span.started_at for span in spans)])
    ends = [trace.ended_at or timezone.now(), *(span.ended_at for span in spans)]
    total = max(_milliseconds(begin, max(ends)), 1.0)
    depths: dict[int, int] = {}
    bars = []
    for span in _in_tree_order(spans):
        depths[span.pk] = depths.get(span.parent_id or 0, -1) + 1
        after = _milliseconds(begin, span.started_at)
        width = max(span.milliseconds / total * SCALE, MIN_BAR_WIDTH)
        bars.append(
            {
                "span": span,
                "depth": min(depths[span.pk], 3),
                "x": min(after / total * SCALE, SCALE - width),
                "width": width,
                "milliseconds": span.milliseconds,
                "after_milliseconds": after,
                # Its colour: by its state if it did not succeed, else by its kind.
                "tone": span.kind if span.state == Span.State.DONE else span.state,
            }
        )
    return {"bars": bars, "milliseconds": total}


def _in_tree_order(spans: Sequence[Span]) -> list[Span]:
    """Every step after its parent."""
    children: dict[int | None, list[Span]] = {}
    known = {span.pk for span in spans}
    for span in spans:
        parent = span.parent_id if span.parent_id in known else None
        children.setdefault(parent, []).append(span)
    ordered: list[Span] = []
    waiting = children.get(None, [])[::-1]
    while waiting:
        span = waiting.pop()
        ordered.append(span)
        waiting += children.get(span.pk, [])[::-1]
    return ordered


def _milliseconds(begin: datetime, end: datetime) -> float:
    return (end - begin).total_seconds() * 1000


TRACES_PER_PAGE = 50


@require_safe
@login_required_page
def index(request: HttpRequest) -> HttpResponse:
    """The user's own runs, newest first, filtered by `?pipeline=` and `?state=`."""
    filters = {name: request.GET.get(name, "").replace("\0", "") for name in ("pipeline", "state")}
    if filters["state"] not in Trace.State.values:
        filters["state"] = ""
    given = {name: value for name, value in filters.items() if value}
    rows = own_traces(context=context_of_request(request)).filter(**given)
    found = newest_first(rows, request.GET, size=TRACES_PER_PAGE, field="started_at")
    context = {
        **filters,
        "traces": found.rows,
        "newer_url": _url(**filters, after=found.newer) if found.newer else "",
        "older_url": _url(**filters, before=found.older) if found.older else "",
        "all_url": _url(pipeline=filters["pipeline"]),
        "any_pipeline_url": _url(state=filters["state"]),
        "states": [
            Choice(
                label=str(label).capitalize(),
                url=_url(pipeline=filters["pipeline"], state=value),
                selected=value == filters["state"],
            )
            for value, label in Trace.State.choices
        ],
    }
    return no_store(render(request, "rag/traces.html", context))


@require_safe
@login_required_page
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One run, step by step; without texts if they quote documents the user may no longer read."""
    own = context_of_request(request)
    trace = get_trace(context=own, id=pk)
    spans = list(trace.spans.order_by("ordinal"))
    is_withheld = bool(withheld_traces([trace], context=own))
    if is_withheld:
        for item in (trace, *spans):
            for field in ("answer", "input", "output", "error"):
                if hasattr(item, field):
                    setattr(item, field, "")
    conversation_url = ""
    if message := trace.messages.first():
        address = reverse("conversation", args=[message.conversation_id])
        conversation_url = f"{address}#turn-{message.pk}"
    sources, cited = cited_sources(trace, collections=collection_names(own))
    context = {
        "trace": trace,
        "is_withheld": is_withheld,
        "waterfall": build_waterfall(trace, spans),
        "answer": render_answer(
            trace.answer,
            turn=trace.pk,
            sources={source["number"]: source["title"] for source in sources},
            citations=cited,
        )
        if trace.answer
        else "",
        "sources": sources,
        "pipeline_url": reverse("pipeline", args=[trace.pipeline]) if trace.pipeline else "",
        "conversation_url": conversation_url,
    }
    return no_store(render(request, "rag/trace.html", context))


@require_POST
@login_required_page
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    cancel_run(context=context_of_request(request), id=pk)
    messages.success(request, gettext("The run ends within a second."))
    return redirect("trace", pk=pk)


def _url(**params: str) -> str:
    given = {name: value for name, value in params.items() if value}
    return f"{reverse('traces')}?{urlencode(given)}".removesuffix("?")
