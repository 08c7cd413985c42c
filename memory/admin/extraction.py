"""The queue of conversations that facts are learnt from."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import EXCERPT_CHARACTERS, excerpt, isolated
from memory.admin.base import RememberedAdmin
from memory.models import ExtractionItem
from memory.services.extraction import retry_extractions

State = ExtractionItem.State
STATE_COLOURS = {State.WAITING: "info", State.RUNNING: "info", State.DEAD: "danger"}
MESSAGE_CHARACTERS = 2000


class OpenFilter(admin.SimpleListFilter):
    """Those with something to read, unless others are asked for."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        states = [(str(value), str(label).capitalize()) for value, label in State.choices]
        return [*states, ("all", "All")]

    def choices(self, changelist: Any) -> Any:
        unread, *others = super().choices(changelist)
        yield {**unread, "display": "All but nothing waits"}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "all":
            return queryset
        states = [self.value()] if self.value() else [State.DEAD, State.WAITING, State.RUNNING]
        return queryset.filter(state__in=states)


@admin.register(ExtractionItem)
class ExtractionItemAdmin(RememberedAdmin):
    """Nothing of it is edited. What was given up stands first, and can be tried again."""

    list_display = [
        "name",
        "user",
        "workspace",
        "shown_state",
        "attempts",
        "outages",
        "problem",
        "due_at",
        "last_message_at",
    ]
    list_filter = [OpenFilter, ("workspace", AutocompleteSelectFilter)]
    list_heavy_fields = ("messages", "error")
    heavy_fields = ("taken",)
    # By the alphabet, “dead” comes before all others.
    ordering = ["state", "due_at"]
    sortable_by = ["shown_state"]
    params_for_all_rows = {"state": "all"}
    actions = ["try_again"]
    fields = [
        "user_link",
        "workspace",
        "name",
        "state",
        "error",
        "attempts",
        "outages",
        "due_at",
        "leased_until",
        "waiting",
        "seen",
        "last_message_at",
        "extracted_at",
        "extractor",
        "facts",
        "contexts",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ExtractionItem]:
        rows: QuerySet[ExtractionItem] = super().get_queryset(request)
        return rows.annotate(beginning=Left("error", EXCERPT_CHARACTERS))

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Whether the user may have conversations tried again."""
        return bool(request.user.has_perm("memory.change_extractionitem"))

    @admin.action(description="Try again", permissions=["operate"])
    def try_again(self, request: HttpRequest, queryset: QuerySet[ExtractionItem]) -> None:
        ids = list(queryset.values_list("pk", flat=True))
        number = retry_extractions(item_ids=ids)
        messages.success(request, f"{number:,} of {len(ids):,} are in the queue again.")

    @display(description="conversation", ordering="id")
    def name(self, row: ExtractionItem) -> SafeString:
        return isolated(row.key)

    @display(description="state", ordering="state", label=STATE_COLOURS)
    def shown_state(self, row: ExtractionItem) -> tuple[str, str]:
        return row.state, row.get_state_display()

    @display(description="error")
    def problem(self, row: Any) -> SafeString:
        return excerpt(row.beginning)

    @display(description="messages that wait")
    def waiting(self, row: ExtractionItem) -> str:
        said = (str(message.get("content", ""))[:MESSAGE_CHARACTERS] for message in row.messages)
        return (
            format_html_join("", "<div><bdi>{}</bdi></div>", ((text,) for text in said)) or "none"
        )
