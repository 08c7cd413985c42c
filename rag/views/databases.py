"""Pages of connections to catalogued databases: all, a new one, and one with its trial."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts.current_workspace import request_workspace
from common.errors import Forbidden, RagsiteError
from common.web import errors_in_form, login_required_page
from documents.forms import workspace_people
from rag.forms import DatabaseForm
from rag.models import DatabaseConnection
from rag.services import databases as services


@require_safe
@login_required_page
def index(request: HttpRequest) -> HttpResponse:
    """The connections of the workspace, for those who manage them."""
    workspace = request_workspace(request)
    may_manage = services.may_manage(user=request.user, workspace=workspace)
    connections = (
        services.managed_connections(user=request.user, workspace=workspace) if may_manage else []
    )
    context = {"connections": connections, "may_manage": may_manage}
    return render(request, "rag/databases.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def new(request: HttpRequest) -> HttpResponse:
    """The form of a new connection; it is tried before it is kept."""
    workspace = request_workspace(request)
    services.require_manager(user=request.user, workspace=workspace)
    data = request.POST if request.method == "POST" else None
    form = DatabaseForm(data, workspace_id=workspace.pk)
    if form.is_valid():
        with errors_in_form(form):
            row, trial = services.connect_database(
                collection=form.cleaned_data["collection"],
                options=form.options(),
                access=form.cleaned_data.get("access"),
                is_enabled=form.cleaned_data["is_enabled"],
                user=request.user,
            )
            _tell_trial(request, row, trial)
            return redirect("database", pk=row.pk)
    return _form_page(request, form, None)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """The form of a connection that is there; its password is never shown."""
    connection = _connection(request, pk)
    if not services.may_change(user=request.user, connection=connection):
        raise Forbidden(
            _("The operator of the site has set this connection. Ask them to change it.")
        )
    data = request.POST if request.method == "POST" else None
    form = DatabaseForm(data, workspace_id=connection.workspace_id, connection=connection)
    if form.is_valid():
        with errors_in_form(form):
            services.change_connection(
                connection=connection,
                options=form.options(),
                access=form.cleaned_data.get("access", connection.access),
                is_enabled=form.cleaned_data["is_enabled"],
                user=request.user,
            )
            messages.success(request, _("Saved."))
            return redirect("database", pk=pk)
    return _form_page(request, form, connection)


def _form_page(
    request: HttpRequest, form: DatabaseForm, connection: DatabaseConnection | None
) -> HttpResponse:
    context = {"form": form, "connection": connection}
    status = 400 if form.errors else 200
    response = render(request, "rag/database_form.html", context, status=status)
    response.headers["Cache-Control"] = "no-store"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One connection; a POST tries it, or switches it on or off."""
    connection = _connection(request, pk)
    context: dict[str, Any] = {}
    if request.method == "POST":
        try:
            if request.POST.get("act") == "try":
                _tell_trial(request, connection, services.try_connection(connection))
            else:
                services.change_connection(
                    connection=connection,
                    is_enabled=request.POST.get("act") == "on",
                    user=request.user,
                )
            return redirect("database", pk=pk)
        except RagsiteError as error:
            context["fault"] = str(error)
    people = dict(workspace_people(connection.workspace_id))
    context |= {
        "connection": connection,
        "may_change": services.may_change(user=request.user, connection=connection),
        "people": [people.get(each, each) for each in connection.access or ()],
    }
    return render(request, "rag/database.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Say what follows; remove on POST."""
    connection = _connection(request, pk)
    if request.method == "POST":
        services.remove_connection(connection=connection)
        messages.success(request, _("“%(name)s” is removed.") % {"name": connection})
        return redirect("databases")
    return render(request, "rag/database_remove.html", {"connection": connection})


def _tell_trial(
    request: HttpRequest, connection: DatabaseConnection, trial: services.DatabaseTrial
) -> None:
    messages.success(
        request,
        _("“%(name)s” answers: PostgreSQL %(version)s, by a role that only reads.")
        % {"name": connection, "version": trial.server_version},
    )
    for warning in trial.warnings:
        messages.warning(request, warning)


def _connection(request: HttpRequest, pk: int) -> DatabaseConnection:
    return services.managed_connection(
        user=request.user, workspace=request_workspace(request), pk=pk
    )
