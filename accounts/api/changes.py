"""API of the audit log."""

from typing import Any

from rest_framework import serializers

from accounts.api.base import ListParameters, ResourceViewSet, operation
from accounts.audit import MAX_NAMED_IDS, Action, Channel, Kind, summarize
from accounts.models import Change
from common.serializers import MAX_ID, ReadOnlyModelSerializer, UsernameField


def _enum_values(known: type[Action] | type[Channel] | type[Kind]) -> list[str]:
    return [each.value for each in known]


def _id_field(meaning: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_ID, help_text=meaning
    )


class ChangeFilter(ListParameters):
    """Query parameters that select changes."""

    kind = serializers.ChoiceField(
        choices=_enum_values(Kind), required=False, help_text="Only changes of this kind of thing."
    )
    thing = _id_field("Only the one with this id.")
    collection = _id_field("Only the collection with this id, and what is in it.")
    document = _id_field("Only the document with this id, and what is in it.")
    action = serializers.ChoiceField(
        choices=_enum_values(Action), required=False, help_text="Only changes made this way."
    )
    user = serializers.CharField(
        required=False, max_length=150, help_text="Only changes by the user with this name."
    )


class ChangeDetailsSerializer(serializers.Serializer[Any]):
    """Further details of a change. Empty ones are left out."""

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
        help_text=f"The first {MAX_NAMED_IDS:,} ids, where it was done to several things.",
    )


class SummaryField(serializers.CharField):
    """A change in words."""

    def get_attribute(self, instance: Change) -> str:
        return summarize(instance)


class ChangeSerializer(ReadOnlyModelSerializer[Change]):
    """That somebody changed something. No text of the object is stored."""

    at = serializers.DateTimeField(source="created_at", help_text="When.")
    user = UsernameField(
        help_text="Who. Null: a command, the site itself, or a user who was deleted."
    )
    key = serializers.IntegerField(
        source="key_id", allow_null=True, help_text="Id of the API key that was used."
    )
    door = serializers.ChoiceField(
        choices=["", *_enum_values(Channel)],
        help_text="Where it was done; empty: by the site itself.",
    )
    action = serializers.ChoiceField(choices=_enum_values(Action), help_text="What was done.")
    kind = serializers.ChoiceField(choices=_enum_values(Kind), help_text="To what kind of thing.")
    details = ChangeDetailsSerializer(help_text="More about it.")
    summary = SummaryField(help_text="The same in words.")

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


class ChangeViewSet(ResourceViewSet):
    """Who changed what in the workspace, for owners and editors."""

    tag = "history"
    is_on_shard = True
    nouns = ("change", "changes")
    queryset = Change.objects.select_related("user")
    serializer_class = ChangeSerializer
    action_parameters = {"list": ChangeFilter}
    lookups = {"user": "user__username"}

    @operation(many=True)
    def list(self) -> Any:
        """List changes, newest first.

        For owners and editors. Of memories you see only your own changes. Texts are never stored: a
        change contains fields, numbers and choices.
        """
        self.require_editor(self.workspace)
        return self.filter_queryset(self.get_queryset())
