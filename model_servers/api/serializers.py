"""Serializers of connections: first those of answers, then the inputs of requests."""

from typing import Any

from django.utils.translation import gettext
from rest_framework import serializers

from accounts.models import Workspace
from common.errors import InvalidInput
from common.options.drf import OptionsSerializer
from common.serializers import ReadOnlyModelSerializer, StrictSerializer
from model_servers.embedding import is_default
from model_servers.models import ModelConnection
from model_servers.options import KINDS, PURPOSES, ConnectionOptions

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
    purpose = serializers.ChoiceField(choices=PURPOSES, help_text="What it is for.")
    alias = serializers.CharField(
        help_text="What a collection's `reranker` and embedding spaces call it."
    )
    kind = serializers.ChoiceField(choices=KINDS, help_text="The protocol of its server.")
    is_default = serializers.SerializerMethodField(
        help_text="Whether it answers, reranks, or embeds new collections, where nothing else is"
        " chosen."
    )
    has_key = serializers.BooleanField(help_text="Whether a key is stored.")
    workspaces = serializers.SerializerMethodField(help_text=_WORKSPACES_HELP)

    class Meta:
        model = ModelConnection
        fields = [
            "id",
            "url",
            "name",
            "purpose",
            "alias",
            "workspace",
            "kind",
            "address",
            "model",
            "has_key",
            "context_tokens",
            "input_price",
            "output_price",
            "dimensions",
            "is_default",
            "workspaces",
            "created_at",
            "updated_at",
        ]

    def get_is_default(self, connection: ModelConnection) -> bool:
        return is_default(connection)

    def get_workspaces(self, connection: ModelConnection) -> list[str] | None:
        if connection.workspaces is None:
            return None
        rows = Workspace.objects.filter(pk__in=connection.workspaces)
        return list(rows.order_by("slug").values_list("slug", flat=True))


class RankedPassageSerializer(serializers.Serializer[Any]):
    """A passage with its score for the question."""

    text = serializers.CharField()
    score = serializers.FloatField()


class ModelTrialSerializer(serializers.Serializer[Any]):
    """How the model answered a question, embedded two texts, or ordered two passages: the fields of
    other purposes are null or missing."""

    first_words_ms = serializers.IntegerField(required=False)
    tokens_per_second = serializers.FloatField(
        required=False, allow_null=True, help_text="Null for an answer of one piece."
    )
    context_tokens = serializers.IntegerField(
        required=False,
        allow_null=True,
        help_text="What the model reads. Null where the server does not say.",
    )
    answer = serializers.CharField(required=False, help_text="Its beginning.")
    dimensions = serializers.IntegerField(required=False, help_text="Of the vectors.")
    text_ms = serializers.IntegerField(required=False, help_text="For one text.")
    question = serializers.CharField(required=False)
    passages = RankedPassageSerializer(many=True, required=False, help_text="The best first.")
    milliseconds = serializers.IntegerField(required=False, help_text="For both passages.")


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
        required=False,
        help_text="Whether it answers, reranks, or embeds new collections, where nothing else is"
        " chosen.",
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
        default=True, help_text="Try the model first, and do not save it if it fails."
    )


class UseInput(StrictSerializer):
    """Which collections an embedder serves."""

    collections = serializers.ChoiceField(
        choices=["new", "all", "one"],
        help_text="`new`: those that are made from now on; `all`: these and what is there; `one`:"
        " `collection` alone.",
    )
    collection = serializers.SlugField(required=False, help_text="Its slug, with `one`.")

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if (given["collections"] == "one") != ("collection" in given):
            raise InvalidInput(
                gettext("Name a collection with “one”, and with nothing else."), field="collection"
            )
        return given


class UsedSpaceSerializer(serializers.Serializer[Any]):
    """Where the vectors will be."""

    space = serializers.SlugField(
        source="name", help_text="`GET /spaces/SPACE/` shows the moves to it."
    )


class ServerInput(StrictSerializer):
    """A server whose models are listed."""

    kind = serializers.ChoiceField(choices=KINDS)
    purpose = serializers.ChoiceField(choices=PURPOSES, default="chat")
    address = serializers.CharField(max_length=500)
    key = serializers.CharField(required=False, max_length=1_000)
    owner = serializers.ChoiceField(
        choices=["site", "workspace"],
        default="site",
        help_text="`workspace`: only public servers are asked.",
    )
