"""What only Ollama is asked in its own way."""

import pytest

from inference.backends.chat_ollama import OllamaChat
from inference.interfaces import BackendUnavailable, ChatMessage, MalformedAnswer
from inference.tests.chatting import ASKED, completed, read, streamed
from inference.tests.stub_answers import ollama_line, ollama_stream
from inference.tests.stub_server import Endless, Reply, Stream

TOOLS = [{"name": name, "description": "", "parameters": {"type": "object"}} for name in "fg"]
EITHER_WAY = pytest.mark.parametrize("answered", [completed, streamed])


@pytest.fixture
def stub(stub):
    stub.always(
        lambda payload: (
            ollama_stream(ollama_line("Paris."), ollama_line(done="stop"))
            if payload["stream"]
            else Reply(ollama_line("Paris.", done="stop"))
        )
    )
    return stub


def chat(stub, **options):
    return OllamaChat("qwen3:4b", base_url=stub.url, **{"timeout": 5, **options})


def test_a_conversation_goes_there_and_is_not_to_be_cut_off(stub):
    chat(stub).complete([ChatMessage("system", "Be brief."), *ASKED])
    request = stub.requests[0]
    assert request.path == "/api/chat"
    assert request.json == {
        "model": "qwen3:4b",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": ASKED[0].content},
        ],
        "options": {},
        "stream": False,
        "truncate": False,
        "shift": False,
    }


@EITHER_WAY
def test_a_call_has_its_way_over_the_options(stub, answered):
    options = {"seed": 1, "num_predict": 7}
    model = chat(stub, temperature=0.7, num_ctx=8192, options=options, think=False, keep_alive=-1)
    answered(model)
    answered(model, max_tokens=5, temperature=0.0, top_p=0.5, stop=["\n"])
    first, second = (each.json for each in stub.requests)
    assert first["options"] == {**options, "num_ctx": 8192, "temperature": 0.7}
    assert second["options"] == {
        "seed": 1,
        "num_ctx": 8192,
        "num_predict": 5,
        "temperature": 0.0,
        "top_p": 0.5,
        "stop": ["\n"],
    }
    assert (first["think"], first["keep_alive"]) == (False, -1)


@pytest.mark.parametrize(
    ("choice", "offered"),
    [(None, ["f", "g"]), ("auto", ["f", "g"]), ("required", ["f", "g"]), ("g", ["g"])],
)
@EITHER_WAY
def test_tools_are_offered_and_only_the_one_that_must_be_called(stub, answered, choice, offered):
    answered(chat(stub), tools=TOOLS, tool_choice=choice)
    tools = stub.requests[0].json["tools"]
    assert [tool["type"] for tool in tools] == ["function"] * len(offered)
    assert [tool["function"]["name"] for tool in tools] == offered


def test_no_tool_is_offered_where_none_may_be_called(stub):
    chat(stub).complete(ASKED, tools=TOOLS, tool_choice="none")
    assert "tools" not in stub.requests[0].json


def test_a_call_with_arguments_that_look_like_the_end_is_not_the_end(stub):
    call = {"function": {"name": "f", "arguments": {"done": True}}}
    lines = [ollama_line("Well."), ollama_line(tool_calls=[call]), ollama_line(done="stop")]
    stub.first(ollama_stream(*lines))
    pieces, whole = read(chat(stub).stream(ASKED, tools=TOOLS))
    assert pieces == ["Well."]
    assert [call.arguments for call in whole.tool_calls] == ['{"done": true}']


@EITHER_WAY
def test_a_model_that_is_not_pulled_is_said_to_be(stub, answered):
    stub.first(Reply({"error": "model 'qwen3:4b' not found"}, 404))
    with pytest.raises(BackendUnavailable, match=r"not found.*Run `ollama pull qwen3:4b`"):
        answered(chat(stub))
    assert len(stub.requests) == 1


@EITHER_WAY
def test_a_conversation_too_long_for_the_window_is_said_to_be(stub, answered):
    said = "the prompt length exceeds the context length"
    stub.first(Reply({"error": said}, 400))
    with pytest.raises(BackendUnavailable, match=r"exceeds the context length.*num_ctx"):
        answered(chat(stub))


def test_an_ollama_that_does_not_run_is_said_not_to():
    with pytest.raises(BackendUnavailable, match="`ollama serve` is running"):
        OllamaChat("m", base_url="http://127.0.0.1:9", timeout=1, attempts=1).complete(ASKED)


def test_a_key_for_a_proxy_goes_along(stub):
    chat(stub, api_key="sk-1").complete(ASKED)
    assert stub.requests[0].headers["authorization"] == "Bearer sk-1"


def test_blank_lines_are_passed_over_and_the_last_one_needs_no_end(stub):
    line = b'{"message": {"content": "Yes."}, "done": true}'
    stub.first(Stream(b"\r\n\n", line, kind="application/json; charset=utf-8"))
    assert streamed(chat(stub)).content == "Yes."


class EndlessLine(Endless):
    def send(self, handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n")
        while not handler.stub.over.is_set():
            handler.wfile.write(b"[" * 4096)


def test_a_line_without_end_is_not_read_to_it(stub):
    stub.first(EndlessLine())
    with pytest.raises(MalformedAnswer, match="a line of more than 1,048,576 bytes"):
        streamed(chat(stub))
