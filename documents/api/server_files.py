"""What is not sent with a request, but named in it: pages of the web, directories of the server."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.api import WorkspaceViewSet, once
from common.serializers import StrictSerializer
from documents import services
from documents.api import inputs
from documents.api.serializers import RunSerializer
from documents.models import Collection, IngestionRun
from documents.services import Sync


def _directory(**options: Any) -> serializers.CharField:
    return serializers.CharField(
        max_length=1024,
        trim_whitespace=False,
        help_text="Whole path of a directory of the server, below one that the operator allows.",
        **options,
    )


def _glob() -> serializers.CharField:
    return serializers.CharField(
        default="**/*", max_length=200, help_text="Which files: `*` never crosses a `/`."
    )


@extend_schema_serializer(component_name="PageOfTheWeb")
class UrlInput(inputs._Target):
    """A page to be fetched. Its address is its key."""

    url = serializers.CharField(max_length=1024, help_text="Begins with `https://` or `http://`.")


@extend_schema_serializer(component_name="DirectoryOfTheServer")
class DirectoryInput(inputs._Target):
    """Files that the server has. Each one's key is its path."""

    metadata = None  # type: ignore[assignment]  # each file says its own
    directory = _directory()
    glob = _glob()


@extend_schema_serializer(component_name="DirectorySync")
class SyncInput(StrictSerializer):
    """A directory to keep the collection in step with."""

    directory = _directory()
    glob = _glob()
    delete = serializers.BooleanField(
        default=False, help_text="Remove documents whose files are gone."
    )
    dry_run = serializers.BooleanField(default=False, help_text="Only say what would be done.")
    allow_empty = serializers.BooleanField(
        default=False, help_text="The directory is meant to hold no file."
    )
    force = serializers.BooleanField(
        default=False, help_text="Delete although it is more than half of the documents."
    )


class MoveSerializer(serializers.Serializer[Any]):
    """A renamed file."""

    before = serializers.CharField(source="0")
    after = serializers.CharField(source="1")


def _names(meaning: str) -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), help_text=meaning)


@extend_schema_serializer(component_name="Sync")
class SyncSerializer(serializers.Serializer[Sync]):
    """What became of the directory's files, each by its path in it."""

    run = RunSerializer(allow_null=True, help_text="The ingestion to watch; none of a dry run.")
    new = _names("Not in the collection before.")
    modified = _names("With other bytes than before, or to be cut in another way.")
    unchanged = _names("As they were.")
    renamed = MoveSerializer(many=True, help_text="Their documents move; nothing is embedded.")
    deleted = _names("Gone from the directory.")
    failed = _names("There, and not to be read. Nothing is concluded of them.")
    retried = _names("Failed before, and tried again.")
    reasons = serializers.DictField(
        child=serializers.CharField(),
        help_text="Why, by path: of `failed`, and of `retried` why they failed before.",
    )
    deletions_applied = serializers.BooleanField(
        help_text="Whether the documents of deleted files were removed."
    )


SYNC = OpenApiExample(
    "What would be deleted",
    value={"directory": "/srv/handbook", "delete": True, "dry_run": True},
    request_only=True,
)


class SyncActions(WorkspaceViewSet):
    """What a collection can do with a directory of the server."""

    @extend_schema(
        summary="Keep a collection in step with a directory of the server",
        description=(
            "Every file is read once to compare; what is new or modified is queued. A directory"
            " that is missing, or suddenly empty, changes nothing."
        ),
        request=SyncInput,
        responses={200: SyncSerializer, 202: SyncSerializer},
        examples=[SYNC],
    )
    @action(detail=True, methods=["post"])
    @once
    def sync(self, *args: Any, **kwargs: Any) -> Response:
        collection: Collection = self.get_object()
        self.require_editor(collection.workspace)
        values = self.validated(SyncInput)
        result = services.sync_server_directory(
            collection=collection, user=self.request.user, **values
        )
        answer = SyncSerializer(result, context=self.get_serializer_context()).data
        return Response(answer, status=200 if result.run is None else 202)


def ingest_named(view: Any) -> IngestionRun | None:
    """The run of a request that names a page or a directory; None for one that brings a text."""
    body = view.request.data if isinstance(view.request.data, dict) else {}
    if "url" in body:
        values = view.validated(UrlInput)
        collection = view.collection_named(values.pop("collection"))
        return services.ingest_urls(
            collection=collection, urls=[values.pop("url")], user=view.request.user, **values
        )
    if "directory" in body:
        values = view.validated(DirectoryInput)
        collection = view.collection_named(values.pop("collection"))
        return services.ingest_server_directory(
            collection=collection, user=view.request.user, **values
        )
    return None
