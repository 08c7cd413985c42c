"""Pipelines: listed, drawn, tried, edited."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from accounts.services import require_editor
from common.errors import RagsiteError
from common.web import page
from inference.routing import chat_model
from rag.context import RagContext
from rag.events import Metadata
from rag.forms import MAX_QUESTION, DefinitionForm
from rag.pipelines.definition import Definition
from rag.pipelines.faults import Fault, PipelineError
from rag.pipelines.kinds import KINDS
from rag.services import pipelines as services
from rag.services.pipelines import Kept
from rag.services.trace_statistics import Figures, trace_statistics
from rag.services.traces import own_traces
from rag.views.asking import MODULES, collection_names, context_of
from rag.views.drawing import Drawing, draw
from rag.views.turns import DEGRADED, FAILURES

#: Days that the figures tell of.
DAYS = 30
RUNS = 5
LISTED = 24
EXAMPLE: Mapping[str, Any] = {
    "id": "my-pipeline",
    "name": "My pipeline",
    "description": "What it is for.",
    "nodes": [
        {
            "id": "retriever",
            "type": "worker",
            "prompt": "Find what answers the question.",
            "tools": ["similarity_search"],
            "max_iter": 3,
        },
        {"id": "writer", "type": "llm", "prompt": "Answer from what was found, and cite it."},
    ],
    "edges": [{"from": "retriever", "to": "writer", "type": "direct"}],
    "entry_node": "retriever",
}


@dataclass(frozen=True, slots=True)
class Listed:
    """A pipeline with its drawing; None where it can be run no more. `figures` of one's own runs,
    None where there are none."""

    pipeline: Kept
    drawing: Drawing | None
    figures: Figures | None


@require_safe
@page
def index(request: HttpRequest) -> HttpResponse:
    """The workspace's own, then the templates."""
    context = context_of(request)
    figures = _figures(context)

    def listed(pipelines: Iterable[Kept]) -> list[Listed]:
        return [Listed(each, _drawing(each), figures.get(each.id)) for each in pipelines]

    there = services.list_pipelines(context=context)
    own = Paginator([each for each in there if not each.is_template], LISTED)
    number = own.get_page(request.GET.get("page"))
    shown = {
        "page": number,
        "own": listed(number),
        "templates": listed(each for each in there if each.is_template)
        if number.number == 1
        else [],
    }
    return render(request, "rag/pipelines.html", shown)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def detail(request: HttpRequest, slug: str) -> HttpResponse:
    """One pipeline; a POST runs it, and leads to the trace of that."""
    context = context_of(request)
    pipeline = services.get_pipeline(context=context, id=slug)
    problem, status = "", 200
    if request.method == "POST":
        try:
            return redirect("trace", pk=_run(request, context, slug))
        except RagsiteError as error:
            problem, status = str(error), error.status
    definition, faults = _checked(pipeline)
    shown = {
        "pipeline": pipeline,
        "drawing": draw(definition) if definition else None,
        "faults": faults,
        "definition": _written(pipeline.definition),
        "is_lacking": definition is not None and _lacks_model(definition),
        "connect_url": reverse("chat_connect"),
        "degraded": json.dumps(DEGRADED),
        "failures": json.dumps(FAILURES),
        "modules": MODULES,
        "names": json.dumps(collection_names(context)),
        "api_url": reverse("api:chat"),
        "figures": _figures(context, slug).get(slug),
        "runs": own_traces(context=context).filter(pipeline=slug)[:RUNS],
        "problem": problem,
        "question": request.POST.get("question", ""),
        "max_question": MAX_QUESTION,
    }
    response = render(request, "rag/pipeline.html", shown, status=status)
    response["Cache-Control"] = "private, no-store"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new(request: HttpRequest) -> HttpResponse:
    """A new one, from the copy `?from=` or a small example."""
    context = context_of(request)
    require_editor(user=request.user, workspace=context.workspace)
    given: Mapping[str, Any] = EXAMPLE
    if source := request.GET.get("from", ""):
        given = _copy(services.get_pipeline(context=context, id=source))
    return _edited(request, context, None, given)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Change one of the workspace's."""
    context = context_of(request)
    require_editor(user=request.user, workspace=context.workspace)
    pipeline = services.get_pipeline(context=context, id=slug)
    if pipeline.is_template:
        return redirect(f"{reverse('pipeline_new')}?from={slug}")
    return _edited(request, context, pipeline, pipeline.definition)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Say what that means; delete on POST."""
    context = context_of(request)
    require_editor(user=request.user, workspace=context.workspace)
    pipeline = services.get_pipeline(context=context, id=slug)
    if request.method == "POST" or pipeline.is_template:
        services.delete_pipeline(context=context, id=slug)
        messages.success(request, f"“{pipeline.name}” is deleted.")
        return redirect("pipelines")
    hidden = {each.id for each in services.template_pipelines()}
    shown = {"pipeline": pipeline, "hides_template": slug in hidden}
    return render(request, "rag/pipeline_delete.html", shown)


def _run(request: HttpRequest, context: RagContext, slug: str) -> int:
    """The trace of a run to its end."""
    question = request.POST.get("question", "")
    events = services.run_pipeline(slug, question, context=context)
    told = [event for event in events if isinstance(event, Metadata)]
    return told[0].trace or 0


def _edited(
    request: HttpRequest, context: RagContext, pipeline: Kept | None, given: Mapping[str, Any]
) -> HttpResponse:
    posted = request.method == "POST"
    form = DefinitionForm(
        request.POST if posted else None,
        initial={
            "definition": _written(given),
            "version": pipeline.version if pipeline else None,
        },
    )
    faults: tuple[Fault, ...] = ()
    if form.is_valid():
        try:
            kept = _saved(context, pipeline, form.cleaned_data)
        except PipelineError as error:
            faults = error.faults
        except RagsiteError as error:
            form.add_error("definition", str(error))
        else:
            messages.success(request, f"“{kept.name}” is saved.")
            return redirect("pipeline", slug=kept.id)
    shown = {"pipeline": pipeline, "form": form, "faults": faults, "kinds": KINDS.values()}
    status = 400 if form.errors or faults else 200
    return render(request, "rag/pipeline_edit.html", shown, status=status)


def _saved(context: RagContext, pipeline: Kept | None, values: Mapping[str, Any]) -> Kept:
    definition = values["definition"]
    if pipeline is None:
        return services.create_pipeline(context=context, definition=definition)
    return services.update_pipeline(
        context=context, id=pipeline.id, definition=definition, version=values["version"]
    )


def _copy(pipeline: Kept) -> dict[str, Any]:
    return {
        **pipeline.definition,
        "id": f"{pipeline.id}-copy"[:63],
        "name": f"{pipeline.name} (copy)",
    }


def _written(definition: Mapping[str, Any]) -> str:
    return json.dumps(definition, indent=2, ensure_ascii=False)


def _checked(pipeline: Kept) -> tuple[Definition | None, tuple[Fault, ...]]:
    """What it does, or why it can be run no more: a tool or a model that was there has gone."""
    try:
        return pipeline.checked, ()
    except PipelineError as error:
        return None, error.faults


def _drawing(pipeline: Kept) -> Drawing | None:
    definition, _ = _checked(pipeline)
    return draw(definition) if definition else None


def _lacks_model(definition: Definition) -> bool:
    needs = any(node.kind.asks == "always" for node in definition.nodes)
    return needs and chat_model() is None


def _figures(context: RagContext, pipeline: str = "") -> dict[str, Figures]:
    found = trace_statistics(context=context, days=DAYS, pipeline=pipeline)
    return {each.total.name: each.total for each in found}
