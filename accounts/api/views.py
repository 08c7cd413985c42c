"""API of the keys and of the audit log."""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from accounts.api import ListParameters, WorkspaceViewSet
from accounts.api_keys import MAX_NAME_CHARACTERS, create_key, revoke_key
from accounts.audit import MAX_NAMED_IDS, Action, Channel, Kind, summarize
from accounts.models import ApiKey, Change, Scope
from common.api import ErrorSerializer
from common.errors import NotFound
from common.openapi import load_examples
from common.serializers import MAX_ID, ReadOnlyModelSerializer, SlugsField, StrictSerializer

examples = load_examples("accounts.api")

SCOPES = (
    "`read` documents, searches and the graph, `write` them, use the `memory`, `chat` with models,"
    " pipelines and tools; `admin` makes and revokes keys. None includes another."
)


class NewApiKeySerializer(StrictSerializer):
    """Name, scopes and expiry of a new key."""

    name = serializers.CharField(
        max_length=MAX_NAME_CHARACTERS, help_text="What uses it, such as `nightly import`."
    )
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=Scope.choices), min_length=1, help_text=SCOPES
    )
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="When it expires. Default: never."
    )
    collections = SlugsField(
        required=False,
        max_length=1_000,
        help_text="Slugs of the only collections that it can access. Empty or left out: all.",
    )


class ApiKeySerializer(ReadOnlyModelSerializer[ApiKey]):
    """An API key without its secret."""

    user = serializers.CharField(source="user.username", help_text="Whose rights it has.")
    workspace = serializers.SlugField(source="workspace.slug", help_text="Its workspace.")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=Scope.choices), help_text=SCOPES
    )
    is_live = serializers.BooleanField(help_text="Neither revoked nor expired.")
    collections = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Ids of the only collections that it can access. Empty: all.",
    )

    class Meta:
        model = ApiKey
        fields = [
            "id",
            "name",
            "prefix",
            "user",
            "workspace",
            "scopes",
            "collections",
            "is_live",
            "created_at",
            "expires_at",
            "last_used_at",
            "revoked_at",
        ]


class ApiKeyWithSecretSerializer(ApiKeySerializer):
    """A newly created key with its secret."""

    secret = serializers.CharField(help_text="`rs_…`. It is shown only once and stored nowhere.")

    class Meta(ApiKeySerializer.Meta):
        fields = [*ApiKeySerializer.Meta.fields, "secret"]


@extend_schema(tags=["keys"])
class ApiKeyViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet):
    """The user's own keys; an owner sees those of all members."""

    summaries = {
        "list": "List API keys, newest first",
        "retrieve": "Read an API key, without its secret",
    }
    serializer_class = ApiKeySerializer
    lookup_value_converter = "int"
    required_scope = Scope.ADMIN

    def get_queryset(self) -> QuerySet[ApiKey]:
        rows = ApiKey.objects.visible_to(self.request.user).select_related("user", "workspace")
        return self.in_workspace(rows)

    # Not `idempotent`: a stored answer would keep the secret.
    @extend_schema(
        summary="Create an API key",
        description="It has your rights, within its scopes. A key can create only keys with"
        " no more rights than its own. With `collections` it cannot access"
        " anything else: no memory, conversations and members, and nothing that"
        " people added to the graph by hand.",
        request=NewApiKeySerializer,
        responses={201: ApiKeyWithSecretSerializer, 409: ErrorSerializer},
        examples=[examples.NEW_KEY],
    )
    def create(self, *args: Any, **kwargs: Any) -> Response:
        values = self.validated(NewApiKeySerializer)
        slugs = set(values.pop("collections", ()))
        rows = self.workspace.collections.using(self.workspace.alias).filter(slug__in=slugs)
        known = dict(rows.values_list("slug", "pk"))
        if missing := slugs - known.keys():
            raise NotFound(
                gettext("There is no collection “{missing}” here.").format(missing=min(missing))
            )
        key, secret = create_key(
            user=self.request.user,
            workspace=self.workspace,
            maker=self.key,
            collections=known.values(),
            **values,
        )
        shown = ApiKeySerializer(key, context=self.get_serializer_context()).data
        return Response(
            {**shown, "secret": secret}, status=201, headers={"Cache-Control": "no-store"}
        )

    @extend_schema(
        summary="Revoke an API key",
        description="It stops working at once. Revoking it again gives the same answer.",
        request=None,
    )
    @action(detail=True, methods=["post"])
    def revoke(self, *args: Any, **kwargs: Any) -> Response:
        return self.answer(revoke_key(key=self.get_object()))


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
    user = serializers.CharField(
        source="user.username",
        default=None,
        allow_null=True,
        help_text="Who. Null: a command, the site itself, or a user who was deleted.",
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


@extend_schema(tags=["history"])
class ChangeViewSet(WorkspaceViewSet):
    """Who changed what in the workspace, for owners and editors."""

    is_on_shard = True
    serializer_class = ChangeSerializer
    lookup_value_converter = "int"
    action_parameters = {"list": ChangeFilter}

    def get_queryset(self) -> QuerySet[Change]:
        rows = Change.objects.visible_to(self.request.user).select_related("user")
        return self.in_workspace(rows)

    @extend_schema(
        summary="List changes, newest first",
        description="For owners and editors. Of memories you see only your own changes. Texts"
        " are never stored: a change contains fields, numbers and choices.",
    )
    def list(self, *args: Any, **kwargs: Any) -> Response:
        self.require_editor(self.workspace)
        names = ("kind", "thing", "collection", "document", "action")
        wanted = {name: self.parameters[name] for name in names if name in self.parameters}
        if "user" in self.parameters:
            wanted["user__username"] = self.parameters["user"]
        return self.page(self.get_queryset().filter(**wanted))

    @extend_schema(summary="Read a change", examples=[examples.CHANGE])
    def retrieve(self, *args: Any, **kwargs: Any) -> Response:
        return self.answer(self.get_object())
