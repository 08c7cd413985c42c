"""What is like a document or a passage."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView
from common.errors import NotFound
from documents.models import Chunk, Document
from search.api import examples
from search.api.inputs import SimilarParameters
from search.api.scoping import asked_scope
from search.api.serializers import SimilarAnswerSerializer
from search.similar import Similar, similar_documents, similar_passages


class SimilarView(WorkspaceView):
    """Things like the one that the address names."""

    action_parameters = {"get": SimilarParameters}
    required_scope = "read"

    def named(self, rows: QuerySet[Any], pk: int) -> Any:
        """The row with this id, of the workspace if the request names one; raises NotFound."""
        rows = rows.filter(pk=pk)
        if self.workspace_slug:
            rows = rows.filter(workspace=self.workspace)
        row = rows.select_related("workspace").first()
        if row is None:
            raise NotFound(f"There is no {rows.model._meta.verbose_name} {pk}.")
        return row

    def answer(self, similar: Sequence[Similar]) -> Response:
        """In JSON."""
        context = {"request": self.request}
        return Response(SimilarAnswerSerializer({"hits": similar}, context=context).data)


class SimilarDocumentsView(SimilarView):
    """Documents like one."""

    @extend_schema(
        tags=["search"],
        operation_id="documents_similar",
        summary="Find documents like one",
        description="Each by its passage that is most like it. Never the document itself, another"
        " version of it, or one with the same text. None where no other has anything in common"
        " with it.",
        responses={200: SimilarAnswerSerializer},
        examples=[examples.SIMILAR],
    )
    def get(self, request: Request, pk: int) -> Response:
        document = self.named(Document.objects.visible_to(request.user), pk)
        scope = asked_scope(request.user, document.workspace, self.parameters)
        return self.answer(similar_documents(document, scope=scope, k=self.parameters["k"]))


class SimilarPassagesView(SimilarView):
    """Passages like one."""

    @extend_schema(
        tags=["search"],
        operation_id="chunks_similar",
        summary="Find passages like one",
        description="Of other documents than its own, and none with the very same text.",
        responses={200: SimilarAnswerSerializer},
        examples=[examples.SIMILAR],
    )
    def get(self, request: Request, pk: int) -> Response:
        rows = Chunk.objects.visible_to(request.user).defer("embedding", "search_vector")
        chunk = self.named(rows.select_related("document"), pk)
        scope = asked_scope(request.user, chunk.workspace, self.parameters)
        return self.answer(similar_passages(chunk, scope=scope, k=self.parameters["k"]))
