"""Pages of sources: all of them, a new one, and one with its runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_workspace import request_workspace
from accounts.services import require_editor
from common.errors import InvalidInput, NotFound
from common.web import errors_as_messages, errors_in_form, login_required_page
from sources import services
from sources.connectors import connector_class, kinds
from sources.connectors.base import SourceError
from sources.forms import PREFIX, SourceForm
from sources.models import DataSource
from sources.notices import describe_problem

RUNS = 20
FAILURES = 100
PREVIEWED = 100


@require_safe
@login_required_page
def index(request: HttpRequest) -> HttpResponse:
    """All sources of the workspace, and the kinds that can be added."""
    offered = [(kind, _(connector_class(kind).label)) for kind in kinds()]
    sources = services.with_counts(_visible_sources(request))
    return render(request, "sources/sources.html", {"sources": sources, "kinds": offered})


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def new(request: HttpRequest, kind: str) -> HttpResponse:
    """The form for a source of this kind; it is tried before it is kept."""
    workspace = request_workspace(request)
    require_editor(user=request.user, workspace=workspace)
    try:
        label = _(connector_class(kind).label)
    except InvalidInput as error:
        raise NotFound(str(error)) from error
    form = SourceForm(
        request.POST if request.method == "POST" else None,
        kind=kind,
        workspace_id=workspace.pk,
        collection=request.GET.get("collection", ""),
    )
    if form.is_valid():
        values = form.cleaned_data
        with _errors_in_form(form):
            found = services.first_items(kind, form.options(), user=request.user)
            source = services.create_source(
                collection=values["collection"],
                name=values["name"],
                connector=kind,
                options=form.options(),
                schedule=values["schedule"],
                delete_missing=values.get("delete_missing", True),
                access=values.get("access"),
                access_rules=values["access_rules"],
                maps_readers=values.get("maps_readers", False),
                user=request.user,
            )
            names = ", ".join(item.name for item in found) or _("nothing yet")
            messages.success(
                request,
                _("“%(source)s” is saved. Its files include: %(names)s.")
                % {"source": source, "names": names},
            )
            return redirect("source", pk=source.pk)
    context = {"form": form, "label": label}
    status = 400 if form.errors else 200
    return render(request, "sources/source_form.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """The form of a source that is there; passwords are never shown."""
    source = _editable_source(request, pk)
    form = SourceForm(
        request.POST if request.method == "POST" else None,
        kind=source.connector,
        workspace_id=source.workspace_id,
        source=source,
    )
    if form.is_valid():
        values = form.cleaned_data
        with _errors_in_form(form):
            services.update_source(
                source=source,
                user=request.user,
                name=values["name"],
                options=form.options(),
                schedule=values["schedule"],
                delete_missing=values.get("delete_missing", True),
                access=values.get("access"),
                access_rules=values["access_rules"],
                maps_readers=values.get("maps_readers", False),
            )
            return redirect("source", pk=source.pk)
    label = _(connector_class(source.connector).label)
    context = {"form": form, "label": label, "source": source}
    status = 400 if form.errors else 200
    return render(request, "sources/source_form.html", context, status=status)


@require_safe
@login_required_page
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One source with its newest runs; the partial `state` is reloaded while a run goes on."""
    source = _get_source(request, pk)
    runs = list(source.runs.select_related("user")[:RUNS])
    context = {
        "source": source,
        "label": _(connector_class(source.connector).label),
        "options": _public_options(source),
        "runs": runs,
        "running": next((run for run in runs if not run.is_finished), None),
        "item_count": source.items.count(),
        "failed": services.visible_failures(source, user=request.user).order_by("name")[:FAILURES],
        "failed_count": source.items.filter(failures__gt=0).count(),
        "problem": describe_problem(source),
    }
    is_part = request.headers.get("HX-Request") == "true"
    name = "sources/source.html#state" if is_part else "sources/source.html"
    response = render(request, name, context)
    patch_vary_headers(response, ["HX-Request"])
    return response


@require_safe
@login_required_page
def preview(request: HttpRequest, pk: int) -> HttpResponse:
    """What a run would do; nothing is changed."""
    source = _editable_source(request, pk)
    context: dict[str, Any] = {"source": source}
    try:
        comparison, gone, context["doubt"] = services.preview(source)
    except SourceError as error:
        context["error"] = str(error)
    else:
        context |= {
            "comparison": comparison,
            "gone_count": len(gone),
            **{
                sort: services.visible_names(source, names[:PREVIEWED], user=request.user)
                for sort, names in (
                    ("new", comparison.new_names),
                    ("changed", comparison.changed_names),
                    ("gone", gone),
                )
            },
        }
    return render(request, "sources/source_preview.html", context)


@require_POST
@login_required_page
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """Begin a run, with leave to delete however much is gone where that was confirmed."""
    source = _editable_source(request, pk)
    with errors_as_messages(request):
        allow_deletions = request.POST.get("deletions") == "any"
        services.start_run(source=source, user=request.user, allow_deletions=allow_deletions)
    return redirect("source", pk=source.pk)


@require_POST
@login_required_page
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """End the run that is going on; what it has fetched stays."""
    source = _editable_source(request, pk)
    for each in source.runs.filter(finished_at=None):
        services.cancel_run(run=each)
    return redirect("source", pk=source.pk)


@require_POST
@login_required_page
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Fetch again what was given up."""
    source = _editable_source(request, pk)
    count = services.retry_items(source=source)
    with errors_as_messages(request):
        services.start_run(source=source, user=request.user)
        told = ngettext(
            "The next run fetches %d file again.", "The next run fetches %d files again.", count
        )
        messages.success(request, told % count)
    return redirect("source", pk=source.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def webhook(request: HttpRequest, pk: int) -> HttpResponse:
    """The address that others call to have it read, and its secret: the answer to the form shows a
    new one without a redirect, because it would have to be stored until then."""
    source = _editable_source(request, pk)
    secret = ""
    if request.method == "POST" and request.POST.get("act") == "make":
        secret = services.make_webhook_secret(source=source)
    elif request.method == "POST" and request.POST.get("act") == "remove":
        services.remove_webhook(source=source)
        messages.success(request, _("The webhook is removed."))
        return redirect("source_webhook", pk=source.pk)
    address = request.build_absolute_uri(reverse("source_hook", args=[source.pk]))
    context = {"source": source, "secret": secret, "address": address}
    response = render(request, "sources/source_webhook.html", context)
    response.headers["Cache-Control"] = "no-store"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask what becomes of the documents; remove on POST."""
    source = _editable_source(request, pk)
    if request.method == "POST":
        with_documents = request.POST.get("documents") == "delete"
        services.delete_source(source=source, with_documents=with_documents)
        messages.success(request, _("“%(source)s” is removed.") % {"source": source})
        return redirect("sources")
    context = {"source": source, "item_count": source.items.count()}
    return render(request, "sources/source_remove.html", context)


def _public_options(source: DataSource) -> list[tuple[str, str]]:
    """Titles and values of the options, without secrets."""
    fields = connector_class(source.connector).Options.model_fields
    return [
        (_(field.title or name), _("yes") if value is True else value)
        for name, field in fields.items()
        if (value := source.options.get(name))
    ]


@contextmanager
def _errors_in_form(form: SourceForm) -> Iterator[None]:
    """Errors of options beside their fields; those of the source itself above the form."""
    with errors_in_form(form):
        try:
            yield
        except SourceError as error:
            form.add_error(None, str(error))
        except InvalidInput as error:
            if PREFIX + error.field in form.fields:
                form.add_error(PREFIX + error.field, str(error).removeprefix(f"{error.field}: "))
            else:
                raise


def _get_source(request: HttpRequest, pk: int) -> DataSource:
    source = _visible_sources(request).filter(pk=pk).first()
    if source is None:
        raise NotFound(
            gettext("This source does not exist. It may have been removed with its collection.")
        )
    return source


def _editable_source(request: HttpRequest, pk: int) -> DataSource:
    source = _get_source(request, pk)
    require_editor(user=request.user, workspace=source.workspace)
    return source


def _visible_sources(request: HttpRequest) -> QuerySet[DataSource]:
    workspace = request_workspace(request)
    sources = DataSource.objects.visible_to(request.user).filter(workspace=workspace)
    return sources.select_related("collection", "workspace")
