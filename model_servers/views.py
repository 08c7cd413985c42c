"""Pages of models: those that are connected and found nearby, a new one, and one with its trial."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_workspace import request_workspace
from accounts.members import is_owner, require_owner
from accounts.models import Workspace
from common.errors import InvalidInput, NotFound
from common.stored_messages import translated_message
from common.text import parse_integer
from common.web import errors_as_messages, errors_in_form, login_required_page
from documents.models import Collection
from inference.chat_models import chat_models
from inference.interfaces import InferenceError
from model_servers import embedding, services
from model_servers.discovery import find_models
from model_servers.forms import ConnectionForm, workspace_names
from model_servers.models import ModelConnection
from model_servers.options import PRESETS, ConnectionOptions


@require_safe
@login_required_page
def index(request: HttpRequest) -> HttpResponse:
    """Which models answer, and where they are connected."""
    workspace = request_workspace(request)
    is_operator = services.may_manage(user=request.user, workspace=None)
    may_connect = is_operator or services.may_manage(user=request.user, workspace=workspace)
    usable = services.usable_connections(workspace)
    connections = services.managed_connections(user=request.user, workspace=workspace)
    context: dict[str, Any] = {
        "defaults": [each for each in connections if embedding.is_default(each)],
        "names": chat_models(workspace_id=workspace.pk),
        "environment": services.environment_models(),
        "overruled": [each for each in connections if services.is_overruled(each)],
        "connections": connections,
        "is_operator": is_operator,
        "may_connect": may_connect,
        "presets": [
            (name, _(preset.label))
            for name, preset in PRESETS.items()
            if is_operator or not preset.is_local
        ],
        "usable": usable,
        "chosen": services.chosen_connection(workspace),
        "may_choose": bool(usable) and is_owner(user=request.user, workspace=workspace),
        "looks": is_operator and bool(settings.FIND_MODEL_SERVERS),
    }
    if is_operator and "found" in request.GET:  # without JavaScript
        context |= {"looks": False, "found": find_models(connections)}
    return render(request, "model_servers/models.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def found(request: HttpRequest) -> HttpResponse:
    """Models of servers nearby, as a part of the page; a POST connects one and has it answer."""
    workspace = request_workspace(request)
    services.require_manager(user=request.user, workspace=None)
    known = services.managed_connections(user=request.user, workspace=workspace)
    offered = find_models(known)
    if request.method != "POST":
        return render(request, "model_servers/found.html", {"found": offered})
    given = (request.POST.get("address"), request.POST.get("model"))
    for each in offered:
        if (each.address, each.model) == given:
            break
    else:
        messages.error(request, _("This model is not there any more. Is its server running?"))
        return redirect("models")
    with errors_as_messages(request):
        options = ConnectionOptions.from_data(
            {"kind": each.kind, "address": each.address, "model": each.model}
        )
        connection = services.connect_model(
            options=services.with_reported_context(options), is_default=True
        )
        messages.success(
            request, _("Answers are written by “%(model)s” from now on.") % {"model": connection}
        )
        return redirect("model_connection", pk=connection.pk)
    return redirect("models")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def new(request: HttpRequest, preset: str) -> HttpResponse:
    """The form for a model of a known server; it is tried before it is kept."""
    if preset not in PRESETS:
        raise NotFound(gettext("This kind of server does not exist."))
    workspace = request_workspace(request)
    is_operator = services.may_manage(user=request.user, workspace=None)
    owner = None if is_operator else workspace
    services.require_manager(user=request.user, workspace=owner)
    return _edit(request, owner, preset=preset)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """The form of a connection that is there; its key is never shown."""
    connection = _connection(request, pk)
    return _edit(request, connection.workspace, connection=connection)


def _edit(
    request: HttpRequest,
    owner: Workspace | None,
    *,
    preset: str = "",
    connection: ModelConnection | None = None,
) -> HttpResponse:
    context: dict[str, Any] = {"preset": PRESETS.get(preset), "connection": connection}
    names = (
        workspace_names() if owner is None and not (connection and connection.is_default) else {}
    )
    given: dict[str, Any] = {
        "preset": context["preset"],
        "connection": connection,
        "chooses_purpose": owner is None and connection is None,
    }
    act = request.POST.get("act", "")
    if request.method == "POST" and act == "list":
        context |= _listed(request, owner, connection)
        form = ConnectionForm(None, **given, workspaces=names, models=context["models"])
        form.initial.update(
            {name: request.POST.get(name) for name in form.fields},
            workspaces=request.POST.getlist("workspaces"),
        )
    else:
        data = request.POST if request.method == "POST" else None
        form = ConnectionForm(data, **given, workspaces=names)
    if form.is_valid():
        with errors_in_form(form):
            kept = _saved(form, owner, connection, is_tried=act != "anyway", context=context)
            if kept is not None:
                messages.success(request, _("“%(model)s” is connected.") % {"model": kept})
                return redirect("model_connection", pk=kept.pk)
    is_part = act == "list" and request.headers.get("HX-Request") == "true"
    template = "model_servers/form.html#models" if is_part else "model_servers/form.html"
    status = 400 if form.errors or context.get("fault") else 200
    response = render(
        request, template, {**context, "form": form}, status=200 if is_part else status
    )
    response.headers["Cache-Control"] = "no-store"
    return response


def _listed(
    request: HttpRequest, owner: Workspace | None, connection: ModelConnection | None
) -> dict[str, Any]:
    """The models of the server in the form, or what is wrong with it."""
    key = request.POST.get("key", "")
    try:
        given = {name: request.POST.get(name, "") for name in ("kind", "address")}
        given |= {"model": "-", "purpose": request.POST.get("purpose") or "chat"}
        if key:
            given["key"] = key
        typed = ConnectionOptions.from_text(given)
        row = services.unsaved_connection(typed, owner, stored=connection)
        return {"models": services.list_models(row)}
    except (InvalidInput, InferenceError) as error:
        return {"models": [], "fault": translated_message(str(error))}


def _saved(
    form: ConnectionForm,
    owner: Workspace | None,
    connection: ModelConnection | None,
    *,
    is_tried: bool,
    context: dict[str, Any],
) -> ModelConnection | None:
    """The connection as it was saved, or None with a `fault` to show. Raises RagsiteError."""
    options = form.options()
    if is_tried:
        try:
            options, _ = services.tried_options(options, owner, stored=connection)
        except InferenceError as error:
            context["fault"] = translated_message(str(error))
            context["may_save"] = True
            return None
    if connection is None:
        return services.connect_model(
            options=options, workspace=owner, workspaces=form.chosen_workspaces()
        )
    return services.change_connection(
        connection=connection, options=options, workspaces=form.chosen_workspaces()
    )


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One connection; a POST tries it."""
    connection = _connection(request, pk)
    is_default = embedding.is_default(connection)
    context: dict[str, Any] = {"connection": connection, "is_default": is_default}
    if request.method == "POST":
        try:
            context["trial"] = services.try_connection(connection)
        except InferenceError as error:
            context["fault"] = translated_message(str(error))
    if connection.workspaces is not None:
        names = workspace_names()
        context["workspaces"] = [names[pk] for pk in connection.workspaces if pk in names]
    context["is_overruled"] = services.is_overruled(connection)
    if connection.purpose == ModelConnection.Purpose.EMBEDDER:
        context |= {
            "moves": embedding.moves_to(connection),
            "collections": _collections(request),
        }
        context["is_moving"] = any(move.state == "running" for move in context["moves"])
    is_part = request.method == "GET" and request.headers.get("HX-Request") == "true"
    template = "model_servers/model.html#moves" if is_part else "model_servers/model.html"
    return render(request, template, context)


@require_POST
@login_required_page
def use(request: HttpRequest, pk: int) -> HttpResponse:
    """Have an embedder serve new collections, all of them, or one of the workspace."""
    connection = _connection(request, pk)
    services.require_manager(user=request.user, workspace=None)
    chosen = request.POST.get("collections", "")
    collection = None
    if chosen not in ("new", "all"):
        collection = _collections(request).filter(pk=parse_integer(chosen) or 0).first()
        if collection is None:
            raise NotFound(gettext("This collection does not exist, or you may not see it."))
    with errors_as_messages(request):
        embedding.use_for_documents(
            connection=connection,
            collection=collection,
            everything=chosen == "all",
            user=request.user,
        )
        messages.success(
            request,
            _("New collections get this embedder.")
            if chosen == "new"
            else _("The workers embed what is there. Searches find everything meanwhile."),
        )
    return redirect("model_connection", pk=pk)


def _collections(request: HttpRequest) -> QuerySet[Collection]:
    own = Collection.objects.filter(workspace=request_workspace(request))
    return own.visible_to(request.user)


@require_POST
@login_required_page
def default(request: HttpRequest, pk: int) -> HttpResponse:
    """Make it the default of the site, or no longer."""
    connection = _connection(request, pk)
    services.require_manager(user=request.user, workspace=None)
    with errors_as_messages(request):
        is_default = request.POST.get("is_default") != "no"
        services.set_default(connection=connection, is_default=is_default)
    return redirect("model_connection", pk=pk)


@require_POST
@login_required_page
def choose(request: HttpRequest) -> HttpResponse:
    """Which model answers in the workspace; empty: the site's default."""
    workspace = request_workspace(request)
    require_owner(user=request.user, workspace=workspace)
    pk = parse_integer(request.POST.get("connection", ""))
    usable = {each.pk: each for each in services.usable_connections(workspace)}
    chosen = None if pk is None else usable.get(pk)
    if pk is not None and chosen is None:
        raise NotFound(gettext("This connection does not exist, or you may not see it."))
    services.choose_model(workspace=workspace, connection=chosen)
    messages.success(request, _("Saved."))
    return redirect("models")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Say what follows; remove on POST."""
    connection = _connection(request, pk)
    if request.method == "POST":
        with errors_as_messages(request):
            services.remove_connection(connection=connection)
            messages.success(request, _("“%(model)s” is removed.") % {"model": connection})
            return redirect("models")
        return redirect("model_connection", pk=pk)
    return render(request, "model_servers/remove.html", {"connection": connection})


def _connection(request: HttpRequest, pk: int) -> ModelConnection:
    workspace = request_workspace(request)
    if not services.may_manage(user=request.user, workspace=None):
        services.require_manager(user=request.user, workspace=workspace)
    return services.managed_connection(user=request.user, workspace=workspace, pk=pk)
