"""What people changed in passages."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from common.admin import ReadOnlyAdmin, link_to
from common.errors import RagsiteError
from documents import services
from documents.models import ChunkEdit

STATE_COLOURS = {
    ChunkEdit.State.APPLIED: "success",
    ChunkEdit.State.CONFLICT: "warning",
    ChunkEdit.State.UNDONE: "info",
    ChunkEdit.State.CLOSED: "info",
}


@admin.register(ChunkEdit)
class ChunkEditAdmin(ReadOnlyAdmin):
    """Looked at, undone and dismissed here; made on the page of a document or of a chunk."""

    list_display = ["id", "document_link", "shown_state", "user", "created_at"]
    list_filter = ["state"]
    list_select_related = ["document", "user"]
    list_heavy_fields = ("before", "after", "document__metadata", "document__declared")
    search_fields = ["document__key", "document__title", "user__username"]
    ordering = ["-id"]
    actions = ["undo", "dismiss"]
    fields = [
        "document_link",
        "state",
        "before",
        "after",
        "chunk",
        "start",
        "user",
        "created_at",
        "settled_by",
        "settled_at",
    ]

    @admin.action(description="Undo", permissions=["undo"])
    def undo(self, request: HttpRequest, queryset: QuerySet[ChunkEdit]) -> None:
        """The later ones first."""
        self._each(request, queryset, services.undo_edit, "undone")

    @admin.action(description="Dismiss those that were not kept", permissions=["undo"])
    def dismiss(self, request: HttpRequest, queryset: QuerySet[ChunkEdit]) -> None:
        """Those that no source says any more."""
        self._each(request, queryset, services.dismiss_edit, "dismissed")

    def has_undo_permission(self, request: HttpRequest) -> bool:
        """Whoever may change chunks."""
        return bool(request.user.has_perm("documents.change_chunk"))

    def _each(self, request: HttpRequest, rows: Any, act: Any, done: str) -> None:
        count = 0
        for edit in rows.order_by("-pk"):
            try:
                act(edit=edit, user=request.user)
                count += 1
            except RagsiteError as error:
                self.message_user(request, f"{edit}: {error}", messages.ERROR)
        if count:
            self.message_user(request, f"{count:,} {'is' if count == 1 else 'are'} {done}.")

    @display(description="document", ordering="document")
    def document_link(self, edit: ChunkEdit) -> str:
        return link_to(edit.document)

    @display(description="state", ordering="state", label=STATE_COLOURS)
    def shown_state(self, edit: ChunkEdit) -> tuple[str, str]:
        return edit.state, edit.get_state_display()
