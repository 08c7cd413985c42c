"""Facts: corrected through their history, ended, forgotten."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.formats import localize
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextareaWidget

from common.admin import EXCERPT_CHARACTERS, excerpt, isolated, link_to
from common.errors import RagsiteError
from common.wording import counted
from memory import services, texts
from memory.admin.base import ForgettableAdmin, scope_of_row
from memory.models import Context, Fact

#: Former values that a page names.
SHOWN_VALUES = 50
VALUE_CHARACTERS = 2000


class HeldFilter(admin.SimpleListFilter):
    """What is held true, unless what was is asked for."""

    title = "held true"
    parameter_name = "held"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("before", "Before"), ("all", "Now or before")]

    def choices(self, changelist: Any) -> Any:
        now, *others = super().choices(changelist)
        yield {**now, "display": "Now"}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "all":
            return queryset
        return queryset.filter(valid_to__isnull=self.value() != "before")


class CorrectionForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A new value takes the place of the one that is held true now."""

    correction = forms.CharField(
        label="New value",
        required=False,
        strip=True,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="Holds from now on. The value before it stays in the history.",
    )

    class Meta:
        model = Fact
        fields: list[str] = []

    def clean_correction(self) -> str:
        """What the service takes, so that saving cannot be refused."""
        value: str = self.cleaned_data["correction"]
        used = services.usage(scope=scope_of_row(self.instance))
        if value and used.max_facts is not None and used.facts >= used.max_facts:
            raise forms.ValidationError(f"This user has {used.facts:,} facts; no more are kept.")
        try:
            return texts.storable(value, field="correction")
        except RagsiteError as error:
            raise forms.ValidationError(str(error)) from error


@admin.register(Fact)
class FactAdmin(ForgettableAdmin):
    """No value is edited: a correction supersedes it, as when the user says something else."""

    form = CorrectionForm
    list_display = ["name", "shown_value", "user", "workspace", "origin", "valid_from", "valid_to"]
    list_filter = [("workspace", AutocompleteSelectFilter), HeldFilter, "origin", "valid_from"]
    heavy_fields = ("embedding", "search_vector")
    list_heavy_fields = ("value",)
    ordering = ["-id"]
    sortable_by = ["name"]
    actions = ["clear"]
    params_for_all_rows = {"held": "all"}
    shown_fields = [
        "user_link",
        "workspace",
        "name",
        "value",
        "valid_from",
        "valid_to",
        "origin",
        "source_link",
        "superseded_by_link",
        "former",
        "language",
        "space",
        "embed_attempts",
    ]
    readonly_fields = shown_fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Fact]:
        rows: QuerySet[Fact] = super().get_queryset(request)
        return rows.annotate(beginning=Left("value", EXCERPT_CHARACTERS))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What was held true cannot be changed any more."""
        may = request.user.has_perm("memory.change_fact")
        return bool(may and (obj is None or obj.valid_to is None))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        correctable = self.has_change_permission(request, obj)
        return [*(["correction"] if correctable else []), *self.shown_fields]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)
        if "delete_selected" in actions:
            act, name, _ = actions["delete_selected"]
            actions["delete_selected"] = (act, name, "Forget with all their history")
        return actions

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        value = form.cleaned_data["correction"]
        if not value:
            return
        made = services.set_fact(scope=scope_of_row(obj), key=obj.key, value=value)
        if made is not None:
            # The page goes on with the value that is held true now.
            obj.__dict__.update(made.fact.__dict__)

    @admin.action(description="Clear: true no longer", permissions=["change"])
    def clear(self, request: HttpRequest, queryset: QuerySet[Fact]) -> None:
        current = queryset.filter(valid_to=None)
        ended = [
            row for row in current if services.clear_fact(scope=scope_of_row(row), key=row.key)
        ]
        for row in ended:
            self.log_change(request, row, "Cleared.")
        messages.success(request, f"{counted(len(ended), 'fact')} ended. Their history stays.")

    def forget(self, rows: Iterable[Any]) -> None:
        """With all that their keys ever were: a value left behind would tell the same."""
        for scope, key in {(scope_of_row(row), row.key) for row in rows}:
            services.forget_fact(scope=scope, key=key)

    def counted(self, rows: list[Any]) -> dict[str, int]:
        keys = {(scope_of_row(row), row.key) for row in rows}
        values = sum(Fact.objects.of(scope).filter(key=key).count() for scope, key in keys)
        return {"facts": len(keys), "values, former ones included": values}

    @display(description="key", ordering="key")
    def name(self, row: Fact) -> SafeString:
        return isolated(row.key)

    @display(description="value")
    def shown_value(self, row: Any) -> SafeString:
        return excerpt(row.beginning)

    @display(description="learnt from")
    def source_link(self, row: Fact) -> str:
        return link_to(Context.objects.only("pk").filter(facts=row).first())

    @display(description="superseded by")
    def superseded_by_link(self, row: Fact) -> str:
        return link_to(Fact.objects.only("pk").filter(supersedes=row).first())

    @display(description="all values")
    def former(self, row: Fact) -> str:
        values = services.history(scope=scope_of_row(row), key=row.key)[:SHOWN_VALUES]
        lines = ((_period(each), each.value[:VALUE_CHARACTERS], link_to(each)) for each in values)
        return format_html_join("", "<div>{}: <bdi>{}</bdi> · {}</div>", lines)


def _period(row: Fact) -> str:
    end = localize(localtime(row.valid_to)) if row.valid_to else "now"
    return f"{localize(localtime(row.valid_from))} to {end}"
