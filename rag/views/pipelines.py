"""Pipeline pages: list, show, run, create, edit, delete."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, gettext_noop
from django.views.decorators.http import require_http_methods, require_safe

from accounts.services import require_editor
from common.errors import RagsiteError
from common.web import login_required_page
from inference.chat_models import chat_model
from rag.context import RagContext
from rag.events import Metadata
from rag.forms import MAX_QUESTION_CHARACTERS, DefinitionForm
from rag.models import Pipeline
from rag.pipelines.definition import NODE_TYPES, Fault, PipelineError
from rag.services import pipelines as services
from rag.services.traces import own_traces, trace_statistics
from rag.views.chat import SCRIPT_MODULES, collection_names, context_of_request, no_store
from rag.views.pipeline_diagram import draw_diagram
from rag.views.turns import degraded_texts, failure_texts

#: Days that the statistics cover.
STATISTICS_DAYS = 30
LISTED_RUNS = 5
PIPELINES_PER_PAGE = 24
EXAMPLE: Mapping[str, Any] = {
    "id": "my-pipeline",
    "name": gettext_noop("My pipeline"),
    "description": gettext_noop("What it is for."),
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


@require_safe
@login_required_page
def index(request: HttpRequest) -> HttpResponse:
    """The workspace's own pipelines, then the templates."""
    context = context_of_request(request)
    figures = _statistics(context)

    def listed(pipelines: Iterable[Pipeline]) -> list[dict[str, Any]]:
        """Each with its diagram, if it can still run, and statistics of the user's own runs."""
        return [
            {
                "pipeline": each,
                "drawing": _diagram_or_faults(each)[0],
                "figures": figures.get(each.slug),
            }
            for each in pipelines
        ]

    there = services.list_pipelines(context=context)
    own = Paginator([each for each in there if not each.is_template], PIPELINES_PER_PAGE)
    number = own.get_page(request.GET.get("page"))
    template_context = {
        "page": number,
        "own": listed(number),
        "templates": listed(each for each in there if each.is_template)
        if number.number == 1
        else [],
    }
    return render(request, "rag/pipelines.html", template_context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def detail(request: HttpRequest, slug: str) -> HttpResponse:
    """One pipeline; a POST runs it and redirects to the trace."""
    context = context_of_request(request)
    pipeline = services.get_pipeline(context=context, id=slug)
    problem, status = "", 200
    if request.method == "POST":
        try:
            # Run to the end and return the trace's id.
            question = request.POST.get("question", "")
            events = services.run_pipeline(slug, question, context=context)
            metadata_events = [event for event in events if isinstance(event, Metadata)]
            run = metadata_events[0].trace or 0
            return redirect("trace", pk=run)
        except RagsiteError as error:
            problem, status = str(error), error.status
    drawing, faults = _diagram_or_faults(pipeline)
    needs_model = any(
        NODE_TYPES[node["type"]].needs_model == "always" for node in pipeline.definition["nodes"]
    )
    template_context = {
        "pipeline": pipeline,
        "drawing": drawing,
        "faults": faults,
        "definition": _pretty_json(pipeline.definition),
        "is_lacking": drawing is not None
        and needs_model
        and chat_model(workspace_id=context.workspace.pk) is None,
        "connect_url": reverse("models"),
        "degraded": json.dumps(degraded_texts()),
        "failures": json.dumps(failure_texts()),
        "modules": SCRIPT_MODULES,
        "names": json.dumps(collection_names(context)),
        "api_url": reverse("api:chat"),
        "figures": _statistics(context, slug).get(slug),
        "runs": own_traces(context=context).filter(pipeline=slug)[:LISTED_RUNS],
        "problem": problem,
        "question": request.POST.get("question", ""),
        "max_question": MAX_QUESTION_CHARACTERS,
    }
    return no_store(render(request, "rag/pipeline.html", template_context, status=status))


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def new(request: HttpRequest) -> HttpResponse:
    """Create a pipeline, from the copy `?from=` or a small example."""
    context = context_of_request(request)
    require_editor(user=request.user, workspace=context.workspace)
    given: Mapping[str, Any] = EXAMPLE
    if source := request.GET.get("from", ""):
        pipeline = services.get_pipeline(context=context, id=source)
        given = {
            **pipeline.definition,
            "id": f"{pipeline.slug}-copy"[:63],
            "name": f"{pipeline.name} (copy)",
        }
    return _edit_page(request, context, None, given)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Edit one of the workspace's pipelines."""
    context = context_of_request(request)
    require_editor(user=request.user, workspace=context.workspace)
    pipeline = services.get_pipeline(context=context, id=slug)
    if pipeline.is_template:
        return redirect(f"{reverse('pipeline_new')}?from={slug}")
    return _edit_page(request, context, pipeline, pipeline.definition)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what deleting means; delete on POST."""
    context = context_of_request(request)
    require_editor(user=request.user, workspace=context.workspace)
    pipeline = services.get_pipeline(context=context, id=slug)
    if request.method == "POST" or pipeline.is_template:
        services.delete_pipeline(context=context, id=slug)
        messages.success(
            request, gettext("“{pipeline_name}” is deleted.").format(pipeline_name=pipeline.name)
        )
        return redirect("pipelines")
    hidden = {each.slug for each in services.template_pipelines()}
    template_context = {"pipeline": pipeline, "hides_template": slug in hidden}
    return render(request, "rag/pipeline_delete.html", template_context)


def _edit_page(
    request: HttpRequest,
    context: RagContext,
    pipeline: Pipeline | None,
    given: Mapping[str, Any],
) -> HttpResponse:
    posted = request.method == "POST"
    form = DefinitionForm(
        request.POST if posted else None,
        initial={
            "definition": _pretty_json(given),
            "version": pipeline.version if pipeline else None,
        },
    )
    faults: tuple[Fault, ...] = ()
    if form.is_valid():
        try:
            definition, version = form.cleaned_data["definition"], form.cleaned_data["version"]
            record = (
                services.update_pipeline(
                    context=context, id=pipeline.slug, definition=definition, version=version
                )
                if pipeline
                else services.create_pipeline(context=context, definition=definition)
            )
        except PipelineError as error:
            faults = error.faults
        except RagsiteError as error:
            form.add_error("definition", str(error))
        else:
            messages.success(
                request, gettext("“{record_name}” is saved.").format(record_name=record.name)
            )
            return redirect("pipeline", slug=record.slug)
    template_context = {
        "pipeline": pipeline,
        "form": form,
        "faults": faults,
        "kinds": [(name, kind.meaning, kind.field_names()) for name, kind in NODE_TYPES.items()],
    }
    status = 400 if form.errors or faults else 200
    return render(request, "rag/pipeline_edit.html", template_context, status=status)


def _pretty_json(definition: Mapping[str, Any]) -> str:
    return json.dumps(definition, indent=2, ensure_ascii=False)


def _diagram_or_faults(pipeline: Pipeline) -> tuple[dict[str, Any] | None, tuple[Fault, ...]]:
    """The diagram, or why it can no longer run: a tool or model was removed."""
    try:
        return draw_diagram(
            services.validate_pipeline(
                definition=pipeline.definition, workspace_id=pipeline.workspace_id
            )
        ), ()
    except PipelineError as error:
        return None, error.faults


def _statistics(context: RagContext, pipeline: str = "") -> dict[str, dict[str, Any]]:
    found = trace_statistics(context=context, days=STATISTICS_DAYS, pipeline=pipeline)
    return {each["name"]: each for each in found}
