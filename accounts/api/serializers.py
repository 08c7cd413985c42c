"""What requests about keys say, and how keys are shown."""

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from accounts.api.base import WorkspaceParameters
from accounts.keys import MAX_NAME_CHARACTERS
from accounts.models import ApiKey, Scope
from common.serializers import PageParameters, StrictSerializer

SCOPES = (
    "`read` documents, searches and the graph, `write` them, use the `memory`, `chat` with models,"
    " pipelines and tools; `admin` makes and revokes keys. None includes another."
)


class KeyFilter(PageParameters, WorkspaceParameters):
    """Which keys."""


@extend_schema_serializer(component_name="NewApiKey")
class NewKeyInput(StrictSerializer):
    """A key to be made."""

    name = serializers.CharField(
        max_length=MAX_NAME_CHARACTERS, help_text="What will use it, such as `nightly import`."
    )
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=Scope.choices), min_length=1, help_text=SCOPES
    )
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="When it ends. Without it, never."
    )


@extend_schema_serializer(component_name="ApiKey")
class KeySerializer(serializers.ModelSerializer[ApiKey]):
    """A key without its secret."""

    user = serializers.CharField(source="user.username", help_text="Whose rights it has.")
    workspace = serializers.SlugField(source="workspace.slug", help_text="Where it works.")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=Scope.choices), help_text=SCOPES
    )
    is_live = serializers.BooleanField(help_text="Neither revoked nor expired.")

    class Meta:
        model = ApiKey
        fields = [
            "id",
            "name",
            "prefix",
            "user",
            "workspace",
            "scopes",
            "is_live",
            "created_at",
            "expires_at",
            "last_used_at",
            "revoked_at",
        ]
        read_only_fields = fields


@extend_schema_serializer(component_name="ApiKeyWithSecret")
class SecretSerializer(KeySerializer):
    """A key that was made just now."""

    secret = serializers.CharField(help_text="`rs_…`. It is shown this once and stored nowhere.")

    class Meta(KeySerializer.Meta):
        fields = [*KeySerializer.Meta.fields, "secret"]
        read_only_fields = fields
