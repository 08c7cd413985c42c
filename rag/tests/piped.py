"""What tests of pipelines share: a question, its run, and a model that wants tools called."""

import json
from typing import Any

from inference.tests.stub_server import Reply, chat_reply
from rag.context import RagContext
from rag.events import Event
from rag.pipelines.definition import Definition
from rag.services.pipelines import run_pipeline

QUESTION = "When does the firm leave Mill Street?"


def told(pipeline: str | Definition, context: RagContext, **options: Any) -> list[Event]:
    """All events of a run."""
    return list(run_pipeline(pipeline, QUESTION, context=context, **options))


def only(kind: type[Any], events: list[Event]) -> Any:
    """The one event of a kind."""
    (found,) = [each for each in events if isinstance(each, kind)]
    return found


def wish(name: str, /, id: str = "1", **arguments: Any) -> Reply:
    """A model that wants a tool called."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": id, "type": "function", "function": function}
    return chat_reply(None, finish="tool_calls", tool_calls=[call])
