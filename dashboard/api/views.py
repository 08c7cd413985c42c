"""The figures of a workspace over the API."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView
from dashboard.api.serializers import DashboardParameters, DashboardSerializer, board_data
from dashboard.reading import read_board, unanswered


@extend_schema(tags=["dashboard"])
class DashboardView(WorkspaceView):
    """What is in a workspace, how it is searched, and how good the answers are."""

    action_parameters = {"get": DashboardParameters}

    @extend_schema(
        operation_id="dashboard", summary="Read the dashboard", responses=DashboardSerializer
    )
    def get(self, request: Request) -> Response:
        workspace = self.workspace
        board = read_board(workspace=workspace, range_name=self.parameters["range"])
        questions, _ = unanswered(workspace=workspace, user=request.user, range=board.range)
        return Response(DashboardSerializer(board_data(board, questions)).data)
