"""Sources over HTTP: made, tried, read, and told why they fail. Begin with `SourceViewSet`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from rest_framework.decorators import action

from accounts.api import ListParameters, ResourceViewSet, operation
from accounts.services import can_edit
from common.errors import RagsiteError
from documents.services import get_collection
from sources import services
from sources.api import serializers
from sources.connectors import connector_class, kinds
from sources.connectors.base import SourceError
from sources.models import DataSource, DataSourceItem, DataSourceRun

PREVIEWED = 100


class SourceUnavailable(RagsiteError):
    """The place outside cannot be read now; the message says why."""

    code = "source_unavailable"
    status = 424


@contextmanager
def errors_of_places() -> Iterator[None]:
    """Raise SourceUnavailable where the place cannot be read."""
    try:
        yield
    except SourceError as error:
        raise SourceUnavailable(str(error)) from error


class SourceViewSet(ResourceViewSet):
    """Places outside that keep collections up to date: every member reads, editors change."""

    nouns = ("source", "sources")
    queryset = DataSource.objects.select_related("collection", "workspace")
    serializer_class = serializers.SourceSerializer
    editors_only = True
    # What its runs change.
    etag_excluded_fields = frozenset(
        {
            *("state", "problem", "error", "due_at", "failures", "item_count", "failed_count"),
            *("last_run_state", "last_run_at", "updated_at"),
        }
    )
    action_parameters = {
        "list": serializers.SourceFilter,
        "destroy": serializers.SourceDeletion,
        "runs": ListParameters,
        "failed_items": ListParameters,
    }

    def get_queryset(self) -> QuerySet[DataSource]:
        return services.with_counts(super().get_queryset())

    def get_serializer_context(self) -> dict[str, Any]:
        # Only editors are answered by the others.
        may_edit = self.action not in ("list", "retrieve") or can_edit(
            user=self.request.user, workspace=self.workspace
        )
        return {**super().get_serializer_context(), "may_edit": may_edit}

    def narrowed(self, rows: QuerySet[Any], **wanted: Any) -> QuerySet[Any]:
        if slug := wanted.pop("collection", ""):
            rows = rows.filter(collection=get_collection(workspace=self.workspace, slug=slug))
        if wanted.get("problem") == "any":
            del wanted["problem"]
            rows = rows.exclude(problem="")
        return super().narrowed(rows, **wanted)

    @operation(takes=serializers.NewSourceSerializer, status=201, errors=(409, 424), once=True)
    def create(
        self, *, collection: str, connector: str, options: dict[str, Any], **values: Any
    ) -> Any:
        """Create a source.

        It is tested first, and not saved if it cannot be read: 424. With a schedule the workers
        start reading it within a minute.
        """
        user = self.request.user
        found = get_collection(workspace=self.workspace, slug=collection)
        with errors_of_places():
            services.first_items(connector, options, user=user)
        source = services.create_source(
            collection=found, connector=connector, options=options, user=user, **values
        )
        return self.reloaded(source)

    @operation(takes=serializers.SourceChangeSerializer, errors=(409,))
    def partial_update(self, source: DataSource, **values: Any) -> None:
        """Change a source.

        Secrets that `options` does not contain stay. A source that had stopped is read by its
        schedule again.
        """
        services.update_source(source=source, user=self.request.user, **values)

    @operation()
    def destroy(self, source: DataSource) -> None:
        """Delete a source.

        Its secrets are deleted; its documents stay, unless `documents=delete`. Nothing changes at
        the source.
        """
        with_documents = self.parameters["documents"] == "delete"
        services.delete_source(source=source, with_documents=with_documents)

    # --- trying ----------------------------------------------------------------------------------

    @action(detail=False, pagination_class=None)
    @operation(gives=serializers.SourceKindSerializer, many=True)
    def kinds(self) -> Any:
        """List the kinds of sources, with their options."""
        return [connector_class(kind) for kind in kinds()]

    @action(detail=False, methods=["post"], url_path="try", url_name="try")
    @operation(takes=serializers.PlaceInput, gives=serializers.SourceTrialSerializer, errors=(424,))
    def try_place(self, *, connector: str, options: dict[str, Any]) -> Any:
        """Test a source without saving it."""
        with errors_of_places():
            return {"items": services.first_items(connector, options, user=self.request.user)}

    @action(detail=True, methods=["post"], url_path="dry-run", url_name="dry-run")
    @operation(gives=serializers.SourcePreviewSerializer, errors=(409, 424))
    def dry_run(self, source: DataSource) -> Any:
        """Report what a run would do, and change nothing."""
        with errors_of_places():
            comparison, gone, would_stop = services.preview(source)
        names = {"new": comparison.new_names, "changed": comparison.changed_names, "gone": gone}
        return {
            "new_count": comparison.new,
            "changed_count": comparison.changed,
            "unchanged_count": comparison.unchanged,
            "gone_count": len(gone),
            "would_stop": would_stop,
            **{
                sort: services.visible_names(source, each[:PREVIEWED], user=self.request.user)
                for sort, each in names.items()
            },
        }

    @action(detail=True, methods=["post"])
    @operation(gives=serializers.SourcePreviewSerializer, errors=(409, 424), deprecated=True)
    def preview(self, source: DataSource) -> Any:
        """Former address of `dry-run`."""
        return self.dry_run(self.request, pk=source.pk)

    # --- runs ------------------------------------------------------------------------------------

    @action(detail=True)
    @operation(gives=serializers.SourceRunSerializer, many=True)
    def runs(self, source: DataSource) -> QuerySet[DataSourceRun]:
        """List a source's runs, newest first."""
        return source.runs.select_related("user")

    @runs.mapping.post
    @operation(
        takes=serializers.NewSourceRunSerializer,
        gives=serializers.SourceRunSerializer,
        status=202,
        errors=(409,),
        once=True,
    )
    def start(self, source: DataSource, **values: Any) -> DataSourceRun:
        """Start a run.

        409 while another run is in progress.
        """
        return services.start_run(source=source, user=self.request.user, **values)

    @action(detail=True, methods=["post"])
    @operation()
    def cancel(self, source: DataSource) -> None:
        """Cancel a source's run.

        It ends within seconds; fetched documents stay. The answer is the same if no run is in
        progress.
        """
        for run in DataSourceRun.objects.filter(source=source, finished_at=None):
            services.cancel_run(run=run)

    @action(detail=True, url_path="failures", url_name="failures")
    @operation(gives=serializers.SourceFailureSerializer, many=True)
    def failed_items(self, source: DataSource) -> QuerySet[DataSourceItem]:
        """List a source's failed files."""
        return services.visible_failures(source, user=self.request.user)

    @action(detail=True, methods=["post"])
    @operation(gives=serializers.SourceRetrySerializer, status=202, errors=(409,), once=True)
    def retry(self, source: DataSource) -> Any:
        """Fetch a source's failed files again.

        Starts a run. 409 while another run is in progress.
        """
        with transaction.atomic():
            count = services.retry_items(source=source)
            return {
                "count": count,
                "run": services.start_run(source=source, user=self.request.user),
            }

    # --- webhook ---------------------------------------------------------------------------------

    @action(detail=True, methods=["post"])
    @operation(gives=serializers.SourceWebhookSerializer, status=201, shows_secret=True)
    def webhook(self, source: DataSource) -> Any:
        """Create the secret of a source's webhook.

        Calls that are signed with it start a run: by Standard Webhooks, by GitHub, or with GitLab's
        token. An older secret no longer works.
        """
        address = self.request.build_absolute_uri(reverse("source_hook", args=[source.pk]))
        return {"address": address, "secret": services.make_webhook_secret(source=source)}

    @webhook.mapping.delete
    @operation()
    def remove_webhook(self, source: DataSource) -> None:
        """Turn off a source's webhook."""
        services.remove_webhook(source=source)
