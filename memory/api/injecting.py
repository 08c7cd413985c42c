"""What is remembered, put before a chat model with the question."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api import chat_serializers as serializers
from memory.api import examples, inputs
from memory.api.base import MemoryView
from memory.services.injecting import inject


@extend_schema(tags=["memory"])
class InjectView(MemoryView):
    """Messages for a chat model, with what is remembered that has to do with the question."""

    @extend_schema(
        operation_id="memory_inject",
        summary="Put what is remembered before a chat model",
        description="Only the last user message changes: what has to do with it is added behind a"
        " blank line, fenced as data. All others come back as they were sent, and so does that one"
        " where nothing is remembered. `facts` and `context` are the same as lists.",
        request=inputs.InjectionInput,
        responses={200: serializers.InjectionSerializer},
        examples=[examples.INJECT, examples.INJECTED],
    )
    def post(self, request: Request) -> Response:
        done = inject(scope=self.scope, enabled=True, **self.body(inputs.InjectionInput))
        return self.answer(
            serializers.InjectionSerializer,
            messages=done.messages,
            facts=[{"key": key, "value": value} for key, value in done.facts],
            context=[
                {
                    "said_on": turn.said_on,
                    "user_message": turn.question,
                    "assistant_response": turn.answer,
                }
                for turn in done.context
            ],
            tokens=done.tokens,
            degraded=done.degraded,
        )
