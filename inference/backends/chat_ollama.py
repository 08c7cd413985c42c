"""Ollama's own chat API.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

import json
from collections.abc import Mapping, Sequence

from inference.interfaces import ChatMessage, ChatOptions, MalformedAnswer, replace_surrogates
from inference.remote import chat
from inference.remote.chat import Fields, PartialAnswer, RemoteChat, text_field
from inference.remote.client import JsonClient

OLLAMA_URL = "http://localhost:11434"
DEFAULT_CONTEXT = 4096  # Ollama's own with less than 24 GiB of GPU memory


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


class OllamaChat(RemoteChat):
    """`POST {base}/api/chat`. Ollama is told not to truncate the start of a conversation.

    It cannot be forced to call a tool: for a required tool only that one is offered.
    """

    path = "/api/chat"
    protocol = "Ollama's protocol"
    last_field = ("done", True)

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
        transport: chat.Transport | None = None,
    ) -> None:
        """`num_ctx` is how many tokens of conversation and answer fit, 4,096 on most machines for
        None. `think`: whether, or how hard, a model that can thinks first; None leaves that to it.
        `keep_alive` is how long Ollama keeps the model loaded after a request, "30m" or -1 for
        ever. `options` are further ones of Ollama's own, such as {"seed": 1}. `api_key` is for an
        Ollama behind a proxy that wants one. The rest is as for OpenAIChat. Raises
        BackendUnavailable.
        """
        super().__init__(
            JsonClient(
                base_url,
                json_lines=True,
                api_key=api_key,
                cures={
                    400: "Check the OPTIONS. A conversation too long for the model needs a larger"
                    " num_ctx or must be shortened; tools need a model that can call them.",
                    404: f"Run `ollama pull {model}` on Ollama's host, or correct base_url.",
                    429: "Ask less at once, or wait.",
                    503: "Ask less at once, or wait.",
                },
                unreachable="Check that `ollama serve` is running and that base_url is right.",
                late=chat.LATE_CURE,
                transport=transport,
            ),
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            send_temperature=send_temperature,
            timeout=timeout,
            attempts=attempts,
            context_tokens=num_ctx or DEFAULT_CONTEXT,
        )
        self._options = {**(options or {}), **chat.without_empty(num_ctx=num_ctx)}
        self._fields = chat.without_empty(think=think, keep_alive=keep_alive)

    def _payload(
        self, messages: Sequence[ChatMessage], options: ChatOptions, *, stream: bool
    ) -> dict[str, object]:
        chosen = chat.without_empty(
            num_predict=options["max_tokens"],
            temperature=options["temperature"],
            top_p=options["top_p"],
            stop=list(options["stop"]),
        )
        named = [tool for tool in options["tools"] if tool["name"] == options["tool_choice"]]
        tools = [] if options["tool_choice"] == "none" else named or options["tools"]
        offered_tools = [{"type": "function", "function": dict(tool)} for tool in tools]
        return {
            **self._fields,
            **chat.without_empty(tools=offered_tools),
            "model": self.model_name,
            "messages": request_messages(messages),
            "options": {**self._options, **chosen},
            "stream": stream,
            # By default Ollama silently truncates the beginning of a long conversation.
            "truncate": False,
            "shift": False,
        }

    @staticmethod
    def read(fields: Fields, answer: PartialAnswer) -> None:
        """A line of a stream, or a complete answer, which has the same fields."""
        message = fields.get("message")
        if not isinstance(message, dict):
            raise MalformedAnswer(
                "the answer holds no object `message`: is base_url that of Ollama, without a path?"
            )
        calls = message.get("tool_calls") or []
        if not isinstance(calls, list):
            raise MalformedAnswer(chat.NAMELESS_CALL)
        for call in calls:
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                raise MalformedAnswer(chat.NAMELESS_CALL)
            arguments = function.get("arguments") or {}
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments, ensure_ascii=False)
            # Each call comes whole, so that each is one of its own.
            answer.add_call(
                object(),
                id=text_field(call, "id"),
                name=function.get("name"),
                arguments=arguments,
            )
        if answer.is_complete or fields.get("done") is True:
            answer.has_ended = True
            answer.finish_reason = text_field(fields, "done_reason")
            # Ollama omits the count of a prompt that was fully cached.
            answer.count_usage(
                {"prompt_eval_count": 0, **fields}, "prompt_eval_count", "eval_count"
            )
        answer.add_reasoning(text_field(message, "thinking"))
        answer.add_text(text_field(message, "content"))
