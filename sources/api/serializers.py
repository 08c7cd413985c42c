"""Serializers of sources and their runs: first those of answers, then the inputs of requests."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from pydantic import SecretStr
from rest_framework import serializers

from accounts.api import ListParameters, WorkspaceParameters
from common.options import OptionField
from common.serializers import (
    ReadOnlyModelSerializer,
    ResultSerializer,
    StrictSerializer,
    UsernameField,
)
from documents.api.serializers import AccessField
from sources.connectors import kinds
from sources.connectors.base import Connector, Item
from sources.models import DataSource, DataSourceItem, DataSourceRun

MAX_OPTION_CHARACTERS = 4_000
SCHEDULE_HELP = "Minutes between runs, or cron words such as `0 6 * * 1-5`. Empty: by hand."


class AccessRuleSerializer(StrictSerializer):
    """Who may see the files that a pattern matches."""

    glob = serializers.CharField(max_length=200, help_text="`*` never crosses a `/`.")
    access = AccessField(
        required=True,
        help_text="Members as `user:7`, groups as `group:3`, including you. Null: everybody.",
    )


class EditorsOnly(serializers.Field[Any, Any, Any, Any]):
    """Mixin: null to those who may not change the source."""

    def to_representation(self, value: Any) -> Any:
        return super().to_representation(value) if self.context["may_edit"] else None


class _Options(EditorsOnly, serializers.DictField):
    pass


class _Access(EditorsOnly, serializers.ListField):
    pass


class SourceSerializer(ReadOnlyModelSerializer[DataSource]):
    """A place outside that keeps a collection up to date. Its secrets are never in an answer."""

    url = serializers.HyperlinkedIdentityField(
        view_name="api:source-detail", help_text="Its address in the API."
    )
    runs_url = serializers.HyperlinkedIdentityField(
        view_name="api:source-runs", help_text="Its runs, newest first."
    )
    collection = serializers.SlugField(source="collection.slug")
    options = _Options(
        child=serializers.CharField(),
        allow_null=True,
        help_text="Options of its kind, without secrets. Null unless you may change it.",
    )
    has_secrets = serializers.SerializerMethodField(help_text="Whether a password is stored.")
    has_webhook = serializers.SerializerMethodField(help_text="Whether signed calls are accepted.")
    access = _Access(
        child=serializers.CharField(),
        allow_null=True,
        help_text="Who may see its documents. Null: everybody, or you may not change it.",
    )
    access_rules = _Access(
        child=AccessRuleSerializer(),
        allow_null=True,
        help_text="The first entry whose glob matches a file takes precedence over"
        " `access`. Null unless you may change it.",
    )
    state = serializers.ChoiceField(
        choices=DataSource.State.choices, help_text="`dead`: stopped until somebody intervenes."
    )
    problem = serializers.ChoiceField(
        choices=[("", ""), *DataSource.Problem.choices],
        help_text="The problem that people were notified about; empty if there is none.",
    )
    item_count = serializers.IntegerField(help_text="Files that it has listed.")
    failed_count = serializers.IntegerField(help_text="Files that could not be fetched.")
    last_run_state = serializers.ChoiceField(
        source="last_state", choices=DataSourceRun.State.choices, allow_null=True
    )
    last_run_at = serializers.DateTimeField(source="last_at", allow_null=True)

    class Meta:
        model = DataSource
        fields = [
            "id",
            "url",
            "runs_url",
            "name",
            "collection",
            "connector",
            "options",
            "has_secrets",
            "has_webhook",
            "schedule",
            "delete_missing",
            "max_deletions",
            "access",
            "access_rules",
            "state",
            "problem",
            "error",
            "due_at",
            "failures",
            "item_count",
            "failed_count",
            "last_run_state",
            "last_run_at",
            "created_at",
            "updated_at",
        ]
        extra_kwargs = {"due_at": {"help_text": "When it is read next; null: by hand."}}

    def get_has_secrets(self, source: DataSource) -> bool:
        return bool(source.credentials)

    def get_has_webhook(self, source: DataSource) -> bool:
        return bool(source.webhook_secret)


class SourceRunSerializer(ReadOnlyModelSerializer[DataSourceRun]):
    """One look at a source, with what it found and did."""

    source = serializers.PrimaryKeyRelatedField[DataSource](  # type: ignore[assignment]  # DRF's metaclass takes it out
        read_only=True
    )
    user = UsernameField(help_text="Who started it.")
    is_finished = serializers.BooleanField(help_text="Whether the run has ended.")

    class Meta:
        model = DataSourceRun
        fields = [
            "id",
            "source",
            "cause",
            "user",
            "state",
            "is_finished",
            "listed",
            "new",
            "changed",
            "fetched",
            "renamed",
            "deleted",
            "failed",
            "bytes",
            "error",
            "started_at",
            "finished_at",
        ]


class SourceFailureSerializer(ReadOnlyModelSerializer[DataSourceItem]):
    """A file that could not be fetched. Those whose names you may not see are left out."""

    error = serializers.CharField(help_text="What is wrong and the cure.")

    class Meta:
        model = DataSourceItem
        fields = ["id", "name", "size", "failures", "error", "modified_at"]
        extra_kwargs = {"failures": {"help_text": "Tries of this version; after three it waits."}}


class SourceItemSerializer(ResultSerializer):
    """A file at a place that is tried."""

    result = Item
    skip = frozenset({"key", "version", "url", "readers"})


class SourceTrialSerializer(serializers.Serializer[Any]):
    """The first files of a place."""

    items = SourceItemSerializer(many=True, help_text="At most five.")


def _names(meaning: str) -> serializers.ListField:
    return serializers.ListField(
        child=serializers.CharField(), help_text=f"{meaning} At most 100, of those you may see."
    )


class SourcePreviewSerializer(serializers.Serializer[Any]):
    """What a run would do."""

    new_count = serializers.IntegerField()
    changed_count = serializers.IntegerField()
    unchanged_count = serializers.IntegerField()
    gone_count = serializers.IntegerField(help_text="The source is checked once more for each.")
    new = _names("To be fetched.")
    changed = _names("To be fetched again.")
    gone = _names("To be deleted, where `delete_missing` is set.")
    would_stop = serializers.CharField(
        help_text="Why it would stop and change nothing; empty if it would not. If this is"
        " intended, start a run with `allow_deletions`."
    )


class SourceKindOptionSerializer(serializers.Serializer[OptionField]):
    """An option of a kind of source."""

    name = serializers.CharField()
    title = serializers.SerializerMethodField()
    description = serializers.CharField(help_text="May be empty.")
    is_required = serializers.BooleanField()
    is_secret = serializers.SerializerMethodField(help_text="Stored encrypted, and never returned.")
    default = serializers.SerializerMethodField(
        method_name="default_text", help_text="Empty if there is none."
    )

    def get_title(self, option: OptionField) -> str:
        return option.title or option.name

    def get_is_secret(self, option: OptionField) -> bool:
        return option.kind is SecretStr

    def default_text(self, option: OptionField) -> str:
        return "" if option.default is None or self.get_is_secret(option) else str(option.default)


class SourceKindSerializer(serializers.Serializer[type[Connector]]):
    """A kind of source that can be made."""

    connector = serializers.CharField(source="kind")
    label = serializers.CharField()  # type: ignore[assignment]  # DRF's metaclass takes it out
    options = SourceKindOptionSerializer(many=True, source="option_fields")


class SourceRetrySerializer(serializers.Serializer[Any]):
    """The run that fetches again what was given up."""

    count = serializers.IntegerField(help_text="Files.")
    run = SourceRunSerializer()


class SourceWebhookSerializer(serializers.Serializer[Any]):
    """Where signed calls start a run, and what they are signed with."""

    address = serializers.CharField(help_text="Where to POST to.")
    secret = serializers.CharField(help_text="`whsec_…`. It is shown only once.")


# --- inputs --------------------------------------------------------------------------------------


class SourceFilter(ListParameters):
    """Query parameters of the list of sources."""

    collection = serializers.SlugField(
        required=False, max_length=63, help_text="Slug of a collection."
    )
    problem = serializers.ChoiceField(
        choices=["any", *DataSource.Problem.values],
        required=False,
        help_text="Only those with this problem.",
    )


class SourceDeletion(WorkspaceParameters):
    """What becomes of the documents of a source that is deleted."""

    documents = serializers.ChoiceField(
        choices=["keep", "delete"], default="keep", help_text="`delete` deletes them too."
    )


def _options_field(**more: Any) -> serializers.DictField:
    return serializers.DictField(
        child=serializers.CharField(allow_blank=True, max_length=MAX_OPTION_CHARACTERS),
        help_text="Options of its kind, including secrets such as `password`;"
        " `/sources/kinds/` lists them.",
        **more,
    )


class PlaceInput(StrictSerializer):
    """A place, of a kind and with its options."""

    connector = serializers.ChoiceField(choices=kinds(), help_text="Its kind.")
    options = _options_field()


class SourceChangeSerializer(StrictSerializer):
    """Fields of a source that a PATCH may change."""

    name = serializers.CharField(max_length=200)
    options = _options_field(required=False)
    schedule = serializers.CharField(
        required=False, allow_blank=True, max_length=100, help_text=SCHEDULE_HELP
    )
    delete_missing = serializers.BooleanField(
        required=False,
        help_text="Delete documents whose file is gone at the source. Default: true.",
    )
    max_deletions = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=100,
        help_text="Percent of its documents that one run may delete without confirmation."
        " Default: 50.",
    )
    access = AccessField(
        help_text="Who may see its documents: members as `user:7`, groups as `group:3`,"
        " including you. Null: everybody in the workspace.",
    )
    access_rules = AccessRuleSerializer(
        many=True,
        required=False,
        max_length=100,  # type: ignore[call-arg]  # which the stubs do not know
        help_text="The first entry whose glob matches a file takes precedence over `access`.",
    )


class NewSourceSerializer(SourceChangeSerializer, PlaceInput):
    """A new source."""

    options = _options_field()
    collection = serializers.SlugField(max_length=63, help_text="Slug of the collection.")


@extend_schema_serializer(deprecate_fields=["may_delete_any"])
class NewSourceRunSerializer(StrictSerializer):
    """How a run is started."""

    allow_deletions = serializers.BooleanField(
        default=False, help_text="Delete documents however many files are gone."
    )
    may_delete_any = serializers.BooleanField(
        required=False, help_text="Former name of `allow_deletions`."
    )
    former_names = {"may_delete_any": "allow_deletions"}
