"""The history: who changed what."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.response import Response

from accounts.api.base import WorkspaceParameters, WorkspaceViewSet
from accounts.history import NAMED_THINGS, Action, Door, Kind
from accounts.models import Change
from common.pagination import MAX_ID
from common.serializers import PageParameters

ONE = OpenApiExample(
    "A collection that is read for the graph in another way",
    value={
        "id": 812,
        "at": "2026-11-22T20:41:07Z",
        "user": "alice",
        "key": None,
        "door": "page",
        "action": "changed",
        "kind": "collection",
        "thing": 3,
        "count": 1,
        "collection": 3,
        "document": None,
        "details": {"fields": ["graph"], "values": {"graph": ["rules", "llm"]}},
        "summary": "changed collection 3",
    },
    response_only=True,
)


def _choices(known: type[Action] | type[Door] | type[Kind]) -> list[str]:
    return [each.value for each in known]


class ChangeFilter(PageParameters, WorkspaceParameters):
    """Which changes."""

    kind = serializers.ChoiceField(
        choices=_choices(Kind), required=False, help_text="Only changes of this kind of thing."
    )
    thing = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_ID, help_text="Only the one with this id."
    )
    collection = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_ID,
        help_text="Only the collection with this id, and what is in it.",
    )
    document = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_ID,
        help_text="Only the document with this id, and what is in it.",
    )
    action = serializers.ChoiceField(
        choices=_choices(Action), required=False, help_text="Only what was done so."
    )
    user = serializers.CharField(
        required=False, max_length=150, help_text="Only what the user of this name did."
    )


@extend_schema_serializer(component_name="ChangeDetails")
class DetailsSerializer(serializers.Serializer[Any]):
    """What is known of a change besides. A name without anything to tell is left out."""

    fields = serializers.ListField(  # type: ignore[assignment]  # DRF's metaclass takes it out
        child=serializers.CharField(), required=False, help_text="Names of the fields."
    )
    values = serializers.DictField(
        required=False,
        help_text="Numbers, moments and choices by name; a pair is before and after.",
    )
    ids = serializers.ListField(
        child=serializers.IntegerField(),
        required=False,
        help_text=f"The first {NAMED_THINGS:,} ids, where it was done to several things.",
    )


@extend_schema_serializer(component_name="Change")
class ChangeSerializer(serializers.ModelSerializer[Change]):
    """That somebody changed something. No text of it is kept."""

    at = serializers.DateTimeField(source="created_at", help_text="When.")
    user = serializers.CharField(
        source="user.username",
        default=None,
        allow_null=True,
        help_text="Who. Null: a command, the site itself, or a user who was deleted.",
    )
    key = serializers.IntegerField(
        source="key_id", allow_null=True, help_text="Id of the API key that was shown."
    )
    door = serializers.ChoiceField(
        choices=["", *_choices(Door)], help_text="Where it was done; empty: by the site itself."
    )
    action = serializers.ChoiceField(choices=_choices(Action), help_text="What was done.")
    kind = serializers.ChoiceField(choices=_choices(Kind), help_text="To what kind of thing.")
    details = DetailsSerializer(help_text="More about it.")
    summary = serializers.CharField(help_text="The same in words.")

    class Meta:
        model = Change
        fields = [
            "id",
            "at",
            "user",
            "key",
            "door",
            "action",
            "kind",
            "thing",
            "count",
            "collection",
            "document",
            "details",
            "summary",
        ]
        read_only_fields = fields


@extend_schema(tags=["history"])
class ChangeViewSet(WorkspaceViewSet):
    """Who changed what in the workspace, for those who may change things there."""

    serializer_class = ChangeSerializer
    lookup_value_converter = "int"
    action_parameters = {"list": ChangeFilter}

    def get_queryset(self) -> QuerySet[Change]:
        rows = Change.objects.visible_to(self.request.user).select_related("user")
        return self.in_workspace(rows)

    @extend_schema(
        summary="List changes, newest first",
        description="For owners and editors. Of memories you see what you did yourself. Texts are"
        " never kept: a change names fields, numbers and choices.",
    )
    def list(self, *args: Any, **kwargs: Any) -> Response:
        self.require_editor(self.workspace)
        names = ("kind", "thing", "collection", "document", "action")
        wanted = {name: self.parameters[name] for name in names if name in self.parameters}
        if "user" in self.parameters:
            wanted["user__username"] = self.parameters["user"]
        return self.page(self.get_queryset().filter(**wanted))

    @extend_schema(summary="Read a change", examples=[ONE])
    def retrieve(self, *args: Any, **kwargs: Any) -> Response:
        return self.answer(self.get_object())
