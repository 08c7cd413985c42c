"""Admin base classes that stay fast on tables of millions of rows."""

import json
from typing import Any

from django.contrib.admin import ShowFacets
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.paginator import Page, Paginator
from django.db import connections
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin

#: Rows that are counted one by one; a larger table is estimated, a larger selection cut off.
COUNTED_ROWS = 10_000
#: Rows that the preview of a deletion names.
MAX_PREVIEWED = 20
EXCERPT_CHARACTERS = 160


class EstimatedPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Counts at most 10,000 rows.

    A larger whole table is shown with PostgreSQL's estimate. A larger selection ends after 10,000
    rows, because counting would read every row.
    """

    @cached_property
    def count(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        counted = rows.order_by().values("pk")[: COUNTED_ROWS + 1].count()
        if counted <= COUNTED_ROWS or rows.query.where:
            return min(counted, COUNTED_ROWS)
        return max(counted, _estimated_rows(rows))

    def page(self, number: int | str) -> "Page[Any]":
        """A page; for a deep one, earlier rows are skipped in the index alone."""
        number = self.validate_number(number)
        first = (number - 1) * self.per_page
        if first < COUNTED_ROWS:
            return super().page(number)
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        keys = list(rows.values_list("pk", flat=True)[first : first + self.per_page])
        return Page(rows.filter(pk__in=keys), number, self)


def _estimated_rows(rows: QuerySet[Any]) -> int:
    with connections[rows.db].cursor() as cursor:
        cursor.execute(
            "SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass",
            [rows.model._meta.db_table],
        )
        return int(cursor.fetchone()[0])


class LargeTableAdmin(ModelAdmin):
    """Lists without a full count.

    Columns in `heavy_fields` are never loaded, those in `list_heavy_fields` only on a row's page.
    """

    paginator = EstimatedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_per_page = 50
    list_filter_submit = True
    heavy_fields: tuple[str, ...] = ()
    list_heavy_fields: tuple[str, ...] = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        is_row = request.resolver_match is not None and "object_id" in request.resolver_match.kwargs
        return rows.defer(*self.heavy_fields, *(() if is_row else self.list_heavy_fields))


class ReadOnlyAdmin(LargeTableAdmin):
    """Rows that the site writes and nobody edits."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def log_by_id(
    model_admin: ModelAdmin, request: HttpRequest, rows: Any, flag: int, message: Any = ""
) -> list[LogEntry]:
    """Log an action with ids instead of names: names are text of documents and would outlive their
    deletion.
    """
    return LogEntry.objects.bulk_create(
        LogEntry(
            user_id=int(request.user.pk or 0),
            content_type=ContentType.objects.get_for_model(row),
            object_id=row.pk,
            object_repr=f"{model_admin.opts.verbose_name} {row.pk}",
            action_flag=flag,
            change_message=json.dumps(message) if isinstance(message, list) else message,
        )
        for row in rows
    )


class LoggedById(ModelAdmin):
    """Admin whose log entries show ids instead of names."""

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        return log_by_id(self, request, [obj], ADDITION, message)[0]

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        return log_by_id(self, request, [obj], CHANGE, message)[0]

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        return log_by_id(self, request, queryset, DELETION)


def bidi_isolated(text: str) -> SafeString:
    """Foreign text in a `<bdi>`, so that its direction marks affect nothing else."""
    return format_html("<bdi>{}</bdi>", text)


def excerpt(beginning: str) -> SafeString:
    """The first EXCERPT_CHARACTERS of a text on one line."""
    line = " ".join(beginning.split())
    return bidi_isolated(f"{line}…" if len(beginning) >= EXCERPT_CHARACTERS else line)


def run_submit_action(model_admin: ModelAdmin, request: HttpRequest, row: Model) -> None:
    """Run the pressed submit-line button without saving the row."""
    for button in model_admin.get_actions_submit_line(request, row.pk):
        if button.action_name in request.POST:
            button.method(request, row)


def link_to(row: Model | None, text: str = "") -> str | SafeString:
    """A link to the admin page of `row`."""
    if row is None:
        return "—"
    meta = row._meta
    address = reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk])
    return format_html('<a class="underline" href="{}">{}</a>', address, text or row)


def link_to_list(model: type[Model], text: str, **filters: Any) -> SafeString:
    """A link to the admin list of `model`, narrowed to `filters`."""
    meta = model._meta
    address = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
    return format_html(
        '<a class="underline" href="{}?{}">{}</a>', address, urlencode(filters), text
    )


def deletion_preview(
    admin: ModelAdmin, request: HttpRequest, names: list[str], counts: dict[str, int]
) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
    """Result for `get_deleted_objects`: some rows by name, related rows as `counts`, nothing
    protected.
    """
    shown: list[Any] = names[:MAX_PREVIEWED]
    if len(names) > MAX_PREVIEWED:
        shown.append(f"… and {len(names) - MAX_PREVIEWED:,} more")
    missing = set() if admin.has_delete_permission(request) else {str(admin.opts.verbose_name)}
    return shown, counts, missing, []
