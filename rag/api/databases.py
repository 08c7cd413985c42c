"""Connections to catalogued databases over HTTP. Begin with `DatabaseConnectionViewSet`."""

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers
from rest_framework.decorators import action

from accounts.api import WorkspaceParameters, WorkspaceViewSet, operation
from common.options.drf import OptionsSerializer
from common.serializers import ReadOnlyModelSerializer, ResultSerializer
from documents.api.serializers import AccessField
from documents.services import get_collection
from rag.models import DatabaseConnection
from rag.services import databases as services
from rag.sql.options import ENCRYPTIONS, DatabaseOptions

_ACCESS_HELP = (
    "Who may run queries: members as `user:7`, groups as `group:3`. Null: who sees the tables."
)


class DatabaseConnectionSerializer(ReadOnlyModelSerializer[DatabaseConnection]):
    """A connection to a catalogued database. Its password is never in an answer."""

    url = serializers.HyperlinkedIdentityField(
        view_name="api:database-detail", help_text="Its address in the API."
    )
    collection = serializers.SlugField(
        source="collection.slug", help_text="Where its tables are catalogued."
    )
    encryption = serializers.ChoiceField(choices=ENCRYPTIONS)
    has_password = serializers.SerializerMethodField(help_text="Whether a password is stored.")
    access = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text=_ACCESS_HELP
    )
    server_version = serializers.CharField(help_text="When it was last tried.")

    class Meta:
        model = DatabaseConnection
        fields = [
            "id",
            "url",
            "name",
            "collection",
            "address",
            "database",
            "username",
            "has_password",
            "encryption",
            "seconds",
            "max_rows",
            "access",
            "is_enabled",
            "by_operator",
            "server_version",
            "tried_at",
            "created_at",
            "updated_at",
        ]

    def get_has_password(self, connection: DatabaseConnection) -> bool:
        return bool(connection.credentials)


class DatabaseTrialSerializer(ResultSerializer):
    """How a database answered, by a role that only reads."""

    result = services.DatabaseTrial

    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="Where the role reads more than it may need."
    )


class DatabaseChangeSerializer(OptionsSerializer):
    """Fields of a connection that a PATCH may change."""

    options = DatabaseOptions
    has_defaults = False

    access = AccessField(help_text=_ACCESS_HELP)
    is_enabled = serializers.BooleanField(required=False, help_text="Whether queries are run.")


class NewDatabaseSerializer(DatabaseChangeSerializer):
    """A new connection."""

    collection = serializers.SlugField(
        max_length=63, help_text="Slug of the collection in which its tables are catalogued."
    )


class DatabaseConnectionViewSet(WorkspaceViewSet):
    """Databases on which queries may be run: the operator connects any, owners public ones."""

    tag = "databases"
    nouns = ("connection to a database", "connected databases")
    queryset = DatabaseConnection.objects.none()
    serializer_class = DatabaseConnectionSerializer
    required_scope = "admin"
    pagination_class = None
    action_parameters = {"list": WorkspaceParameters}
    etag_excluded_fields = frozenset({"updated_at", "tried_at", "server_version"})

    def get_object(self) -> DatabaseConnection:
        return services.managed_connection(
            user=self.request.user, workspace=self.workspace, pk=self.kwargs["pk"]
        )

    def locked_rows(self) -> None:
        return None

    @operation(gives=DatabaseConnectionSerializer, many=True)
    def list(self) -> Any:
        """List connected databases."""
        return services.managed_connections(user=self.request.user, workspace=self.workspace)

    @operation()
    def retrieve(self, connection: DatabaseConnection) -> DatabaseConnection:
        """Read a connection to a database."""
        return connection

    @operation(takes=NewDatabaseSerializer, status=201, errors=(409, 424), once=True)
    def create(
        self,
        *,
        collection: str,
        access: Sequence[str] | None = None,
        is_enabled: bool = True,
        **values: Any,
    ) -> DatabaseConnection:
        """Connect a database.

        It is tried first, and not saved if it does not answer (424) or its role may write (409).
        """
        services.require_manager(user=self.request.user, workspace=self.workspace)
        row, _ = services.connect_database(
            collection=get_collection(workspace=self.workspace, slug=collection),
            options=DatabaseOptions.from_text(values),
            access=access,
            is_enabled=is_enabled,
            user=self.request.user,
        )
        return row

    @operation(takes=DatabaseChangeSerializer, errors=(409, 424))
    def partial_update(
        self, connection: DatabaseConnection, *, is_enabled: bool | None = None, **values: Any
    ) -> DatabaseConnection:
        """Change a connection to a database.

        It is tried first. A password that is not given stays, unless the server or the role is
        another one. What the operator has set, owners only switch off.
        """
        given: dict[str, Any] = {"access": values.pop("access")} if "access" in values else {}
        if values:
            given["options"] = DatabaseOptions.from_text(
                {**services.options_of(connection), **values}
            )
        return services.change_connection(
            connection=connection, is_enabled=is_enabled, user=self.request.user, **given
        )

    @operation()
    def destroy(self, connection: DatabaseConnection) -> None:
        """Remove a connection to a database.

        Its password is deleted. Queries are written and no longer run.
        """
        services.remove_connection(connection=connection)

    @action(detail=True, methods=["post"], url_path="try", url_name="try")
    @operation(gives=DatabaseTrialSerializer, errors=(409, 424))
    def try_database(self, connection: DatabaseConnection) -> services.DatabaseTrial:
        """Try a connected database.

        It says its version; the rights of the role are looked at.
        """
        return services.try_connection(connection)
