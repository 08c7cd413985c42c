"""Serializers of connections: first those of answers, then the inputs of requests."""

from typing import Any

from django.utils.translation import gettext
from rest_framework import serializers

from accounts.models import Workspace
from common.errors import InvalidInput
from common.options.drf import OptionsSerializer
from common.serializers import ReadOnlyModelSerializer, StrictSerializer
from model_servers.models import ModelConnection
from model_servers.options import KINDS, ConnectionOptions

_WORKSPACES_HELP = "Slugs of the workspaces that may use it. Null: all."


class ModelConnectionSerializer(ReadOnlyModelSerializer[ModelConnection]):
    """A model of a server. Its key is never in an answer."""

    url = serializers.HyperlinkedIdentityField(
        view_name="api:model-connection-detail", help_text="Its address in the API."
    )
    workspace = serializers.SlugField(
        source="workspace.slug",
        default=None,
        allow_null=True,
        help_text="Whose it is. Null: the site's.",
    )
    kind = serializers.ChoiceField(choices=KINDS, help_text="The protocol of its server.")
    has_key = serializers.BooleanField(help_text="Whether a key is stored.")
    workspaces = serializers.SerializerMethodField(help_text=_WORKSPACES_HELP)

    class Meta:
        model = ModelConnection
        fields = [
            "id",
            "url",
            "name",
            "workspace",
            "kind",
            "address",
            "model",
            "has_key",
            "context_tokens",
            "input_price",
            "output_price",
            "is_default",
            "workspaces",
            "created_at",
            "updated_at",
        ]

    def get_workspaces(self, connection: ModelConnection) -> list[str] | None:
        if connection.workspaces is None:
            return None
        rows = Workspace.objects.filter(pk__in=connection.workspaces)
        return list(rows.order_by("slug").values_list("slug", flat=True))


class ModelTrialSerializer(serializers.Serializer[Any]):
    """How the model answered a question."""

    first_words_ms = serializers.IntegerField()
    tokens_per_second = serializers.FloatField(
        allow_null=True, help_text="Null for an answer of one piece."
    )
    context_tokens = serializers.IntegerField(
        allow_null=True, help_text="What the model reads. Null where the server does not say."
    )
    answer = serializers.CharField(help_text="Its beginning.")


class ServerModelsSerializer(serializers.Serializer[Any]):
    """The models of a server."""

    models = serializers.ListField(child=serializers.CharField())


# --- inputs --------------------------------------------------------------------------------------


class ConnectionChangeSerializer(OptionsSerializer):
    """Fields of a connection that a PATCH may change."""

    options = ConnectionOptions
    has_defaults = False

    workspaces = serializers.ListField(
        child=serializers.SlugField(max_length=63),
        required=False,
        allow_null=True,
        max_length=1_000,
        help_text=f"{_WORKSPACES_HELP} Only of a connection of the site.",
    )
    is_default = serializers.BooleanField(
        required=False, help_text="Whether it answers on the site where nothing else is chosen."
    )

    def validate_workspaces(self, slugs: list[str] | None) -> list[int] | None:
        if slugs is None:
            return None
        found = dict(Workspace.objects.filter(slug__in=slugs).values_list("slug", "pk"))
        if missing := [slug for slug in slugs if slug not in found]:
            raise InvalidInput(
                gettext("There is no workspace “{workspace}”.").format(workspace=missing[0]),
                field="workspaces",
            )
        return sorted(found.values())


class NewConnectionSerializer(ConnectionChangeSerializer):
    """A new connection."""

    owner = serializers.ChoiceField(
        choices=["site", "workspace"],
        default="site",
        help_text="`workspace`: only the workspace of the request uses it.",
    )
    check = serializers.BooleanField(
        default=True, help_text="Ask the model one question first, and do not save it if it fails."
    )


class ServerInput(StrictSerializer):
    """A server whose models are listed."""

    kind = serializers.ChoiceField(choices=KINDS)
    address = serializers.CharField(max_length=500)
    key = serializers.CharField(required=False, max_length=1_000)
    owner = serializers.ChoiceField(
        choices=["site", "workspace"],
        default="site",
        help_text="`workspace`: only public servers are asked.",
    )
