"""API of the keys."""

from typing import Any

from django.utils.translation import gettext
from rest_framework import serializers
from rest_framework.decorators import action

from accounts.api.base import ResourceViewSet, operation
from accounts.api_keys import MAX_NAME_CHARACTERS, create_key, revoke_key
from accounts.models import ApiKey, Scope
from common.errors import NotFound
from common.serializers import ReadOnlyModelSerializer, SlugsField, StrictSerializer

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


class ApiKeyViewSet(ResourceViewSet):
    """The user's own keys; an owner sees those of all members."""

    nouns = ("API key", "API keys")
    queryset = ApiKey.objects.select_related("user", "workspace")
    serializer_class = ApiKeySerializer
    required_scope = Scope.ADMIN

    @operation(
        takes=NewApiKeySerializer,
        gives=ApiKeyWithSecretSerializer,
        status=201,
        errors=(409,),
        shows_secret=True,
    )
    def create(self, *, collections: Any = (), **values: Any) -> ApiKey:
        """Create an API key.

        It has your rights, within its scopes. A key can create only keys with no more rights than
        its own. With `collections` it cannot access anything else: no memory, conversations and
        members, and nothing that people added to the graph by hand.
        """
        slugs = set(collections)
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
        key.secret = secret  # type: ignore[attr-defined]  # for this answer alone
        return key

    @action(detail=True, methods=["post"])
    @operation()
    def revoke(self, key: ApiKey) -> ApiKey:
        """Revoke an API key.

        It stops working at once. Revoking it again gives the same answer.
        """
        return revoke_key(key=key)
