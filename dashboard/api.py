"""The dashboard's figures as JSON, one number for each part of the time range."""

from typing import Any

from django.urls import path
from rest_framework import serializers

from accounts.api import WorkspaceParameters, WorkspaceView, operation
from dashboard.figures import (
    DEFAULT_RANGE,
    RANGE_CHOICES,
    read_dashboard,
    unanswered_questions,
)
from dashboard.usage import read_usage, require_reader

UNKNOWN_HELP = "Null where nothing is known."


class DashboardParameters(WorkspaceParameters):
    """Which time range, of which workspace."""

    range = serializers.ChoiceField(
        choices=RANGE_CHOICES,
        default=DEFAULT_RANGE,
        help_text="`24h` by the hour, `7d` by six hours, `30d` by the day.",
    )


def _counts(help_text: str = "") -> Any:
    return serializers.ListField(child=serializers.IntegerField(), help_text=help_text or None)


def _values(help_text: str = UNKNOWN_HELP) -> Any:
    return serializers.ListField(child=serializers.FloatField(allow_null=True), help_text=help_text)


class DashboardNowSerializer(serializers.Serializer[Any]):
    """The counts at this moment."""

    documents = serializers.IntegerField()
    chunks = serializers.IntegerField()
    waiting = serializers.IntegerField(help_text="Documents queued or in progress.")
    failed = serializers.IntegerField(help_text="Documents.")


class DashboardStockSerializer(serializers.Serializer[Any]):
    """Counts at the end of each part."""

    documents = _values()
    chunks = _values()
    waiting = _values("The most that waited at once. " + UNKNOWN_HELP)
    since = serializers.DateTimeField(
        allow_null=True,
        help_text="Counted since then; earlier numbers come from the documents that still exist.",
    )


class DashboardIngestedSerializer(serializers.Serializer[Any]):
    """Ingestion runs that ended in each part."""

    ready = _counts("Files.")
    failed = _counts("Files.")
    chunks = _counts("Passages.")
    rate = serializers.FloatField(allow_null=True, help_text="Passages a second while runs worked.")


class DashboardDoorSerializer(serializers.Serializer[Any]):
    """Searches that came from one source."""

    door = serializers.CharField(source="source", help_text="`web`, `api`, `command` or `chat`.")
    count = _counts()


class DashboardSearchedSerializer(serializers.Serializer[Any]):
    """Searches in each part of the time range."""

    count = _counts()
    nothing = _counts("That found nothing, or that the chat had no answer to.")
    asked = _counts("Questions of chats.")
    refused = _counts("Of these, those that the documents do not answer.")
    p50_ms = _values("Half took no longer. " + UNKNOWN_HELP)
    p95_ms = _values("95 % took no longer. " + UNKNOWN_HELP)
    total_p50_ms = serializers.FloatField(allow_null=True, help_text="Of all parts.")
    total_p95_ms = serializers.FloatField(allow_null=True, help_text="Of all parts.")
    doors = DashboardDoorSerializer(many=True)


class DashboardQualitySerializer(serializers.Serializer[Any]):
    """Retrieval quality of one collection."""

    slug = serializers.CharField()
    name = serializers.CharField()
    ndcg = _values("nDCG@10 as last measured in each part; null where it was not.")
    latest = serializers.FloatField()
    questions = serializers.IntegerField(help_text="Judged ones.")


class DashboardUnansweredSerializer(serializers.Serializer[Any]):
    """A question that found nothing."""

    question = serializers.CharField()
    times = serializers.IntegerField()
    people = serializers.IntegerField()
    refused = serializers.BooleanField(help_text="A chat found no answer in the documents.")
    last_at = serializers.DateTimeField()


class DashboardSerializer(serializers.Serializer[Any]):
    """All figures; every list has as many numbers as `starts`."""

    range = serializers.ChoiceField(choices=RANGE_CHOICES)
    starts = serializers.ListField(
        child=serializers.DateTimeField(), help_text="When each part begins."
    )
    end = serializers.DateTimeField(help_text="When the last part ends, after now.")
    now = DashboardNowSerializer()
    stock = DashboardStockSerializer()
    ingested = DashboardIngestedSerializer()
    searched = DashboardSearchedSerializer()
    quality = DashboardQualitySerializer(many=True, help_text="Of the four largest golden sets.")
    unanswered = DashboardUnansweredSerializer(
        many=True,
        help_text="The 20 most frequent ones: editors see everybody's, others only their own.",
    )


class DashboardView(WorkspaceView):
    """Contents of a workspace, its searches, and its retrieval quality."""

    action_parameters = {"get": DashboardParameters}

    @operation(gives=DashboardSerializer, operation_id="dashboard")
    def get(self) -> dict[str, Any]:
        """Read the dashboard."""
        workspace = self.workspace
        board = read_dashboard(workspace=workspace, range_name=self.parameters["range"])
        range = board["range"]
        questions, _ = unanswered_questions(
            workspace=workspace, user=self.request.user, range=range
        )
        return {
            **board,
            "range": range.name,
            "starts": range.starts,
            "end": range.end,
            "unanswered": questions,
        }


class UsageParameters(WorkspaceParameters):
    """Of which workspace, or of all."""

    all_workspaces = serializers.BooleanField(
        default=False, help_text="Of the whole site, for who runs it."
    )


class UsageTotalSerializer(serializers.Serializer[Any]):
    """What language models did."""

    calls = serializers.IntegerField()
    estimated_calls = serializers.IntegerField(
        help_text="Calls whose tokens the server did not report; they are estimated."
    )
    input_tokens = serializers.IntegerField(help_text="Tokens read.")
    output_tokens = serializers.IntegerField(help_text="Tokens written.")
    cost = serializers.FloatField(
        allow_null=True, help_text="Of the models with a price; null without one."
    )


class UsageRowSerializer(UsageTotalSerializer):
    """The share of one model, user, purpose or workspace."""

    name = serializers.CharField(
        allow_null=True, help_text="Of users: empty for the site itself, null for deleted ones."
    )


class UsageSerializer(serializers.Serializer[Any]):
    """The last 30 days."""

    starts = serializers.ListField(child=serializers.DateTimeField(), help_text="Of each day.")
    input_tokens = _counts("Tokens read on each day.")
    output_tokens = _counts("Tokens written on each day.")
    costs = _values("On each day; null without a price.")
    currency = serializers.CharField(help_text="Of costs and prices.")
    total = UsageTotalSerializer()
    models = UsageRowSerializer(many=True, help_text="The 100 with the most tokens, as all lists.")
    users = UsageRowSerializer(many=True)
    purposes = UsageRowSerializer(many=True)
    workspaces = UsageRowSerializer(many=True, help_text="Empty unless of all workspaces.")


class UsageView(WorkspaceView):
    """What language models read, wrote and cost."""

    action_parameters = {"get": UsageParameters}

    @operation(gives=UsageSerializer, operation_id="dashboard_models")
    def get(self) -> dict[str, Any]:
        """Read what language models used.

        Owners see their workspace, who runs the site sees all workspaces.
        """
        workspace = None if self.parameters["all_workspaces"] else self.workspace
        require_reader(user=self.request.user, workspace=workspace)
        usage = read_usage(workspace=workspace)
        return {**usage, "starts": usage["range"].starts}


urlpatterns = [
    path("dashboard/", DashboardView.as_view(), name="dashboard"),
    path("dashboard/models/", UsageView.as_view(), name="dashboard-models"),
]
