"""Sources over HTTP: made, tried, read, and told why they fail. Begin with `SourceViewSet`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from pydantic import SecretStr
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from accounts.api import ListParameters, WorkspaceViewSet, idempotent
from accounts.services import can_edit
from common.api import ErrorSerializer
from common.errors import RagsiteError
from common.openapi import load_examples
from documents.services import get_collection
from sources import services
from sources.api import serializers as api_serializers
from sources.api.serializers import (
    SourceFailureSerializer,
    SourceKindSerializer,
    SourcePreviewSerializer,
    SourceRetrySerializer,
    SourceRunSerializer,
    SourceSerializer,
    SourceTrialSerializer,
    SourceWebhookSerializer,
)
from sources.connectors import connector_class, kinds
from sources.connectors.base import SourceError
from sources.models import DataSource, DataSourceRun

examples = load_examples("sources.api")

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


@extend_schema(tags=["sources"])
class SourceViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet):
    """Places outside that keep collections up to date: every member reads, editors change."""

    summaries = {"retrieve": "Read a source"}
    serializer_class = SourceSerializer
    lookup_value_converter = "int"
    # What its runs change.
    etag_excluded_fields = frozenset(
        {
            *("state", "problem", "error", "due_at", "failures", "item_count", "failed_count"),
            *("last_run_state", "last_run_at", "updated_at"),
        }
    )
    action_parameters = {
        "list": api_serializers.SourceFilter,
        "destroy": api_serializers.SourceDeletion,
        "runs": ListParameters,
        "failed_items": ListParameters,
    }

    def get_queryset(self) -> QuerySet[DataSource]:
        rows = DataSource.objects.visible_to(self.request.user)
        return services.with_counts(self.in_workspace(rows)).select_related(
            "collection", "workspace"
        )

    def get_serializer_context(self) -> dict[str, Any]:
        # Only editors are answered by the others.
        may_edit = self.action not in ("list", "retrieve") or can_edit(
            user=self.request.user, workspace=self.workspace
        )
        return {**super().get_serializer_context(), "may_edit": may_edit}

    @extend_schema(summary="List sources, newest first")
    def list(self, *args: Any, **kwargs: Any) -> Response:
        rows = self.get_queryset()
        if slug := self.parameters.get("collection"):
            rows = rows.filter(collection=get_collection(workspace=self.workspace, slug=slug))
        if problem := self.parameters.get("problem"):
            rows = rows.exclude(problem="") if problem == "any" else rows.filter(problem=problem)
        return self.page(rows)

    @extend_schema(
        summary="Create a source",
        description="It is tested first, and not saved if it cannot be read: 424. With a"
        " schedule the workers start reading it within a minute.",
        request=api_serializers.NewSourceSerializer,
        responses={201: SourceSerializer, 409: ErrorSerializer, 424: ErrorSerializer},
        examples=[examples.NEW_SOURCE],
    )
    @idempotent
    def create(self, *args: Any, **kwargs: Any) -> Response:
        self.require_editor(self.workspace)
        values = self.validated(api_serializers.NewSourceSerializer)
        user = self.request.user
        collection = get_collection(workspace=self.workspace, slug=values.pop("collection"))
        with errors_of_places():
            services.first_items(values["connector"], values["options"], user=user)
        source = services.create_source(collection=collection, user=user, **values)
        answer = self.answer(self.get_queryset().get(pk=source.pk), status=201)
        answer.headers["Location"] = answer.data["url"]
        return answer

    @extend_schema(
        summary="Change a source",
        description="Secrets that `options` does not contain stay. A source that had stopped"
        " is read by its schedule again.",
        request=api_serializers.SourceChangeSerializer,
        responses={200: SourceSerializer, 409: ErrorSerializer},
        examples=[examples.RESCHEDULE],
    )
    def partial_update(self, *args: Any, **kwargs: Any) -> Response:
        source = self.editable_object()
        values = self.validated(api_serializers.SourceChangeSerializer, partial=True)
        services.update_source(source=source, user=self.request.user, **values)
        return self.answer(self.get_queryset().get(pk=source.pk))

    @extend_schema(
        summary="Delete a source",
        description="Its secrets are deleted; its documents stay, unless `documents=delete`."
        " Nothing changes at the source.",
    )
    def destroy(self, *args: Any, **kwargs: Any) -> Response:
        with_documents = self.parameters["documents"] == "delete"
        services.delete_source(source=self.editable_object(), with_documents=with_documents)
        return Response(status=204)

    # --- trying ----------------------------------------------------------------------------------

    @extend_schema(
        summary="List the kinds of sources, with their options",
        responses=SourceKindSerializer(many=True),
    )
    @action(detail=False, pagination_class=None)
    def kinds(self, *args: Any, **kwargs: Any) -> Response:
        found = [
            {
                "connector": kind,
                "label": made.label,
                "options": [
                    {
                        "name": name,
                        "title": field.title or name,
                        "description": field.description or "",
                        "is_required": field.is_required(),
                        "is_secret": field.annotation is SecretStr,
                        "default": ""
                        if field.is_required() or field.annotation is SecretStr
                        else str(field.default if field.default is not None else ""),
                    }
                    for name, field in made.Options.model_fields.items()
                ],
            }
            for kind in kinds()
            for made in [connector_class(kind)]
        ]
        return Response(SourceKindSerializer(found, many=True).data)

    @extend_schema(
        summary="Test a source without saving it",
        request=api_serializers.PlaceInput,
        responses={200: SourceTrialSerializer, 424: ErrorSerializer},
        examples=[examples.PLACE],
    )
    @action(detail=False, methods=["post"], url_path="try", url_name="try")
    def try_place(self, *args: Any, **kwargs: Any) -> Response:
        self.require_editor(self.workspace)
        values = self.validated(api_serializers.PlaceInput)
        with errors_of_places():
            found = services.first_items(
                values["connector"], values["options"], user=self.request.user
            )
        return Response(SourceTrialSerializer({"items": found}).data)

    @extend_schema(
        summary="Report what a run would do, and change nothing",
        request=None,
        responses={200: SourcePreviewSerializer, 409: ErrorSerializer, 424: ErrorSerializer},
    )
    @action(detail=True, methods=["post"], url_path="dry-run", url_name="dry-run")
    def dry_run(self, *args: Any, **kwargs: Any) -> Response:
        source = self.editable_object()
        with errors_of_places():
            comparison, gone, would_stop = services.preview(source)
        names = {"new": comparison.new_names, "changed": comparison.changed_names, "gone": gone}
        found = {
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
        return Response(SourcePreviewSerializer(found).data)

    @extend_schema(
        summary="Former address of `dry-run`",
        request=None,
        responses={200: SourcePreviewSerializer, 409: ErrorSerializer, 424: ErrorSerializer},
        deprecated=True,
    )
    @action(detail=True, methods=["post"])
    def preview(self, *args: Any, **kwargs: Any) -> Response:
        return self.dry_run(*args, **kwargs)

    # --- runs ------------------------------------------------------------------------------------

    @extend_schema(
        summary="List a source's runs, newest first", responses=SourceRunSerializer(many=True)
    )
    @action(detail=True, serializer_class=SourceRunSerializer)
    def runs(self, *args: Any, **kwargs: Any) -> Response:
        return self.page(self.get_object().runs.select_related("user"))

    @extend_schema(
        summary="Start a run",
        description="409 while another run is in progress.",
        request=api_serializers.NewSourceRunSerializer,
        responses={202: SourceRunSerializer, 409: ErrorSerializer},
        examples=[examples.START],
    )
    @runs.mapping.post
    @idempotent
    def start(self, *args: Any, **kwargs: Any) -> Response:
        source = self.editable_object()
        values = self.validated(api_serializers.NewSourceRunSerializer)
        run = services.start_run(source=source, user=self.request.user, **values)
        return Response(SourceRunSerializer(run).data, status=202)

    @extend_schema(
        summary="Cancel a source's run",
        description="It ends within seconds; fetched documents stay. The answer is the same"
        " if no run is in progress.",
        request=None,
    )
    @action(detail=True, methods=["post"])
    def cancel(self, *args: Any, **kwargs: Any) -> Response:
        source = self.editable_object()
        for run in DataSourceRun.objects.filter(source=source, finished_at=None):
            services.cancel_run(run=run)
        return self.answer(self.get_queryset().get(pk=source.pk))

    @extend_schema(
        summary="List a source's failed files", responses=SourceFailureSerializer(many=True)
    )
    @action(
        detail=True,
        serializer_class=SourceFailureSerializer,
        url_path="failures",
        url_name="failures",
    )
    def failed_items(self, *args: Any, **kwargs: Any) -> Response:
        rows = services.visible_failures(self.get_object(), user=self.request.user)
        return self.page(rows)

    @extend_schema(
        summary="Fetch a source's failed files again",
        description="Starts a run. 409 while another run is in progress.",
        request=None,
        responses={202: SourceRetrySerializer, 409: ErrorSerializer},
    )
    @action(detail=True, methods=["post"])
    @idempotent
    def retry(self, *args: Any, **kwargs: Any) -> Response:
        source = self.editable_object()
        with transaction.atomic():
            count = services.retry_items(source=source)
            run = services.start_run(source=source, user=self.request.user)
        return Response(SourceRetrySerializer({"count": count, "run": run}).data, status=202)

    # --- webhook ---------------------------------------------------------------------------------

    # Not `idempotent`: a stored answer would keep the secret.
    @extend_schema(
        summary="Create the secret of a source's webhook",
        description="Calls that are signed with it start a run: by Standard Webhooks, by"
        " GitHub, or with GitLab's token. An older secret no longer works.",
        request=None,
        responses={201: SourceWebhookSerializer},
    )
    @action(detail=True, methods=["post"])
    def webhook(self, *args: Any, **kwargs: Any) -> Response:
        source = self.editable_object()
        secret = services.make_webhook_secret(source=source)
        address = self.request.build_absolute_uri(reverse("source_hook", args=[source.pk]))
        shown = SourceWebhookSerializer({"address": address, "secret": secret}).data
        return Response(shown, status=201, headers={"Cache-Control": "no-store"})

    @extend_schema(summary="Turn off a source's webhook")
    @webhook.mapping.delete
    def remove_webhook(self, *args: Any, **kwargs: Any) -> Response:
        services.remove_webhook(source=self.editable_object())
        return Response(status=204)
