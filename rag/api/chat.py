"""A question in, an answer out: as events while it is made, or whole."""

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from accounts.api import WorkspaceView
from common.api import ErrorSerializer
from common.negotiation import ErrorsAsJson
from rag.api import chat_examples as examples
from rag.api.chat_inputs import ChatInput, is_kept, question_of
from rag.api.chat_serializers import AnswerSerializer, whole
from rag.asking import context_of
from rag.services.chatting import chat
from rag.streaming import answered


@extend_schema(tags=["chat"])
class ChatView(WorkspaceView):
    """Answers."""

    required_scope = "chat"
    asks_model = True
    content_negotiation_class = ErrorsAsJson

    @extend_schema(
        operation_id="chat",
        summary="Ask, and get an answer that cites its sources",
        description=(
            "Server-sent events: `metadata`, `retrieval`, `node` (of pipelines), `token`,"
            " `citation`, and last `done` or `error`. What fails before the first event has a"
            " status of its own. There is no resuming: closing the connection stops the work, and"
            " what was said so far stays in the conversation. 503 where too many answers are being"
            " made."
        ),
        request=ChatInput,
        responses={
            (200, "text/event-stream"): str,
            (200, "application/json"): AnswerSerializer,
            502: ErrorSerializer,
            503: ErrorSerializer,
        },
        examples=[examples.QUESTION, examples.FOLLOW_UP, examples.EVENTS, examples.ANSWER],
    )
    def post(self, request: Request) -> HttpResponseBase:
        body = ChatInput(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        context = context_of(
            self, collections=asked.get("collections", ()), filter=asked.get("filter")
        )
        events = chat(
            question_of(asked),
            context=context,
            conversation=asked.get("conversation"),
            replaces=asked.get("replaces"),
            keep=is_kept(asked),
        )
        return answered(
            events,
            request=request,
            cancelled=context.cancelled,
            streams=asked["stream"],
            whole=lambda told: AnswerSerializer(whole(told)).data,
        )
