"""Everything that is remembered of a user: taken along, erased, weighed."""

from dataclasses import asdict, fields

from django.http import StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from common.errors import InvalidInput
from common.negotiation import ErrorsAsJson
from memory import services
from memory.api import examples, inputs, serializers
from memory.api.base import MemoryView

JSON_LINES = "application/x-ndjson"


@extend_schema(tags=["memory"])
class MemoryWholeView(MemoryView):
    """A user's memory as a whole."""

    action_parameters = {"delete": inputs.Erasure}

    @extend_schema(
        operation_id="memory_erase",
        summary="Erase everything that is remembered of a user",
        description="Contexts, facts with their history, conversations that wait, and what logs"
        " say of them: afterwards no table holds any of it. So that no slip erases anything,"
        " `confirm` must repeat the user id.",
        responses={200: serializers.ErasedSerializer},
        examples=[examples.ERASED],
    )
    def delete(self, request: Request) -> Response:
        if self.user_id not in (None, self.parameters.get("confirm")):
            raise InvalidInput(
                f"This erases everything that is remembered of “{self.user_id}”. Repeat that id in"
                " `confirm` if you mean it.",
                field="confirm",
            )
        erased = services.erase_memory(scope=self.scope)
        return self.answer(serializers.ErasedSerializer, **asdict(erased))


@extend_schema(tags=["memory"])
class UsageView(MemoryView):
    """How much it is."""

    @extend_schema(
        operation_id="memory_usage",
        summary="Read how much is kept of a user, and how much may be",
        responses=serializers.UsageSerializer,
        examples=[examples.USAGE],
    )
    def get(self, request: Request) -> Response:
        used = services.usage(scope=self.scope)
        values = {each.name: getattr(used, each.name) for each in fields(used)}
        return self.answer(serializers.UsageSerializer, **values)


@extend_schema(tags=["memory"])
class ExportView(MemoryView):
    """All of it, to take along."""

    content_negotiation_class = ErrorsAsJson

    @extend_schema(
        operation_id="memory_export",
        summary="Export a user's memory as JSON Lines",
        description="A header, every fact with its history, every context, every conversation"
        " that waits, and what a quota removed: each a line with its `kind`. Of nobody no line.",
        responses={(200, JSON_LINES): str},
        examples=[examples.EXPORT],
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        name = f"memory-{timezone.now():%Y-%m-%d}.jsonl"
        return StreamingHttpResponse(
            services.export_memory(scope=self.scope),
            content_type=f"{JSON_LINES}; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )
