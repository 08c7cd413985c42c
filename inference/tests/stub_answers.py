"""Answers of Anthropic's and Ollama's protocols, for the stub server; OpenAI's are beside it."""

import json
from typing import Any

from inference.tests.stub_server import Reply, Stream, event


def anthropic_events(*pieces: str, stop_reason: str = "end_turn") -> list[bytes]:
    """A streamed answer of Anthropic's protocol, event by event."""
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}
    deltas = (
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
        for piece in pieces
    )
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason},
        "usage": {"output_tokens": 3},
    }
    events = [start, {"type": "ping"}, block, *deltas, {"type": "content_block_stop", "index": 0}]
    return [event(each) for each in (*events, end, {"type": "message_stop"})]


def anthropic_reply(*blocks: Any, stop_reason: str = "end_turn") -> Reply:
    """A whole answer of Anthropic's protocol; a string is a block of text."""
    content = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
    usage = {"input_tokens": 7, "output_tokens": 3}
    body = {"type": "message", "content": content, "stop_reason": stop_reason, "usage": usage}
    return Reply(body)


def ollama_line(content: str = "", *, done: str = "", **fields: Any) -> dict[str, Any]:
    """A line of an answer of Ollama's; `done` is why it ends, `fields` are the message's."""
    line = {"message": {"role": "assistant", "content": content, **fields}, "done": bool(done)}
    counts = {"done_reason": done, "prompt_eval_count": 7, "eval_count": 3}
    return {**line, **counts} if done else line


def ollama_stream(*lines: Any, **how: Any) -> Stream:
    parts = (f"{json.dumps(line)}\n".encode() for line in lines)
    return Stream(*parts, kind="application/x-ndjson", **how)
