"""Conversations out of which facts are learnt: queued, followed, tried again."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from common.api import ErrorSerializer
from common.errors import Conflict, NotFound
from memory.api import chat_serializers as serializers
from memory.api import examples, inputs, reads
from memory.api.base import MemoryView
from memory.api.pagination import ConversationPagination
from memory.services.extraction import record_messages, retry_extractions


@extend_schema(tags=["memory"])
class ConversationsView(MemoryView):
    """The queue of extraction."""

    action_parameters = {"get": inputs.ConversationFilter}
    pagination_class = ConversationPagination

    @extend_schema(
        operation_id="memory_conversations",
        summary="List the conversations that facts are learnt from, newest first",
        responses=serializers.ConversationSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = reads.conversations(self.scope)
        if state := self.parameters.get("state"):
            rows = rows.filter(state=state)
        return self.page(rows, serializers.ConversationSerializer)

    @extend_schema(
        operation_id="memory_learn",
        summary="Have facts learnt from a conversation",
        description="It is queued, and read when it has been quiet for a while. Send the whole"
        " conversation each time: what was sent before is not taken again, so that to send it"
        " twice does no harm. Only what the user said is kept, and only until it has been read."
        " 429 where too much waits.",
        request=inputs.ConversationInput,
        responses={200: serializers.RecordedSerializer, 429: ErrorSerializer},
        examples=[examples.CONVERSATION, examples.RECORDED],
    )
    def post(self, request: Request) -> Response:
        recorded = record_messages(scope=self.scope, **self.body(inputs.ConversationInput))
        row = reads.conversations(self.scope).filter(pk=recorded.item_id) if recorded else None
        return self.answer(
            serializers.RecordedSerializer,
            conversation=row.first() if row is not None else None,
            new=recorded.new if recorded else 0,
        )


@extend_schema(tags=["memory"])
class ConversationRetryView(MemoryView):
    """Another try."""

    @extend_schema(
        operation_id="memory_conversation_retry",
        summary="Try a conversation again that was given up",
        description="As if for the first time. 409 where it has not been given up.",
        request=None,
        responses={200: serializers.ConversationAnswerSerializer, 409: ErrorSerializer},
    )
    def post(self, request: Request, conversation_id: int) -> Response:
        mine = reads.conversations(self.scope).filter(pk=conversation_id)
        if not mine.exists():
            raise NotFound(f"There is no conversation {conversation_id} in this memory.")
        if not retry_extractions(item_ids=[conversation_id]):
            raise Conflict("This conversation has not been given up. It is tried by itself.")
        return self.answer(serializers.ConversationAnswerSerializer, conversation=mine.first())
