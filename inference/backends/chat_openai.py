"""OpenAI's chat completions, as many servers speak them, as a chat backend. Begin with
`OpenAIChat`.

https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from typing import Any

from inference.interfaces import ChatMessage, MalformedAnswer, ToolCall, Usage, replace_surrogates
from inference.remote import chat
from inference.remote.chat import ChatRequest, RemoteChat
from inference.remote.client import (
    BAD_OPENAI_KEY,
    OPENAI_URL,
    StreamClient,
    provider_key,
    with_version,
)
from inference.remote.retry import ServerRefused

PROTOCOL = "OpenAI's protocol"
END_EVENT = "[DONE]"  # the last event of a stream


def request_message(message: ChatMessage) -> dict[str, object]:
    """`message` as part of a request."""
    fields: dict[str, object] = {
        "role": message.role,
        "content": replace_surrogates(message.content),
    }
    if message.tool_calls:
        fields["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": replace_surrogates(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        fields["tool_call_id"] = message.tool_call_id
    return fields


def request_tool_choice(tool_choice: str) -> object:
    if tool_choice in {"auto", "none", "required"}:
        return tool_choice
    return {"type": "function", "function": {"name": tool_choice}}


def parse_message(answer: Any, *, secrets: tuple[str, ...] = ()) -> ChatMessage:
    """The message of a chat completion. `secrets` are removed from quotations of the server.

    Raises MalformedAnswer, EmptyAnswer, AnswerRefused, or BackendUnavailable for an error with
    status 200.
    """
    choice = _choice(answer, secrets)
    if choice is None:
        raise MalformedAnswer("the answer's list `choices` is empty: see the server's log.")
    message = _object(choice, "message")
    finish = chat.text_field(choice, "finish_reason")
    functions = _functions(message)
    names = [function.get("name") for _, function in functions]
    if not all(isinstance(name, str) and name for name in names):
        raise MalformedAnswer(chat.NAMELESS_CALL)
    calls = [
        ToolCall(
            chat.text_field(call, "id"),
            function["name"],
            chat.text_field(function, "arguments"),
        )
        for call, function in functions
    ]
    return chat.finished_message(
        content=chat.text_field(message, "content"),
        tool_calls=chat.with_unique_ids(calls),
        refused=finish == "content_filter",
        refusal=chat.text_field(message, "refusal"),
        truncated=finish == "length",
        usage=_usage(answer),
    )


def parse_stream(
    events: Iterable[str], *, secrets: tuple[str, ...] = ()
) -> Generator[str, None, ChatMessage]:
    """Pieces of text from a stream's events; returns the whole message.

    Raises as for a complete answer, and BackendUnavailable for a truncated stream.
    """
    pieces: list[str] = []
    calls = chat.ToolCallAccumulator()
    refusal, finish, usage, ended = "", "", None, False
    for data in events:
        if data == END_EVENT:
            ended = True
            break
        chunk = chat.read_event(data, secrets, protocol=PROTOCOL)
        usage = _usage(chunk) or usage
        if (choice := _choice(chunk, secrets)) is None:
            continue
        delta = _object(choice, "delta")
        refusal += chat.text_field(delta, "refusal")
        finish = chat.text_field(choice, "finish_reason") or finish
        for at, (call, function) in enumerate(_functions(delta)):
            index = call.get("index")
            calls.add(
                index if isinstance(index, int) else at,
                id=chat.text_field(call, "id"),
                name=chat.text_field(function, "name"),
                arguments=chat.text_field(function, "arguments"),
            )
        if piece := chat.text_field(delta, "content"):
            pieces.append(piece)
            yield piece
    if not ended and not finish:
        raise chat.incomplete_stream_error()
    return chat.finished_message(
        content="".join(pieces),
        tool_calls=calls.finished(),
        refused=finish == "content_filter",
        refusal=refusal,
        truncated=finish == "length",
        usage=usage,
    )


def _choice(answer: Any, secrets: tuple[str, ...]) -> Mapping[str, Any] | None:
    """The first of `choices`; None where the list is empty."""
    fields = answer if isinstance(answer, dict) else {}
    if fields.get("error"):
        raise chat.stream_error(answer, secrets)
    choices = fields.get("choices")
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise MalformedAnswer(
            f"the answer holds no list `choices`: is base_url that of a server of {PROTOCOL}?"
        )
    return choices[0] if choices else None


def _object(choice: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = choice.get(key)
    if not isinstance(value, dict):
        raise MalformedAnswer(f"the answer's choice has no {key!r}: update the server.")
    return value


def _functions(message: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each call, or piece of one, with its function."""
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(
        isinstance(call, dict) and isinstance(call.get("function"), dict) for call in calls
    ):
        raise MalformedAnswer(chat.NAMELESS_CALL)
    return [(call, call["function"]) for call in calls]


def _usage(answer: Any) -> Usage | None:
    counted = answer.get("usage") if isinstance(answer, dict) else None
    return chat.token_usage(counted, "prompt_tokens", "completion_tokens")


CURES = {
    400: chat.BAD_REQUEST_CURE,
    401: BAD_OPENAI_KEY,
    403: BAD_OPENAI_KEY,
    413: "Send a shorter conversation.",
    429: "Ask less at once, or wait.",
}
USAGE_FIELDS = {"stream_options": {"include_usage": True}}


class OpenAIChat(RemoteChat):
    """`POST {base}/v1/chat/completions`: OpenAI, vLLM, LM Studio, llama.cpp, Ollama and others.

    A model's reasoning is not part of the answer.
    """

    path = "/chat/completions"

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI_URL,
        api_key: str | None = None,
        max_tokens: int | None = None,
        max_tokens_field: str | None = None,
        temperature: float | None = None,
        send_temperature: bool = True,
        extra: Mapping[str, object] | None = None,
        timeout: float = chat.TIMEOUT,
        attempts: int = chat.ATTEMPTS,
    ) -> None:
        """`api_key`: None takes OPENAI_API_KEY from the environment, "" sends none.

        `max_tokens`, `temperature` and `timeout` are for calls that do not say otherwise; without
        either the server's own hold. `send_temperature` False keeps it and `top_p` to itself, also
        where a call wishes them; a model that takes none is sent none after its first refusal.
        `max_tokens_field` is what the request calls them, `max_completion_tokens` for OpenAI itself
        and else `max_tokens`. `extra` are further fields of every request, such as
        {"reasoning_effort": "low"}. `timeout` is in seconds and for everything, of which there are
        `attempts`. Raises BackendUnavailable.
        """
        super().__init__(
            StreamClient(
                with_version(base_url),
                api_key=provider_key("OpenAI", api_key, base_url),
                cures=CURES,
                late=chat.LATE_CURE,
            ),
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            send_temperature=send_temperature,
            timeout=timeout,
            attempts=attempts,
        )
        self._max_tokens_field = max_tokens_field or (
            "max_completion_tokens" if "//api.openai.com" in base_url else "max_tokens"
        )
        self._extra = dict(extra or {})
        # Whether the server counts a stream's tokens when asked to; None until one was streamed.
        self._counts = None if "stream_options" not in self._extra else False

    def _payload(self, wish: ChatRequest, *, stream: bool) -> dict[str, object]:
        counted = USAGE_FIELDS if stream and self._counts is not False else {}
        limit = {self._max_tokens_field: wish.max_tokens}
        return {
            **self._extra,
            **chat.without_empty(
                model=self.model_name,
                messages=[request_message(message) for message in wish.messages],
                tools=[{"type": "function", "function": dict(tool)} for tool in wish.tools],
                tool_choice=request_tool_choice(wish.tool_choice) if wish.tool_choice else None,
                temperature=wish.temperature,
                top_p=wish.top_p,
                stop=list(wish.stop),
                stream=True if stream else None,
                **limit,
                **counted,
            ),
        }

    def _events(self, payload: dict[str, object], **within: Any) -> Generator[str, None, None]:
        with closing(super()._events(payload, **within)) as events:
            for event in events:
                if self._counts is None:
                    self._counts = "stream_options" in payload
                yield event

    def _lighter(
        self, payload: dict[str, object], refused: ServerRefused
    ) -> dict[str, object] | None:
        if lighter := super()._lighter(payload, refused):
            return lighter
        may_be_why = refused.status in {400, 422} and not refused.too_large
        if not may_be_why or self._counts is not None or "stream_options" not in payload:
            return None
        # Servers that do not know the field report it in many ways. If the request succeeds without
        # it, that was the cause.
        return {name: value for name, value in payload.items() if name != "stream_options"}

    def _is_last(self, event: str) -> bool:
        return event == END_EVENT

    def _parse_answer(self, answer: Any) -> ChatMessage:
        return parse_message(answer, secrets=self._client.secrets)

    def _streamed(self, events: Iterable[str]) -> Generator[str, None, ChatMessage]:
        return parse_stream(events, secrets=self._client.secrets)
