"""OpenAI's chat completions, as many servers speak them.

https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

from inference.interfaces import ChatMessage, ChatOptions, MalformedAnswer, replace_surrogates
from inference.remote import chat
from inference.remote.chat import Fields, PartialAnswer, RemoteChat, text_field
from inference.remote.client import (
    BAD_OPENAI_KEY,
    OPENAI_URL,
    JsonClient,
    provider_key,
    with_version,
)
from inference.remote.retry import ServerRefused


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

    A model's reasoning, in fields or tags of its own, is no part of the answer.
    """

    path = "/chat/completions"
    protocol = "OpenAI's protocol"

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
        context_tokens: int | None = None,
        transport: chat.Transport | None = None,
    ) -> None:
        """`api_key`: None takes OPENAI_API_KEY from the environment, "" sends none.

        `max_tokens`, `temperature` and `timeout` are for calls that do not say otherwise; without
        either the server's own hold. `send_temperature` False keeps it and `top_p` to itself, also
        where a call wishes them; a model that takes none is sent none after its first refusal.
        `max_tokens_field` is what the request calls them, `max_completion_tokens` for OpenAI itself
        and else `max_tokens`. `extra` are further fields of every request, such as
        {"reasoning_effort": "low"}. `context_tokens` is how many of conversation and answer fit;
        None until a refusal of the server names it. `timeout` is in seconds and for everything, of
        which there are `attempts`. Raises BackendUnavailable.
        """
        super().__init__(
            JsonClient(
                with_version(base_url),
                api_key=provider_key("OpenAI", api_key, base_url),
                cures=CURES,
                late=chat.LATE_CURE,
                transport=transport,
            ),
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            send_temperature=send_temperature,
            timeout=timeout,
            attempts=attempts,
            context_tokens=context_tokens,
        )
        self._max_tokens_field = max_tokens_field or (
            "max_completion_tokens" if "//api.openai.com" in base_url else "max_tokens"
        )
        self._extra = dict(extra or {})
        # Whether the server counts a stream's tokens when asked to; None until one was streamed.
        self._counts = None if "stream_options" not in self._extra else False

    def _payload(
        self, messages: Sequence[ChatMessage], options: ChatOptions, *, stream: bool
    ) -> dict[str, object]:
        counted = USAGE_FIELDS if stream and self._counts is not False else {}
        limit = {self._max_tokens_field: options["max_tokens"]}
        choice = options["tool_choice"]
        return {
            **self._extra,
            **chat.without_empty(
                model=self.model_name,
                messages=[request_message(message) for message in messages],
                tools=[{"type": "function", "function": dict(tool)} for tool in options["tools"]],
                tool_choice=request_tool_choice(choice) if choice else None,
                temperature=options["temperature"],
                top_p=options["top_p"],
                stop=list(options["stop"]),
                stream=True if stream else None,
                **limit,
                **counted,
            ),
        }

    @staticmethod
    def read(fields: Fields, answer: PartialAnswer) -> None:
        """A chunk of a stream, or a completion, whose `message` is like a chunk's `delta`."""
        answer.count_usage(fields.get("usage"), "prompt_tokens", "completion_tokens")
        choices = fields.get("choices")
        if not isinstance(choices, list) or not all(isinstance(each, dict) for each in choices):
            answer.pass_over(
                "the answer holds no list `choices`: is base_url that of a server of OpenAI's"
                " protocol?"
            )
            return
        if not choices and answer.is_complete:
            raise MalformedAnswer("the answer's list `choices` is empty: see the server's log.")
        if not choices:
            return
        key = "message" if answer.is_complete else "delta"
        answer.finish_reason = text_field(choices[0], "finish_reason") or answer.finish_reason
        message = choices[0].get(key)
        if message is None and key in choices[0] and not answer.is_complete:
            return
        if not isinstance(message, dict):
            answer.pass_over(f"the answer's choice has no {key!r}: update the server.")
            return
        answer.refusal += text_field(message, "refusal")
        calls = message.get("tool_calls") or []
        if not isinstance(calls, list) or not all(
            isinstance(call, dict) and isinstance(call.get("function"), dict) for call in calls
        ):
            raise MalformedAnswer(chat.NAMELESS_CALL)
        for at, call in enumerate(calls):
            answer.add_call(
                index if isinstance(index := call.get("index"), int) else at,
                id=text_field(call, "id"),
                name=call["function"].get("name"),
                arguments=text_field(call["function"], "arguments"),
            )
        _read_content(message, answer)

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


def _read_content(message: Fields, answer: PartialAnswer) -> None:
    """Text and reasoning of a message or a delta. Raises MalformedAnswer."""
    # DeepSeek, llama.cpp, LM Studio and others, and the newer name of vLLM and OpenRouter; some
    # send both.
    thoughts = (message.get(name) for name in ("reasoning_content", "reasoning"))
    answer.add_reasoning(next((each for each in thoughts if isinstance(each, str)), ""))
    content = message.get("content")
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        answer.add_text(text_field(message, "content"))
        return
    for part in content:  # Mistral's, whose `thinking` is a list of parts, too
        thinking = part.get("thinking")
        for thought in thinking if isinstance(thinking, list) else ():
            if isinstance(thought, dict):
                answer.add_reasoning(text_field(thought, "text"))
        answer.add_text(text_field(part, "text"))
