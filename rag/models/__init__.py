"""Conversations, pipelines, and traces of what pipelines did."""

from rag.models.conversation import Conversation, Message
from rag.models.pipeline import Pipeline
from rag.models.trace import Span, Trace

__all__ = ["Conversation", "Message", "Pipeline", "Span", "Trace"]
