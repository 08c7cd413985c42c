"""Ollama's own chat API as a chat backend. Begin with `OllamaChat`.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from inference.interfaces import ChatMessage, MalformedAnswer, ToolCall, replace_surrogates
from inference.remote import chat
from inference.remote.chat import ChatRequest, RemoteChat
from inference.remote.client import JSON_LINES, StreamClient

PROTOCOL = "Ollama's protocol"
Fields = Mapping[str, Any]


def request_messages(messages: Sequence[ChatMessage]) -> list[dict[str, object]]:
    """`messages` for a request. Tool results name the tool, where other protocols name the call."""
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    requested = []
    for message in messages:
        fields: dict[str, object] = {
            "role": message.role,
            "content": replace_surrogates(message.content),
        }
        if message.tool_calls:
            fields["tool_calls"] = [
                {"function": {"name": call.name, "arguments": chat.arguments_object(call)}}
                for call in message.tool_calls
            ]
        if message.tool_call_id and (name := names.get(message.tool_call_id)):
            fields["tool_name"] = name
        requested.append(fields)
    return requested


def parse_message(answer: Any, *, secrets: tuple[str, ...] = ()) -> ChatMessage:
    """The message of a complete answer. `secrets` are removed from quotations of the server.

    Raises MalformedAnswer, EmptyAnswer, or BackendUnavailable for an error with status 200.
    """
    message = _message(answer, secrets)
    return _finish(chat.text_field(message, "content"), _tool_calls(message), answer)


def parse_stream(
    lines: Iterable[str], *, secrets: tuple[str, ...] = ()
) -> Generator[str, None, ChatMessage]:
    """Pieces of text from a stream's lines; returns the whole message.

    Raises as for a complete answer, and BackendUnavailable for a truncated stream.
    """
    pieces: list[str] = []
    calls: list[ToolCall] = []
    for line in lines:
        part = chat.read_event(line, secrets, protocol=PROTOCOL)
        message = _message(part, secrets)
        calls += _tool_calls(message)
        if piece := chat.text_field(message, "content"):
            pieces.append(piece)
            yield piece
        if part.get("done") is True:
            return _finish("".join(pieces), calls, part)
    raise chat.incomplete_stream_error()


def _message(answer: Any, secrets: tuple[str, ...]) -> Fields:
    fields = answer if isinstance(answer, dict) else {}
    if fields.get("error"):
        raise chat.stream_error(answer, secrets)
    message = fields.get("message")
    if not isinstance(message, dict):
        raise MalformedAnswer(
            "the answer holds no object `message`: is base_url that of Ollama, without a path?"
        )
    return message


def _tool_calls(message: Fields) -> list[ToolCall]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise MalformedAnswer(chat.NAMELESS_CALL)
    parsed = []
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(function, dict) or not isinstance(name, str) or not name:
            raise MalformedAnswer(chat.NAMELESS_CALL)
        arguments = function.get("arguments") or {}
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        parsed.append(ToolCall(chat.text_field(call, "id"), name, arguments))
    return parsed


def _finish(content: str, calls: list[ToolCall], last: Fields) -> ChatMessage:
    # Ollama omits the count of a prompt that was fully cached.
    return chat.finished_message(
        content=content,
        tool_calls=chat.with_unique_ids(calls),
        truncated=chat.text_field(last, "done_reason") == "length",
        usage=chat.token_usage({"prompt_eval_count": 0, **last}, "prompt_eval_count", "eval_count"),
    )


OLLAMA_URL = "http://localhost:11434"


class OllamaChat(RemoteChat):
    """`POST {base}/api/chat`. Ollama is told not to truncate the start of a conversation.

    It cannot be forced to call a tool: for a required tool only that one is offered.
    """

    path = "/api/chat"

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OLLAMA_URL,
        api_key: str | None = None,
        num_ctx: int | None = None,
        think: bool | str | None = None,
        keep_alive: str | int | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        send_temperature: bool = True,
        options: Mapping[str, object] | None = None,
        timeout: float = chat.TIMEOUT,
        attempts: int = chat.ATTEMPTS,
    ) -> None:
        """`num_ctx` is how many tokens of conversation and answer fit, 4,096 on most machines for
        None. `think`: whether, or how hard, a model that can thinks first; None leaves that to it.
        `keep_alive` is how long Ollama keeps the model loaded after a request, "30m" or -1 for
        ever. `options` are further ones of Ollama's own, such as {"seed": 1}. `api_key` is for an
        Ollama behind a proxy that wants one. The rest is as for OpenAIChat. Raises
        BackendUnavailable.
        """
        super().__init__(
            StreamClient(
                base_url,
                framing=JSON_LINES,
                api_key=api_key,
                cures={
                    400: "Check the OPTIONS. A conversation too long for the model needs a larger"
                    " num_ctx or must be shortened; tools need a model that can call them.",
                    404: f"Run `ollama pull {model}` on Ollama's host, or correct base_url.",
                    429: "Ask less at once, or wait.",
                    503: "Ask less at once, or wait.",
                },
                unreachable="Does `ollama serve` run, and is base_url right?",
                late=chat.LATE_CURE,
            ),
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            send_temperature=send_temperature,
            timeout=timeout,
            attempts=attempts,
        )
        self._options = {**(options or {}), **chat.without_empty(num_ctx=num_ctx)}
        self._fields = chat.without_empty(think=think, keep_alive=keep_alive)

    def _payload(self, wish: ChatRequest, *, stream: bool) -> dict[str, object]:
        chosen = chat.without_empty(
            num_predict=wish.max_tokens,
            temperature=wish.temperature,
            top_p=wish.top_p,
            stop=list(wish.stop),
        )
        named = [tool for tool in wish.tools if tool["name"] == wish.tool_choice]
        tools = [] if wish.tool_choice == "none" else named or wish.tools
        offered_tools = [{"type": "function", "function": dict(tool)} for tool in tools]
        return {
            **self._fields,
            **chat.without_empty(tools=offered_tools),
            "model": self.model_name,
            "messages": request_messages(wish.messages),
            "options": {**self._options, **chosen},
            "stream": stream,
            # By default Ollama silently truncates the beginning of a long conversation.
            "truncate": False,
            "shift": False,
        }

    def _is_last(self, event: str) -> bool:
        return '"done":true' in event.replace(" ", "") and chat.has_field(event, "done", True)

    def _parse_answer(self, answer: Any) -> ChatMessage:
        return parse_message(answer, secrets=self._client.secrets)

    def _streamed(self, events: Iterable[str]) -> Generator[str, None, ChatMessage]:
        return parse_stream(events, secrets=self._client.secrets)
