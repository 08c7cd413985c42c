"""Conversations over HTTP: a user's own, and nobody else's."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from accounts.api import ListParameters, WorkspaceViewSet
from common.openapi import load_examples
from common.serializers import ReadOnlyModelSerializer, StrictSerializer
from rag.context import context_of_view
from rag.models import Conversation, Message
from rag.services import conversations

examples = load_examples("rag.api")


@extend_schema_serializer(component_name="Conversation")
class ConversationSerializer(ReadOnlyModelSerializer[Conversation]):
    """A conversation without its messages."""

    class Meta:
        model = Conversation
        fields = ["id", "title", "collections", "pipeline", "created_at", "updated_at"]
        extra_kwargs = {"updated_at": {"help_text": "When something was said last."}}


@extend_schema_serializer(component_name="ConversationMessage")
class MessageSerializer(serializers.Serializer[Any]):
    """A question, or an answer with its sources, in the format of the events of a chat."""

    id = serializers.IntegerField(source="message.pk")
    role = serializers.ChoiceField(choices=Message.Role.choices, source="message.role")
    state = serializers.ChoiceField(
        choices=Message.State.choices,
        source="message.state",
        help_text="`removed`: a document that it quoted was deleted, and its text with it.",
    )
    content = serializers.CharField()
    created_at = serializers.DateTimeField(source="message.created_at")
    model = serializers.CharField(source="message.model")
    generator = serializers.CharField(source="message.generator")
    pipeline = serializers.CharField(source="message.pipeline")
    passages = serializers.ListField(child=serializers.DictField())
    citations = serializers.ListField(child=serializers.DictField())
    verdict = serializers.DictField(source="message.verdict")
    memory = serializers.DictField(source="message.memory", allow_null=True)
    degraded = serializers.ListField(child=serializers.CharField(), source="message.degraded")
    finish_reason = serializers.CharField(source="message.finish_reason")
    error_code = serializers.CharField(source="message.error_code")
    error = serializers.CharField(source="message.error")
    input_tokens = serializers.IntegerField(source="message.input_tokens")
    output_tokens = serializers.IntegerField(source="message.output_tokens")
    elapsed_ms = serializers.FloatField(source="message.elapsed_ms", allow_null=True)
    trace = serializers.IntegerField(source="message.trace_id", allow_null=True)
    is_withheld = serializers.BooleanField(
        help_text="It holds text of a document that you may not read any more, and is empty here."
    )


class ConversationInput(StrictSerializer):
    """The fields that can be changed."""

    title = serializers.CharField(max_length=200)


@extend_schema(tags=["chat"])
class ConversationViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet):
    """Conversations. `POST /api/v1/chat/` begins and continues them."""

    summaries = {
        "list": "List your conversations, the last one first",
        "retrieve": "Read a conversation, without its messages",
    }
    serializer_class = ConversationSerializer
    ordering = ("-updated_at", "-id")
    lookup_value_converter = "int"
    required_scope = "chat"
    action_parameters = dict.fromkeys(("list", "messages"), ListParameters)

    def get_queryset(self) -> QuerySet[Conversation]:
        return self.in_workspace(Conversation.objects.visible_to(self.request.user))

    @extend_schema(
        summary="List a conversation's messages in their order",
        description="Passages have the text that their document has now.",
        responses=MessageSerializer(many=True),
    )
    @action(detail=True, serializer_class=MessageSerializer, ordering="id")
    def messages(self, *args: Any, **kwargs: Any) -> Response:
        rows = self.paginate_queryset(self.get_object().messages.all())
        visible = conversations.visible_messages(rows=rows or [], context=context_of_view(self))
        return self.get_paginated_response(MessageSerializer(visible, many=True).data)

    @extend_schema(
        summary="Rename a conversation", request=ConversationInput, examples=[examples.RENAME]
    )
    def partial_update(self, *args: Any, **kwargs: Any) -> Response:
        values = self.validated(ConversationInput, partial=True)
        conversation = self.get_object()
        if "title" in values:
            conversation = conversations.rename_conversation(
                conversation=conversation, title=values["title"]
            )
        return self.answer(conversation)

    @extend_schema(summary="Delete a conversation with the runs that answered it")
    def destroy(self, *args: Any, **kwargs: Any) -> Response:
        conversations.delete_conversation(conversation=self.get_object())
        return Response(status=204)
