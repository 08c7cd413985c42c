"""Pages of tables: those of a collection, and the rows of one."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_POST, require_safe

from accounts.current_workspace import request_workspace
from accounts.services import require_editor
from common.errors import InvalidInput, NotFound
from common.pagination import newest_first
from common.web import errors_as_messages, login_required_page
from documents.services import get_collection
from tables import services
from tables.execute import first_table_of_plan
from tables.forms import TYPE_LABELS, ColumnForm, GroupColumnsForm, RowForm
from tables.groups import curation
from tables.groups.meaning import suggest_by_meaning
from tables.models import Table
from tables.options import PAGE_ROWS, PageOptions, RowOptions
from tables.plan_tokens import read_plan_token

#: Tables that are listed with a suggested group.
MAX_SUGGESTED = 20


@require_safe
@login_required_page
def index(request: HttpRequest, slug: str) -> HttpResponse:
    """The tables of a collection, those of the newest documents first."""
    collection = get_collection(workspace=request_workspace(request), slug=slug)
    asked = request.GET.get("find", "").strip()[:200]
    tables = (
        Table.objects.visible_to(request.user)
        .filter(collection=collection)
        .current()
        .select_related("document")
    )
    page = newest_first(tables.named(asked) if asked else tables, request.GET)
    kept = request.GET.copy()
    for name in ("before", "after"):
        kept.pop(name, None)
    context = {
        "collection": collection,
        "page": page,
        "asked": asked,
        "extra": f"{kept.urlencode()}&" if kept else "",
        "suggested": curation.with_suggestions(tables, tables).order_by("pk")[:MAX_SUGGESTED],
    }
    return render(request, "tables/tables.html", context)


@require_POST
@login_required_page
def look_for_matches(request: HttpRequest, slug: str) -> HttpResponse:
    """Suggests tables to be asked together whose columns are near in meaning."""
    workspace = request_workspace(request)
    require_editor(user=request.user, workspace=workspace)
    found = suggest_by_meaning(get_collection(workspace=workspace, slug=slug))
    if found:
        messages.success(
            request,
            ngettext(
                "{number} match is suggested.", "{number} matches are suggested.", found
            ).format(number=found),
        )
    else:
        messages.info(request, gettext("No further match was found."))
    return redirect("tables", slug)


@require_safe
@login_required_page
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """The rows of a table, as `RowOptions` in the address ask for them."""
    table = _find_table(request, pk)
    visible = Table.objects.visible_to(request.user)
    form = RowForm(request.GET or None, table=table)
    given = {name: value for name, value in request.GET.items() if value}
    problem = ""
    try:
        known = {name: given[name] for name in RowOptions.model_fields if name in given}
        options = RowOptions.from_text(known | {"limit": PAGE_ROWS})
        page = services.read_page(table, options)
    except InvalidInput as error:
        problem = str(error)
        options = RowOptions()
        page = services.read_page(table, options)
    context = {
        "table": table,
        "document": table.document,
        "collection": table.collection,
        "form": form,
        "problem": problem,
        "page": page,
        "columns": _columns(request, table.columns, options, page.sums),
        "rows": [
            {
                "query": f"?chunk={row.chunk}&quote={row.start}-{row.end}" if row.chunk else "",
                "place": row.place,
                "number": row.ordinal + 1,
                "cells": _typed_cells(row.cells, table.columns),
            }
            for row in page.results
        ],
        "is_filtered": bool(options.words or options.column),
        **_paging(request, options, len(page.results), page.count),
        "file_query": _changed(request, sort="", descending="", offset=""),
        "column_form": ColumnForm(table=table),
        "together": curation.count_together(table, visible),
        "has_suggestion": curation.with_suggestions(visible.filter(pk=pk), visible).exists(),
    }
    return render(request, "tables/table.html", context, status=400 if problem else 200)


@require_safe
@login_required_page
def result_rows(request: HttpRequest) -> HttpResponse:
    """The rows that an answer was computed from, which `?reading=` names, as `PageOptions` in the
    address ask for them."""
    workspace = request_workspace(request)
    reading = request.GET.get("reading", "")
    plan = read_plan_token(reading)
    tables = Table.objects.visible_to(request.user).filter(workspace=workspace).current()
    given = {name: value for name, value in request.GET.items() if value}
    known = {name: given[name] for name in PageOptions.model_fields if name in given}
    options = PageOptions.from_text(known | {"limit": PAGE_ROWS})
    page = services.read_result(plan, tables, options)
    table = first_table_of_plan(plan, tables)
    context = {
        "page": page,
        "collection": table.document.collection,
        "table": table if len(plan.tables) == 1 else None,
        "columns": _columns(request, table.columns, options, page.sums),
        "rows": [
            {
                "title": row.title,
                "url": row.url,
                "place": row.place,
                "cells": _typed_cells(row.cells, table.columns),
            }
            for row in page.results
        ],
        "file_query": urlencode({"reading": reading, "workspace": workspace.slug}),
        **_paging(request, options, len(page.results), page.count),
    }
    return render(request, "tables/rows.html", context)


@require_POST
@login_required_page
def change_column(request: HttpRequest, pk: int) -> HttpResponse:
    """Corrects a column."""
    table = _find_table(request, pk)
    require_editor(user=request.user, workspace=table.workspace)
    form = ColumnForm(request.POST, table=table)
    if not form.is_valid():
        messages.error(request, gettext("Choose a column, and what is to change."))
        return redirect("table", pk=pk)
    values: dict[str, Any] = {
        name: value for name, value in form.cleaned_data.items() if value or name == "column"
    }
    with errors_as_messages(request):
        services.correct_column(table=table, **values)
        messages.success(request, gettext("The column is changed."))
    return redirect("table", pk=pk)


@require_safe
@login_required_page
def group(request: HttpRequest, pk: int) -> HttpResponse:
    """The tables that are asked together with one, and what their columns are called."""
    table = _find_table(request, pk)
    found = curation.read_group(table, Table.objects.visible_to(request.user))
    context = {
        "table": table,
        "document": table.document,
        "collection": table.collection,
        "group": found,
        "form": GroupColumnsForm(table=table, group=found),
    }
    return render(request, "tables/group.html", context)


@require_POST
@login_required_page
def change_group(request: HttpRequest, pk: int) -> HttpResponse:
    """Corrects a group: `act` says what of it."""
    table = _find_table(request, pk)
    require_editor(user=request.user, workspace=table.workspace)
    act = request.POST.get("act", "")
    tables = Table.objects.visible_to(request.user)
    with errors_as_messages(request):
        if act in ("accept", "refuse"):
            curation.correct(table=table, tables=tables, suggestion=act)  # type: ignore[arg-type]
        elif act in ("apart", "alike", "together"):
            curation.set_apart(table=table, is_apart=act != "together", with_alike=act == "alike")
        elif act == "columns":
            form = GroupColumnsForm(
                request.POST, table=table, group=curation.read_group(table, tables)
            )
            if not form.is_valid():
                raise InvalidInput(gettext("Choose which columns these are."))
            curation.set_columns(table=table, means=form.means())
        else:
            raise InvalidInput(gettext("Choose what is to change."))
        messages.success(request, gettext("The group is changed."))
    return redirect("table_group", pk=pk)


def _find_table(request: HttpRequest, pk: int) -> Table:
    tables = Table.objects.visible_to(request.user).filter(workspace=request_workspace(request))
    table = tables.select_related("document", "collection", "workspace").filter(pk=pk).first()
    if table is None:
        raise NotFound(
            gettext("There is no such table. Its document may have been changed or deleted.")
        )
    return table


def _columns(
    request: HttpRequest,
    columns: Sequence[dict[str, Any]],
    options: PageOptions,
    sums: Sequence[services.ColumnSum],
) -> list[dict[str, Any]]:
    """Heads of columns: their types, what sorts by them, and the sums at their feet."""
    by_position = {each.position: each.sum for each in sums}
    heads = []
    for position, column in enumerate(columns, start=1):
        is_sorted = options.sort == column["name"]
        descending = "1" if is_sorted and not options.descending else ""
        direction = "descending" if options.descending else "ascending"
        heads.append(
            {
                **column,
                "label": TYPE_LABELS[column["type"]],
                "sum": by_position.get(position),
                "sort_query": _changed(
                    request, sort=column["name"], descending=descending, offset=""
                ),
                "sorted": direction if is_sorted else "",
            }
        )
    return heads


def _typed_cells(cells: Sequence[str], columns: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(cell, column["type"]) for cell, column in zip(cells, columns, strict=True)]


def _paging(request: HttpRequest, options: PageOptions, listed: int, count: int) -> dict[str, Any]:
    before, after = max(0, options.offset - PAGE_ROWS), options.offset + PAGE_ROWS
    return {
        "first": options.offset + 1,
        "last": options.offset + listed,
        "previous": _changed(request, offset=str(before or "")) if options.offset else "",
        "following": _changed(request, offset=str(after)) if after < count else "",
    }


def _changed(request: HttpRequest, **changes: str) -> str:
    """The query string with other values; empty ones are left out."""
    query = request.GET.copy()
    for name, value in changes.items():
        query.pop(name, None)
        if value:
            query[name] = value
    return query.urlencode()
