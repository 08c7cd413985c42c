"""The API of answers, pipelines and tools."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from rag.api.chat import ChatView, ConversationViewSet
from rag.api.databases import DatabaseConnectionViewSet
from rag.api.pipelines import PipelineCheckView, PipelineDetailView, PipelineRunView, PipelinesView
from rag.api.summaries import DocumentSummaryView, ScopeSummaryView
from rag.api.tables import TablesAskView
from rag.api.tools import ModelsView, ToolCallView, ToolsView
from rag.api.traces import TraceViewSet

router = SimpleRouter(use_regex_path=False)
router.register("conversations", ConversationViewSet, basename="conversation")
router.register("databases", DatabaseConnectionViewSet, basename="database")
router.register("traces", TraceViewSet, basename="trace")

urlpatterns = [
    *router.urls,
    path("chat/", ChatView.as_view(), name="chat"),
    path("models/", ModelsView.as_view(), name="models"),
    path("pipelines/", PipelinesView.as_view(), name="pipelines"),
    path("pipelines/check/", PipelineCheckView.as_view(), name="pipeline-check"),
    path("pipelines/<str:id>/", PipelineDetailView.as_view(), name="pipeline"),
    path("pipelines/<str:id>/run/", PipelineRunView.as_view(), name="pipeline-run"),
    path("summary/", ScopeSummaryView.as_view(), name="summary"),
    path("documents/<int:pk>/summary/", DocumentSummaryView.as_view(), name="document-summary"),
    path("tables/ask/", TablesAskView.as_view(), name="tables-ask"),
    path("tools/", ToolsView.as_view(), name="tools"),
    path("tools/<str:name>/", ToolCallView.as_view(), name="tool-call"),
]
