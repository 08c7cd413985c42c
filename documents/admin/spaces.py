"""Embedding spaces, and the moves between them."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.formats import number_format
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy, gettext_noop
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
)

from common.admin import (
    LargeTableAdmin,
    ReadOnlyAdmin,
    choice_column,
    counted,
    link_column,
    link_to,
    link_to_list,
    requires,
)
from common.errors import ExplainedError
from common.web import errors_as_messages
from documents import services
from documents.models import Chunk, Collection, EmbeddingSpace, Reembedding
from documents.spaces import INDEX_OPTIONS, OPTION_BOUNDS, SEARCH_OPTIONS
from inference.model_registry import embedders

State = Reembedding.State
STATE_COLOURS = {
    State.RUNNING: "info",
    State.STOPPED: "warning",
    State.FAILED: "danger",
    State.DONE: "success",
}


def _option_field(name: str, meaning: Any) -> forms.IntegerField:
    least, most = OPTION_BOUNDS[name]
    return forms.IntegerField(
        required=False,
        min_value=least,
        max_value=most,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=format_lazy(
            gettext_lazy("{meaning}, {least} to {most}. Empty: what suits the size of the index."),
            meaning=meaning,
            least=least,
            most=number_format(most, force_grouping=True),
        ),
    )


class SpaceForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """Settings of a new space, and those of a space that can be changed; model and dimensions come
    from the embedder. Written by the services while it is validated, so that their errors appear
    beside the fields and nothing typed is lost."""

    embedder = forms.ChoiceField(
        choices=lambda: list(embedders.labels().items()),
        widget=UnfoldAdminSelectWidget,
        help_text=gettext_lazy("Its alias: “default”, or one of EMBEDDERS."),
    )
    precision = forms.ChoiceField(
        choices=[
            ("", gettext_lazy("Finest that can be indexed")),
            *EmbeddingSpace.Precision.choices,
        ],
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text=gettext_lazy(
            "Of the index. Vectors are stored in full, and hits are ranked by them."
        ),
    )
    query_instruction = forms.CharField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text=gettext_lazy(
            "What queries tell a model to find that heeds instructions. Empty: its own."
        ),
    )

    ef_search = _option_field(
        "ef_search", gettext_lazy("HNSW: how many candidates a search looks at")
    )
    probes = _option_field("probes", gettext_lazy("IVFFlat: how many lists a search looks at"))

    class Meta:
        model = EmbeddingSpace
        fields = [
            *("name", "embedder", "metric", "index_type", "precision", "query_instruction"),
            *SEARCH_OPTIONS,
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in SEARCH_OPTIONS:
            self.initial[name] = self.instance.index_options.get(name)

    def _post_clean(self) -> None:
        """In place of the checks of the model, which are the services'."""
        if self.errors:
            return
        try:
            self.instance = self._write(self.cleaned_data)
        except ExplainedError as error:
            name = getattr(error, "field", "")
            self.add_error(name if name in self.fields else None, str(error))

    def _write(self, given: dict[str, Any]) -> EmbeddingSpace:
        space: EmbeddingSpace = self.instance
        self.remarks: Sequence[str] = ()
        options = {name: given.pop(name) for name in SEARCH_OPTIONS if name in given}
        if space.pk:
            services.change_instruction(space=space, instruction=given["query_instruction"])
            known = INDEX_OPTIONS[space.index_type]
            services.change_search_options(
                space=space, **{name: options[name] for name in SEARCH_OPTIONS if name in known}
            )
            return space
        given["precision"] = given["precision"] or None
        options = {name: value for name, value in options.items() if value is not None}
        made, self.remarks = services.add_space(**given, options=options)
        return made


@admin.register(EmbeddingSpace)
class EmbeddingSpaceAdmin(LargeTableAdmin):
    """Created by the services and filled by re-embedding. Everything that its vectors depend on is
    read-only."""

    form = SpaceForm
    list_display = [
        "name",
        "model_name",
        "dimensions",
        "metric",
        "index",
        "state",
        "is_default",
        "users",
    ]
    list_filter = ["state"]
    search_fields = ["name", "model_name"]
    ordering = ["id"]
    fixed_fields = [
        "name",
        "embedder",
        "model_name",
        "dimensions",
        "metric",
        "query_instruction",
        "index",
        "index_options",
        "state",
        "is_default",
        "users",
        "moves",
        "created_at",
        "updated_at",
    ]
    actions = ["reembed", "build_index"]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return SpaceForm.Meta.fields
        known = INDEX_OPTIONS[obj.index_type]
        place = self.fixed_fields.index("index_options")
        options = [name for name in SEARCH_OPTIONS if name in known]
        return [*self.fixed_fields[:place], *options, *self.fixed_fields[place:]]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [name for name in self.fixed_fields if name != "query_instruction"] if obj else []

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # `manage.py spaces drop`

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        for remark in form.remarks:
            messages.info(request, remark)

    @display(description=gettext_lazy("index"))
    def index(self, space: EmbeddingSpace) -> str:
        (report,) = services.space_reports(name=space.name, count=False)
        if space.index_type == EmbeddingSpace.IndexType.NONE:
            return gettext("none (exact)")
        kind = f"{space.get_index_type_display()}, {space.get_precision_display().lower()}"
        if report.index is None:
            return gettext("{kind}, not built").format(kind=kind)
        size = filesizeformat(report.index.bytes) if report.index.valid else gettext("broken")
        return f"{kind}, {size}"

    @display(description=gettext_lazy("used by"))
    def users(self, space: EmbeddingSpace) -> str:
        return link_to_list(Collection, gettext("collections"), space__id__exact=space.pk)

    @display(description=gettext_lazy("moves"))
    def moves(self, space: EmbeddingSpace) -> str:
        return link_to_list(Reembedding, gettext("re-embeddings"), target__id__exact=space.pk)

    @admin.action(description=gettext_lazy("Re-embed everything into it"), permissions=["change"])
    def reembed(self, request: HttpRequest, queryset: QuerySet[EmbeddingSpace]) -> None:
        for space in queryset:
            with errors_as_messages(request):
                services.queue_reembedding(target=space, user=request.user)
                messages.success(
                    request,
                    gettext(
                        "The embedding workers have started. Searches find everything meanwhile."
                    ),
                )

    @admin.action(description=gettext_lazy("Build its index"), permissions=["change"])
    def build_index(self, request: HttpRequest, queryset: QuerySet[EmbeddingSpace]) -> None:
        for space in queryset:
            with errors_as_messages(request):
                services.queue_space_index(space=space)
                messages.success(request, gettext("A worker builds the index."))


@admin.register(Reembedding)
class ReembeddingAdmin(ReadOnlyAdmin):
    """Progress of a move to another space; it can be stopped and resumed."""

    list_display = ["name", "target", "collection", "state_label", "progress", "started_at"]
    list_filter = ["state", "target"]
    search_fields = ["target__name"]
    fields = [
        "target_link",
        "what",
        "state_in_words",
        "progress",
        "error",
        "created_by",
        "started_at",
        "seen_at",
        "finished_at",
    ]
    actions = ["stop", "go_on"]
    state_label = choice_column("state", STATE_COLOURS)
    target_link = link_column("target", gettext_noop("into"))

    has_operate_permission = requires("documents.change_embeddingspace")

    @display(description=gettext_lazy("move"), ordering="id")
    def name(self, row: Reembedding) -> str:
        return f"{row.pk}: {row}"

    @display(description=gettext_lazy("state"))
    def state_in_words(self, row: Reembedding) -> str:
        return str(row.get_state_display())

    @display(description=gettext_lazy("progress"))
    def progress(self, row: Reembedding) -> str:
        progress = gettext("{done} of {chunks} ({percent} %)").format(
            done=number_format(row.done, force_grouping=True),
            chunks=counted(Chunk, row.total),
            percent=f"{100 * row.share:.0f}",
        )
        if not row.refused:
            return progress
        refused = number_format(len(row.refused), force_grouping=True)
        refusals = gettext("{number} refused").format(number=refused)
        return f"{progress}, {refusals}"

    @display(description=gettext_lazy("what"))
    def what(self, row: Reembedding) -> str:
        return link_to(row.collection) if row.collection else gettext("all collections")

    @admin.action(description=gettext_lazy("Stop"), permissions=["operate"])
    def stop(self, request: HttpRequest, queryset: QuerySet[Reembedding]) -> None:
        for row in queryset:
            if row.state == State.RUNNING and services.cancel_reembedding(target=row.target):
                messages.success(
                    request,
                    gettext("Stopped. Both spaces are searched until it goes on or goes back."),
                )
            else:
                messages.info(request, gettext("It is not running."))

    @admin.action(description=gettext_lazy("Go on"), permissions=["operate"])
    def go_on(self, request: HttpRequest, queryset: QuerySet[Reembedding]) -> None:
        for row in queryset:
            if row.state not in (State.STOPPED, State.FAILED):
                messages.info(request, gettext("It has neither stopped nor failed."))
                continue
            with errors_as_messages(request):
                services.queue_reembedding(
                    target=row.target, collection=row.collection, by_hand=False, user=request.user
                )
                messages.success(request, gettext("The embedding workers go on with it."))
