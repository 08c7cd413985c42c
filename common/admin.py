"""Bases and columns of the admins: fast on tables of millions of rows, and with services behind
them. Begin with `LargeTableAdmin` and `ServiceDeletion`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib import messages
from django.contrib.admin import ShowFacets, SimpleListFilter, action
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth import get_permission_codename
from django.contrib.contenttypes.models import ContentType
from django.core.paginator import Page, Paginator
from django.db import connections
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy
from unfold.admin import ModelAdmin
from unfold.decorators import display

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
        with connections[rows.db].cursor() as cursor:
            cursor.execute(
                "SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass",
                [rows.model._meta.db_table],
            )
            return max(counted, int(cursor.fetchone()[0]))

    def page(self, number: int | str) -> "Page[Any]":
        """A page; for a deep one, earlier rows are skipped in the index alone."""
        number = self.validate_number(number)
        first = (number - 1) * self.per_page
        if first < COUNTED_ROWS:
            return super().page(number)
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        keys = list(rows.values_list("pk", flat=True)[first : first + self.per_page])
        return Page(rows.filter(pk__in=keys), number, self)


class LargeTableAdmin(ModelAdmin):
    """Lists without a full count.

    Columns in `heavy_fields` are never loaded, those in `list_heavy_fields` only on a row's page.
    """

    paginator = EstimatedPaginator
    ordering: Sequence[str] = ["-pk"]
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

    def get_list_select_related(self, request: HttpRequest) -> Any:
        """Without a declaration, the rows that the columns name."""
        related = {field.name for field in self.opts.fields if field.remote_field}
        columns = (str(column).removesuffix("_link") for column in self.list_display)
        return self.list_select_related or [name for name in columns if name in related]

    def search_rows(self, rows: QuerySet[Any], term: str) -> QuerySet[Any] | None:
        """The rows with these words, found by an index; None for Django's search in
        `search_fields`."""
        return None

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        found = self.search_rows(queryset, search_term) if search_term else queryset
        if found is not None:
            return found, False
        results: tuple[QuerySet[Any], bool] = super().get_search_results(
            request, queryset, search_term
        )
        return results


class ReadOnlyAdmin(LargeTableAdmin):
    """Rows that the site writes, or that editors of a workspace change on its pages."""

    change_form_outer_before_template = "admin/edit_on_page.html"
    #: Whether users with the permission may delete rows.
    can_delete = False

    def page_address(self, row: Any) -> str:
        """The page of the workspace on which its editors change the row; empty for none."""
        return ""

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, obj: Any = None, **kw: Any
    ) -> HttpResponse:
        if obj is not None and (address := self.page_address(obj)):
            context |= {"page_address": address, "page_workspace": obj.workspace}
        answer: HttpResponse = super().render_change_form(request, context, *args, obj=obj, **kw)
        return answer

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.can_delete and bool(super().has_delete_permission(request, obj))


class QueueAdmin(ReadOnlyAdmin):
    """Work with a state and an error, which can be tried again after it was given up."""

    sortable_by = ["state_label"]
    actions = ["try_again"]

    def retry(self, ids: list[int]) -> int:
        """Put what was given up of these rows into the queue; how many."""
        raise NotImplementedError

    def has_operate_permission(self, request: HttpRequest) -> bool:
        name = get_permission_codename("change", self.opts)
        return bool(request.user.has_perm(f"{self.opts.app_label}.{name}"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        shown: QuerySet[Any] = rows.annotate(beginning=Left("error", EXCERPT_CHARACTERS))
        return shown

    @action(description=gettext_lazy("Try again"), permissions=["operate"])
    def try_again(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        ids = list(queryset.values_list("pk", flat=True))
        number, of = (
            number_format(each, force_grouping=True) for each in (self.retry(ids), len(ids))
        )
        told = gettext("{number} of {ids} are in the queue again.").format(number=number, ids=of)
        messages.success(request, told)

    @display(description=gettext_lazy("error"))
    def problem(self, row: Any) -> SafeString:
        return excerpt(row.beginning)


class LoggedById(ModelAdmin):
    """Admin whose log entries show ids instead of names: names are text of documents and would
    outlive their deletion.
    """

    def log_by_id(
        self, request: HttpRequest, rows: Iterable[Model], flag: int, message: Any = ""
    ) -> list[LogEntry]:
        return LogEntry.objects.bulk_create(
            LogEntry(
                user_id=int(request.user.pk or 0),
                content_type=ContentType.objects.get_for_model(row),
                object_id=row.pk,
                object_repr=f"{self.opts.verbose_name} {row.pk}",
                action_flag=flag,
                change_message=json.dumps(message) if isinstance(message, list) else message,
            )
            for row in rows
        )

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        return self.log_by_id(request, [obj], ADDITION, message)[0]

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        return self.log_by_id(request, [obj], CHANGE, message)[0]

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        return self.log_by_id(request, queryset, DELETION)


class DeletionPreview(ModelAdmin):
    """Names and counts what is deleted. Django's own way would load every row below, even a million
    chunks, only to list their names."""

    def deletion_counts(self, rows: list[Any]) -> dict[str, int]:
        """How many rows of each kind are deleted with `rows`."""
        return {str(self.opts.verbose_name_plural): len(rows)}

    def deletion_name(self, row: Any) -> str:
        return str(row)

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        rows = list(objs)
        shown: list[Any] = [self.deletion_name(row) for row in rows[:MAX_PREVIEWED]]
        if len(rows) > MAX_PREVIEWED:
            shown.append(
                gettext("… and {number} more").format(
                    number=number_format(len(rows) - MAX_PREVIEWED, force_grouping=True)
                )
            )
        missing = set() if self.has_delete_permission(request) else {str(self.opts.verbose_name)}
        return shown, self.deletion_counts(rows), missing, []


class ServiceDeletion(DeletionPreview):
    """Deletes rows through a service, which knows what else has to go."""

    def delete_rows(self, rows: Iterable[Any]) -> None:
        """Delete the rows through their service."""
        raise NotImplementedError

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.delete_rows([obj])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.delete_rows(queryset)


class ConditionFilter(SimpleListFilter):
    """A filter whose choices are conditions: labels and conditions by the values of the parameter.
    Those of "" hold while nothing is chosen; without them everything is listed.
    """

    conditions: Mapping[str, tuple[Any, Q]]  # the label may be lazy

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            (value, capfirst(gettext(label)))
            for value, (label, _) in self.conditions.items()
            if value
        ]

    def choices(self, changelist: Any) -> Any:
        unset, *others = super().choices(changelist)
        label, _ = self.conditions.get("", (unset["display"], Q()))
        yield {**unset, "display": gettext(str(label))}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        _, condition = self.conditions.get(self.value() or "", ("", Q()))
        return queryset.filter(condition)


def value_filter(title: Any, field: str, values: Iterable[str]) -> type[ConditionFilter]:
    """A choice for each value; reading the distinct ones from the table would scan it."""
    conditions = {value: (value.replace("_", " "), Q(**{field: value})) for value in values}
    attributes = {"title": title, "parameter_name": field, "conditions": conditions}
    return type("ValueFilter", (ConditionFilter,), attributes)


def bidi_isolated(text: str) -> SafeString:
    """Foreign text in a `<bdi>`, so that its direction marks affect nothing else."""
    return format_html("<bdi>{}</bdi>", text)


def excerpt(beginning: str) -> SafeString:
    """The first EXCERPT_CHARACTERS of a text on one line."""
    line = " ".join(beginning.split())
    return bidi_isolated(f"{line}…" if len(beginning) >= EXCERPT_CHARACTERS else line)


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


def counted(model: type[Model], number: int) -> str:
    """A number of rows with what they are: “1 passage”, “2,000 passages”."""
    meta = model._meta
    name = meta.verbose_name if number == 1 else meta.verbose_name_plural
    return f"{number_format(number, force_grouping=True)} {name}"


def link_column(name: str, description: str = "") -> Any:
    """A column that links to the related row `name`."""

    @display(description=gettext_lazy(description or name.replace("_", " ")), ordering=name)
    def column(self: ModelAdmin, row: Any) -> str | SafeString:
        return link_to(getattr(row, name))

    return column


def choice_column(name: str, colours: Mapping[Any, str]) -> Any:
    """A column of a field with choices, as coloured labels."""

    @display(description=name, ordering=name, label=colours)
    def column(self: ModelAdmin, row: Any) -> tuple[Any, str]:
        return getattr(row, name), getattr(row, f"get_{name}_display")()

    return column


def requires(permission: str) -> Any:
    """A method such as `has_operate_permission`: whether the user has this permission."""

    def has_permission(self: ModelAdmin, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm(permission))

    return has_permission
