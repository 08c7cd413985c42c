"""Admin of memory: contexts, facts with their history, the extraction queue, prunings."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy, gettext_noop
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from accounts.models import Workspace
from common.admin import (
    EXCERPT_CHARACTERS,
    ConditionFilter,
    QueueAdmin,
    ReadOnlyAdmin,
    ServiceDeletion,
    bidi_isolated,
    choice_column,
    counted,
    excerpt,
    link_to,
    link_to_list,
    requires,
)
from memory import services
from memory.models import Context, ExtractionItem, Fact, Pruning
from memory.scopes import ACCOUNT_PREFIX, UserScope
from memory.services.memories import retry_extractions


def scope_of_row(row: Any) -> UserScope:
    """The scope (workspace and user) of a row."""
    return UserScope(row.workspace_id, row.user_id)


class UserRowAdmin(ReadOnlyAdmin):
    """Rows of users, found by the exact user id.

    Texts are not searched: curating memory means looking at one person's rows, not searching
    everybody's.
    """

    search_fields = ["user_id"]
    search_help_text = gettext_lazy("The full id of a user.")

    def search_rows(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        # With the workspaces named, an index finds the user.
        workspaces = list(Workspace.objects.values_list("pk", flat=True))
        return rows.filter(workspace__in=workspaces, user_id=term)

    @display(description=gettext_lazy("user"), ordering="user_id")
    def user(self, row: Any) -> SafeString:
        return bidi_isolated(row.user_id)

    @display(description=gettext_lazy("user"))
    def user_link(self, row: Any) -> SafeString:
        whose = {"workspace__id__exact": row.workspace_id, "user_id__exact": row.user_id}
        text = gettext("all {rows}").format(rows=self.opts.verbose_name_plural)
        link = link_to_list(self.model, text, **self.params_for_all_rows, **whose)
        return format_html("<bdi>{}</bdi> · {}", row.user_id, link)

    #: Query parameters that show all rows of a list with a default filter.
    params_for_all_rows: dict[str, Any] = {}


class EmbeddedFilter(ConditionFilter):
    title = gettext_lazy("vector")
    parameter_name = "vector"
    conditions = {"no": (gettext_noop("Waiting for one"), Q(embedding=None))}


@admin.register(Context)
class ContextAdmin(ServiceDeletion, UserRowAdmin):
    """Contexts: read only, may be deleted."""

    can_delete = True
    list_display = ["beginning", "user", "workspace", "conversation_name", "origin", "created_at"]
    list_display += ["has_vector"]
    list_filter = [("workspace", AutocompleteSelectFilter), "origin", EmbeddedFilter, "created_at"]
    heavy_fields = ("embedding", "search_vector")
    list_heavy_fields = ("user_message", "assistant_response")
    sortable_by = ["beginning"]
    fields = ["user_link", "workspace", "conversation_name", "user_message", "assistant_response"]
    fields += ["created_at", "origin", "learnt", "language", "size_in_words", "space", "has_vector"]
    fields += ["embed_attempts"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Context]:
        embedded = ExpressionWrapper(Q(embedding__isnull=False), output_field=BooleanField())
        rows: QuerySet[Context] = super().get_queryset(request)
        return rows.annotate(embedded=embedded, said=Left("user_message", EXCERPT_CHARACTERS))

    def delete_rows(self, rows: Iterable[Any]) -> None:
        theirs: dict[UserScope, list[int]] = defaultdict(list)
        for row in rows:
            theirs[scope_of_row(row)].append(row.pk)
        for scope, ids in theirs.items():
            services.forget_contexts(scope=scope, ids=ids)

    @display(description=gettext_lazy("said"), ordering="id")
    def beginning(self, row: Any) -> SafeString | str:
        return excerpt(row.said) if row.said.strip() else gettext("(only an answer)")

    @display(description=gettext_lazy("conversation"))
    def conversation_name(self, row: Context) -> SafeString:
        return bidi_isolated(row.conversation)

    @display(description=gettext_lazy("facts learned from it"))
    def learnt(self, row: Context) -> SafeString:
        return link_to_list(
            Fact, counted(Fact, row.facts.count()), source__id__exact=row.pk, held="all"
        )

    @display(description=gettext_lazy("bytes"))
    def size_in_words(self, row: Context) -> str:
        return str(filesizeformat(row.size))

    @display(description=gettext_lazy("vector"), boolean=True)
    def has_vector(self, row: Any) -> bool:
        return bool(row.embedded)


class CurrentFilter(ConditionFilter):
    title = gettext_lazy("considered true")
    parameter_name = "held"
    conditions = {
        "": (gettext_noop("Now"), Q(valid_to=None)),
        "before": (gettext_noop("Before"), Q(valid_to__isnull=False)),
        "all": (gettext_noop("Now or before"), Q()),
    }


@admin.register(Fact)
class FactAdmin(ServiceDeletion, UserRowAdmin):
    """Facts with their history, to end and to delete; they are corrected on the pages of memory."""

    can_delete = True
    list_display = ["name", "value_text", "user", "workspace", "origin", "valid_from", "valid_to"]
    list_filter = [("workspace", AutocompleteSelectFilter), CurrentFilter, "origin", "valid_from"]
    heavy_fields = ("embedding", "search_vector")
    list_heavy_fields = ("value",)
    sortable_by = ["name"]
    actions = ["clear"]
    params_for_all_rows = {"held": "all"}
    has_end_permission = requires("memory.change_fact")
    fieldsets = [
        (
            None,
            {
                "description": gettext_lazy(
                    "People correct their own facts on their page Memory. Here any fact can be"
                    " ended or deleted."
                ),
                "fields": [
                    *("user_link", "workspace", "name", "value", "valid_from", "valid_to"),
                    *("all_values", "origin", "source_link", "superseded_by_link"),
                    *("language", "space", "embed_attempts"),
                ],
            },
        )
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Fact]:
        rows: QuerySet[Fact] = super().get_queryset(request)
        return rows.annotate(beginning=Left("value", EXCERPT_CHARACTERS))

    def page_address(self, row: Fact) -> str:
        """Only the users of programs: accounts correct their memory themselves."""
        if row.user_id.startswith(ACCOUNT_PREFIX):
            return ""
        return reverse("memory_fact", args=[row.key], query={"user_id": row.user_id})

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)
        if "delete_selected" in actions:
            act, name, _ = actions["delete_selected"]
            actions["delete_selected"] = (act, name, gettext("Delete with all history"))
        return actions

    @admin.action(description=gettext_lazy("End: no longer true"), permissions=["end"])
    def clear(self, request: HttpRequest, queryset: QuerySet[Fact]) -> None:
        current = queryset.filter(valid_to=None)
        ended = [
            row for row in current if services.clear_fact(scope=scope_of_row(row), key=row.key)
        ]
        for row in ended:
            self.log_change(request, row, "Cleared.")
        text = gettext("{facts} ended. Their history stays.")
        messages.success(request, text.format(facts=counted(Fact, len(ended))))

    def delete_rows(self, rows: Iterable[Any]) -> None:
        """Delete the keys with their history: a remaining old value would reveal the same."""
        for scope, key in {(scope_of_row(row), row.key) for row in rows}:
            services.forget_fact(scope=scope, key=key)

    def deletion_counts(self, rows: list[Any]) -> dict[str, int]:
        keys = {(scope_of_row(row), row.key) for row in rows}
        values = sum(Fact.objects.of(scope).filter(key=key).count() for scope, key in keys)
        return {gettext("facts"): len(keys), gettext("values, former ones included"): values}

    @display(description=gettext_lazy("key"), ordering="key")
    def name(self, row: Fact) -> SafeString:
        return bidi_isolated(row.key)

    @display(description=gettext_lazy("value"))
    def value_text(self, row: Any) -> SafeString:
        return excerpt(row.beginning)

    @display(description=gettext_lazy("learned from"))
    def source_link(self, row: Fact) -> str:
        return link_to(Context.objects.only("pk").filter(facts=row).first())

    @display(description=gettext_lazy("superseded by"))
    def superseded_by_link(self, row: Fact) -> str:
        return link_to(Fact.objects.only("pk").filter(supersedes=row).first())

    @display(description=gettext_lazy("all values"))
    def all_values(self, row: Fact) -> SafeString:
        values = Fact.objects.of(scope_of_row(row)).filter(key=row.key).count()
        whose = {"workspace__id__exact": row.workspace_id, "user_id__exact": row.user_id}
        return link_to_list(Fact, counted(Fact, values), **whose, key__exact=row.key, held="all")


_State = ExtractionItem.State
_STATE_COLOURS = {_State.WAITING: "info", _State.RUNNING: "info", _State.DEAD: "danger"}
MAX_MESSAGE_CHARACTERS = 2000


class StateFilter(ConditionFilter):
    title = gettext_lazy("state")
    parameter_name = "state"
    conditions = {
        "": (
            gettext_noop("Any pending state"),
            Q(state__in=[_State.DEAD, _State.WAITING, _State.RUNNING]),
        ),
        **{str(value): (label, Q(state=value)) for value, label in _State.choices},
        "all": (gettext_noop("All"), Q()),
    }


@admin.register(ExtractionItem)
class ExtractionItemAdmin(QueueAdmin, UserRowAdmin):
    """The extraction queue, read only. Dead items come first and can be retried."""

    list_display = ["name", "user", "workspace", "state_label", "attempts", "outages", "problem"]
    list_display += ["due_at", "last_message_at"]
    list_filter = [StateFilter, ("workspace", AutocompleteSelectFilter)]
    list_heavy_fields = ("messages", "error")
    heavy_fields = ("taken",)
    # By the alphabet, “dead” comes before all others.
    ordering = ["state", "due_at"]
    params_for_all_rows = {"state": "all"}
    state_label = choice_column("state", _STATE_COLOURS)
    fields = ["user_link", "workspace", "name", "state", "error", "attempts", "outages", "due_at"]
    fields += ["leased_until", "waiting", "seen", "last_message_at", "extracted_at", "extractor"]
    fields += ["facts", "contexts"]

    def retry(self, ids: list[int]) -> int:
        return retry_extractions(item_ids=ids)

    @display(description=gettext_lazy("conversation"), ordering="id")
    def name(self, row: ExtractionItem) -> SafeString:
        return bidi_isolated(row.key)

    @display(description=gettext_lazy("messages that wait"))
    def waiting(self, row: ExtractionItem) -> str:
        said = (
            str(message.get("content", ""))[:MAX_MESSAGE_CHARACTERS] for message in row.messages
        )
        return (
            format_html_join("", "<div><bdi>{}</bdi></div>", ((text,) for text in said)) or "none"
        )


@admin.register(Pruning)
class PruningAdmin(UserRowAdmin):
    """Counts only: nothing of the removed texts is kept."""

    list_display = ["user", "workspace", "reason", "rows", "size", "until", "created_at"]
    list_filter = [("workspace", AutocompleteSelectFilter), "reason", "created_at"]
    sortable_by = ["user"]
    fields = ["user_link", "workspace", "reason", "rows", "size", "until", "created_at"]

    @display(description=gettext_lazy("bytes"), ordering="bytes")
    def size(self, row: Pruning) -> str:
        return str(filesizeformat(row.bytes))
