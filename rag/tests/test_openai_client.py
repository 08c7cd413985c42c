"""OpenAI's own client, and clients of ours, against a running site with stub models behind it."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import openai
import pytest
from openai import OpenAI

from inference.backends.chat_anthropic import AnthropicChat
from inference.backends.chat_openai import OpenAIChat
from inference.backends.hashing import HashingEmbedder
from inference.backends.openai_compatible import OpenAIEmbedder
from inference.backends.rerank_http import HttpReranker
from inference.interfaces import ChatMessage
from inference.tests.stub_server import (
    DIMENSIONS,
    Reply,
    Stream,
    StubServer,
    delta,
    event,
    ollama_reply,
    stub_server,
)
from memory.scopes import user_scope
from memory.services import set_fact
from rag.models import Conversation, Pipeline
from rag.tests.conftest import ROOT, SiteProcess, commit
from rag.tests.mcp_world import VACATION, World, secret_of

pytestmark = pytest.mark.django_db

QUESTION = "How many days of unused vacation may employees carry over?"
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def said_last(payload: Any) -> str:
    return str(payload["messages"][-1]["content"])


def answered(payload: Any) -> Any:
    """A model that calls a tool when it has one, cites the first source when it has any, and else
    says how much it was told."""
    if "query" in payload:
        scores = [float(len(text)) / 1000 for text in payload["documents"]]
        results = [{"index": at, "relevance_score": score} for at, score in enumerate(scores)]
        return Reply({"results": results})
    text = said_last(payload)
    if payload.get("tools") and payload["messages"][-1]["role"] == "user":
        call = {"index": 0, "id": "call_1", "function": {"name": "get_weather", "arguments": ""}}
        more = {"index": 0, "function": {"arguments": '{"city": "Kiel"}'}}
        deltas = [delta(tool_calls=[call]), delta(tool_calls=[more]), delta(finish="tool_calls")]
        return Stream(*map(event, [*deltas, "[DONE]"]))
    if "break off" in text:
        return Stream(event(delta("Half an ")), after="cut")
    pieces = ["Ten days", " [1]", "."] if "[1]" in text else ["I read ", str(len(text)), "."]
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    return Stream(*map(event, [*map(delta, pieces), delta(finish="stop"), usage, "[DONE]"]))


@pytest.fixture(scope="module")
def model_server() -> Iterator[StubServer]:
    with stub_server() as server:
        yield server


@pytest.fixture
def stub(model_server: StubServer) -> StubServer:
    """The server behind the site's model “stub”."""
    model_server.requests.clear()
    model_server.always(answered)
    return model_server


@pytest.fixture(scope="module")
def site(
    site_environment: dict[str, str],
    model_server: StubServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SiteProcess]:
    """Its default is to quote; “stub” and “down” are to be named."""

    def chat(url: str) -> dict[str, Any]:
        options = {"model": "any", "base_url": url, "api_key": "", "attempts": 1}
        return {"BACKEND": "inference.backends.chat_openai.OpenAIChat", "OPTIONS": options}

    reranker = {
        "BACKEND": "inference.backends.rerank_http.HttpReranker",
        "OPTIONS": {"model": "any", "base_url": model_server.url},
    }
    environment = {
        **site_environment,
        "CHATS": json.dumps({"stub": chat(model_server.url), "down": chat("http://127.0.0.1:9")}),
        "RERANKERS": json.dumps({"by-length": reranker}),
    }
    process = SiteProcess(environment, tmp_path_factory.mktemp("site") / "log")
    process.start()
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture
def client(site: SiteProcess, secret: str) -> Iterator[OpenAI]:
    with client_with(site, secret) as made:
        yield made


def client_with(site: SiteProcess, secret: str) -> OpenAI:
    return OpenAI(base_url=f"{site.url}/v1", api_key=secret, max_retries=0, timeout=60)


def ask(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


# --- models ---------------------------------------------------------------------------------------


def test_models_are_listed_by_what_they_do(client: OpenAI) -> None:
    listed = {model.id: model for model in client.models.list()}

    kinds = {id: model.kind for id, model in listed.items()}  # type: ignore[attr-defined]
    assert kinds["extractive"] == kinds["stub"] == "chat"
    assert kinds["pipeline/rag"] == "pipeline"
    assert kinds["hashing-384"] == "embedding"
    assert kinds["by-length"] == kinds["embedding-similarity"] == "rerank"
    for id, model in listed.items():
        assert client.models.retrieve(id) == model
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("gpt-99")
    assert missing.value.code == "model_not_found"


# --- embeddings -----------------------------------------------------------------------------------


def test_embedders_are_found_by_their_makers_names(
    site_environment: dict[str, str], secret: str, tmp_path: Path
) -> None:
    with stub_server() as openai_stub, stub_server() as ollama_stub:
        vector = {"index": 0, "embedding": [1.0] * 1536}
        openai_stub.always(lambda payload: Reply({"data": [vector]}))
        ollama_stub.always(ollama_reply)
        environment = {
            **site_environment,
            "OPENAI_API_KEY": "sk-1",
            "OPENAI_BASE_URL": openai_stub.url,
            "RAGSITE_OLLAMA_URL": ollama_stub.url,
        }
        site = SiteProcess(environment, tmp_path / "log")
        site.start()
        try:
            with client_with(site, secret) as client:
                small = client.embeddings.create(model="text-embedding-3-small", input="a")
                measured = client.embeddings.create(model="ollama/house-model", input="a")
                own = client.embeddings.create(model="hashing-384", input="a")
        finally:
            site.stop()
    assert (small.model, len(small.data[0].embedding)) == ("text-embedding-3-small", 1536)
    assert openai_stub.requests[0].json["model"] == "text-embedding-3-small"
    assert openai_stub.requests[0].headers["authorization"] == "Bearer sk-1"
    assert len(measured.data[0].embedding) == DIMENSIONS
    assert {request.json["model"] for request in ollama_stub.requests} == {"house-model"}
    assert own.model == "hashing-384"
    assert len(openai_stub.requests) == 1


@pytest.mark.parametrize("form", [None, "float", "base64"])
def test_embeddings_are_those_of_the_embedder(client: OpenAI, form: Any) -> None:
    texts = ["Lost key cards", "Opening hours", VACATION]
    how = {} if form is None else {"encoding_format": form}

    answer = client.embeddings.create(model="hashing-384", input=texts, **how)

    vectors = [each.embedding for each in answer.data]
    if form == "base64":  # asked for by name, it is handed on as it came
        from base64 import b64decode

        vectors = [np.frombuffer(b64decode(each), "<f4") for each in vectors]  # type: ignore[arg-type]
    expected = HashingEmbedder().embed_documents(texts)
    np.testing.assert_array_equal(np.array(vectors, dtype=np.float32), expected)
    assert [each.index for each in answer.data] == [0, 1, 2]
    assert answer.model == "hashing-384"
    counter = HashingEmbedder().token_counter()
    counts = [each.tokens for each in answer.data]  # type: ignore[attr-defined]
    assert counts == [counter.count(text) for text in texts]
    assert answer.usage.prompt_tokens == sum(counts) > 0


def test_one_text_and_a_query_and_a_long_text_are_embedded(client: OpenAI) -> None:
    long = "Paragraphs tell of the archive. " * 1000
    assert len(long) > 30_000
    for text, how in ((VACATION, {}), (long, {}), (QUESTION, {"input_type": "query"})):
        answer = client.embeddings.create(model="default", input=text, extra_body=how)
        (row,) = answer.data
        assert np.allclose(row.embedding, HashingEmbedder().embed_documents([text])[0])


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"input": [1, 2, 3]}, "input"),
        ({"input": [[1, 2], [3]]}, "input"),
        ({"input": ""}, "input"),
        ({"input": ["good", "  "]}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": ["a b " * 8_000] * 40}, "input"),
        ({"input": "a b " * 8_193}, "input"),
        ({"input": "a", "dimensions": 64}, "dimensions"),
        ({"input": "a", "dimensions": 4096}, "dimensions"),
    ],
)
def test_what_cannot_be_embedded_is_a_bad_request(
    client: OpenAI, asked: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.embeddings.create(model="hashing-384", **asked)
    assert refused.value.param == param
    assert refused.value.type == "invalid_request_error"


# --- chats with a model as it is ------------------------------------------------------------------


def test_a_chat_goes_to_the_model_with_everything_that_was_asked(
    client: OpenAI, stub: StubServer
) -> None:
    answer = client.chat.completions.create(
        model="stub",
        messages=[
            {"role": "developer", "content": "Be short."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Good"}, {"type": "text", "text": "day"}],
            },
        ],
        temperature=0.5,
        top_p=0.9,
        max_completion_tokens=50,
        stop=["END"],
        user="somebody",
        seed=7,
        logit_bias={"5": 1},
        metadata={"any": "thing"},
    )

    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason) == ("I read 8.", "stop")
    assert choice.message.role == "assistant"
    assert "citations" not in choice.message.model_extra
    assert (answer.object, answer.model) == ("chat.completion", "any")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (7, 10)
    sent = stub.requests[-1].json
    assert [each["role"] for each in sent["messages"]] == ["system", "user", "assistant", "user"]
    assert said_last(sent) == "Good\nday"
    assert (sent["temperature"], sent["top_p"], sent["stop"]) == (0.5, 0.9, ["END"])
    assert sent["max_tokens"] == 50


def test_a_stream_tells_role_pieces_reason_and_usage(client: OpenAI, stub: StubServer) -> None:
    chunks = list(
        client.chat.completions.create(
            model="stub",
            messages=ask("Hello"),
            stream=True,
            stream_options={"include_usage": True},
        )
    )

    *told, last = chunks
    assert "".join(each.choices[0].delta.content or "" for each in told) == "I read 5."
    assert told[0].choices[0].delta.role == "assistant"
    assert [each.choices[0].finish_reason for each in told] == [None] * (len(told) - 1) + ["stop"]
    assert (last.choices, last.usage.total_tokens) == ([], 10)  # type: ignore[union-attr]
    assert len({each.id for each in chunks}) == 1
    without = client.chat.completions.create(model="stub", messages=ask("Hello"), stream=True)
    assert all(each.usage is None and each.choices for each in without)


@pytest.mark.parametrize("streamed", [False, True])
def test_tools_are_called_and_their_answers_read(
    client: OpenAI, stub: StubServer, streamed: bool
) -> None:
    messages = ask("How is the weather in Kiel?")
    asked: Any = {"model": "stub", "tools": [WEATHER], "tool_choice": "auto"}
    if streamed:
        with client.chat.completions.stream(messages=messages, **asked) as events:
            answer: Any = events.get_final_completion()
    else:
        answer = client.chat.completions.create(messages=messages, **asked)

    (choice,) = answer.choices
    (call,) = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls"
    assert (call.id, call.function.name) == ("call_1", "get_weather")
    assert json.loads(call.function.arguments) == {"city": "Kiel"}
    assert stub.requests[-1].json["tools"][0]["function"]["name"] == "get_weather"

    messages.append(
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
            ],
        }
    )
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "Rain."})
    told = client.chat.completions.create(messages=messages, **asked)
    assert told.choices[0].message.content == "I read 5."
    sent = stub.requests[-1].json["messages"]
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == "call_1"


def test_a_tool_may_be_demanded_by_name(client: OpenAI, stub: StubServer) -> None:
    choice: Any = {"type": "function", "function": {"name": "get_weather"}}
    client.chat.completions.create(
        model="stub",
        messages=ask("Kiel"),
        tools=[WEATHER],
        tool_choice=choice,  # type: ignore[list-item]
    )
    assert stub.requests[-1].json["tool_choice"]["function"]["name"] == "get_weather"


def test_a_hundred_kilobytes_reach_the_model(client: OpenAI, stub: StubServer) -> None:
    answer = client.chat.completions.create(model="stub", messages=ask("ä" * 100_000))
    assert answer.choices[0].message.content == "I read 100000."


# --- answers out of documents ---------------------------------------------------------------------


def assert_cited(citations: Any, world: World) -> None:
    (cited, *_) = citations
    assert (cited["number"], cited["collection"]) == (1, "handbook")
    assert cited["document_key"] == "vacation.md"
    assert VACATION[cited["start"] : cited["end"]] == cited["quote"]
    assert "ten days" in cited["quote"]


@pytest.mark.parametrize("how", [{"model": "extractive"}, {"model": ""}, {"model": "default"}])
def test_without_a_model_documents_are_quoted(
    client: OpenAI, world: World, how: dict[str, str]
) -> None:
    answer = client.chat.completions.create(messages=ask(QUESTION), **how)

    message: Any = answer.choices[0].message
    assert "ten days" in message.content
    assert "[1]" in message.content
    assert_cited(message.citations, world)
    assert (answer.model, answer.ragsite["generator"]) == ("extractive", "extractive")  # type: ignore[attr-defined]
    assert not commit(Conversation.objects.exists)


def test_a_model_is_shown_the_collections_and_cites_them(
    client: OpenAI, world: World, stub: StubServer
) -> None:
    asked: Any = {"model": "stub", "extra_body": {"collections": ["handbook"]}}
    messages: Any = [{"role": "system", "content": "Answer as a pirate."}, *ask(QUESTION)]

    whole: Any = client.chat.completions.create(messages=messages, **asked)
    chunks: Any = list(client.chat.completions.create(messages=messages, stream=True, **asked))

    assert whole.choices[0].message.content == "Ten days [1]."
    assert_cited(whole.choices[0].message.citations, world)
    assert whole.choices[0].message.citations[0]["at"] == len("Ten days ")
    assert "".join(each.choices[0].delta.content or "" for each in chunks) == "Ten days [1]."
    assert_cited(chunks[-1].choices[0].delta.citations, world)
    sent = stub.requests[-1].json["messages"]
    assert VACATION in said_last({"messages": sent}) or any(VACATION in m["content"] for m in sent)
    assert any("Answer as a pirate." in each["content"] for each in sent)


def test_what_documents_do_not_hold_is_refused(client: OpenAI, world: World) -> None:
    answer: Any = client.chat.completions.create(
        model="extractive",
        messages=ask("Which enzyme folds the ribosome of archaea?"),
        extra_body={"ragsite": {"collections": ["handbook"]}},
    )
    assert answer.ragsite["verdict"]["refused"]
    assert answer.ragsite["verdict"]["confidence"] == "none"
    assert answer.choices[0].message.citations == []
    assert answer.choices[0].finish_reason == "stop"


def test_memory_is_put_before_the_model_when_it_is_asked_for(
    site: SiteProcess, world: World, stub: StubServer
) -> None:
    bob = secret_of(world.bob)
    with client_with(site, bob) as client:
        asked: Any = {"model": "stub", "extra_body": {"ragsite": {"memory": True}}}
        client.chat.completions.create(messages=ask("My sister Clara plays the cello."), **asked)
        answer: Any = client.chat.completions.create(
            messages=ask("Which instrument does my sister Clara play?"), **asked
        )
        assert "cello" in said_last(stub.requests[-1].json)
        assert "cello" in str(answer.ragsite["memory"])
        client.chat.completions.create(
            model="stub", messages=ask("Which instrument does my sister Clara play?")
        )
        assert "cello" not in said_last(stub.requests[-1].json)


def test_the_user_of_a_request_is_whose_memory_is_used(site: SiteProcess, world: World) -> None:
    with client_with(site, secret_of(world.alice)) as client:
        asked: Any = {"model": "extractive", "messages": ask("In which city do I live?")}

        def told(user: str) -> str:
            return str(
                client.chat.completions.create(user=user, **asked).choices[0].message.content
            )

        for user, city in (("dora", "Oslo"), ("emil", "Lima")):
            scope = user_scope(workspace=world.alice.workspace, user_id=user)
            commit(partial(set_fact, scope=scope, key="city", value=city))
        assert "> city: Oslo" in told("dora")
        assert "> city: Lima" in told("emil")
        assert "city:" not in told("nobody-known")
    with client_with(site, secret_of(world.bob)) as member:
        # A label for whom may not edit, as any client of OpenAI's may send it.
        content = member.chat.completions.create(user="dora", **asked).choices[0].message.content
        assert "Oslo" not in str(content)
        with pytest.raises(openai.PermissionDeniedError):
            member.chat.completions.create(
                user="dora", extra_body={"ragsite": {"memory": True}}, **asked
            )


def test_a_key_without_the_scopes_gets_neither_memory_nor_documents(
    site: SiteProcess, world: World, stub: StubServer
) -> None:
    with client_with(site, secret_of(world.alice, "chat")) as client:
        assert client.chat.completions.create(model="stub", messages=ask("Hello"))
        for extra in ({"collections": ["handbook"]}, {"ragsite": {"memory": True}}):
            with pytest.raises(openai.PermissionDeniedError) as refused:
                client.chat.completions.create(
                    model="stub", messages=ask("Hello"), extra_body=extra
                )
            assert refused.value.code == "insufficient_scope"


# --- pipelines ------------------------------------------------------------------------------------


SPEAK = {
    "id": "speak",
    "name": "Speak",
    "nodes": [{"id": "speaker", "type": "llm", "prompt": "Speak.", "model": {"name": "stub"}}],
    "edges": [],
    "entry_node": "speaker",
}


@pytest.mark.parametrize("how", [{"model": "pipeline/speak"}, {"ragsite": {"pipeline": "speak"}}])
def test_a_pipeline_is_a_model(
    client: OpenAI, speaking: None, stub: StubServer, how: dict[str, Any]
) -> None:
    asked = {"model": how.get("model", ""), "messages": ask("Hello"), "extra_body": how}
    whole: Any = client.chat.completions.create(**asked)
    chunks = list(client.chat.completions.create(stream=True, **asked))

    assert whole.choices[0].message.content.startswith("I read ")
    assert whole.model == "pipeline/speak"
    assert whole.ragsite["pipeline"] == "speak"
    said = "".join(each.choices[0].delta.content or "" for each in chunks)
    assert said == whole.choices[0].message.content
    assert "Speak." in str(stub.requests[-1].json["messages"])


@pytest.fixture(scope="module")
def speaking(world: World) -> None:
    """Alice's workspace has a pipeline of its own."""
    Pipeline.objects.create(
        workspace=world.alice.workspace, slug="speak", name="Speak", definition=SPEAK
    )


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["rs_" + "x" * 43, "sk-somebody"])
def test_a_wrong_key_is_an_authentication_error(site: SiteProcess, wrong: str) -> None:
    with client_with(site, wrong) as client, pytest.raises(openai.AuthenticationError) as refused:
        client.models.list()
    assert refused.value.code == "invalid_api_key"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("documents", [False, True])
def test_a_model_that_is_down_is_an_error_before_any_word(
    client: OpenAI, world: World, streamed: bool, documents: bool
) -> None:
    extra = {"collections": ["handbook"]} if documents else {}
    with pytest.raises(openai.InternalServerError) as failed:
        client.chat.completions.create(
            model="down", messages=ask(QUESTION), stream=streamed, extra_body=extra
        )
    assert failed.value.status_code == 503
    assert failed.value.code == "model_unavailable"


def test_an_answer_that_breaks_off_raises_behind_its_words(
    client: OpenAI, stub: StubServer
) -> None:
    stream = client.chat.completions.create(
        model="stub", messages=ask("Please break off"), stream=True
    )
    said: list[str] = []
    with pytest.raises(openai.APIError) as broken:
        said.extend(chunk.choices[0].delta.content or "" for chunk in stream)
    assert "".join(said) == "Half an "
    assert broken.value.code == "model_unavailable"
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model="stub", messages=ask("Please break off"))


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "judge", "content": "x"}]}, "messages.0"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages.0.content.0",
        ),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.tool_call_id"),
        ({"n": 2}, "n"),
        ({"stop": [1]}, "stop"),
        ({"tools": [{"type": "function"}]}, "tools.0"),
        ({"tools": [WEATHER], "tool_choice": "sometimes"}, "tool_choice"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"model": "extractive", "tools": [WEATHER]}, "tools"),
        ({"model": "extractive", "messages": [{"role": "system", "content": "x"}]}, "messages"),
        ({"collections": ["not a slug"]}, "collections.0"),
        ({"ragsite": {"collection": ["handbook"]}}, "ragsite.collection"),
        ({"ragsite": ["handbook"]}, "ragsite"),
        ({"ragsite": {"filter": "year>>1"}}, "ragsite.filter"),
        (
            {"model": "extractive", "messages": [{"role": "user", "content": "x" * 9_000}]},
            "messages",
        ),
    ],
)
def test_a_wrong_request_is_told_where(
    client: OpenAI, stub: StubServer, wrong: dict[str, Any], param: str
) -> None:
    body = {"model": "stub", "messages": ask("Hello"), **wrong}
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(
            model=body.pop("model"), messages=body.pop("messages"), extra_body=body
        )
    assert refused.value.param == param
    assert not stub.requests


def test_an_unknown_model_is_named_with_those_that_there_are(
    client: OpenAI, speaking: None
) -> None:
    for model, there in (("gpt-99", "extractive"), ("pipeline/none", "pipeline/speak")):
        with pytest.raises(openai.NotFoundError) as missing:
            client.chat.completions.create(model=model, messages=ask("Hello"))
        assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
        assert there in missing.value.message
    with pytest.raises(openai.NotFoundError) as missing:
        client.embeddings.create(model="text-embedding-3-small", input="a")
    assert "hashing-384" in missing.value.message


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/models/", "/v2/models", "/v1/files"])
def test_other_addresses_answer_in_the_same_shape(site: SiteProcess, path: str) -> None:
    with pytest.raises(HTTPError) as missing:
        urlopen(f"{site.url}{path}", timeout=30)
    assert missing.value.code in (401, 404)
    assert json.load(missing.value)["error"]["message"]


# --- rerankers, and another site as the client ----------------------------------------------------


def rerank(site: SiteProcess, secret: str, version: str = "v1", **asked: Any) -> Any:
    request = Request(
        f"{site.url}/{version}/rerank",
        json.dumps(asked).encode(),
        {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"},
    )
    with urlopen(request, timeout=30) as answer:
        return json.load(answer)


DOCUMENTS = ["The archive opens at eight.", {"text": VACATION}, ""]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_documents_are_reranked_by_a_model_that_is_named(
    site: SiteProcess, secret: str, stub: StubServer, version: str
) -> None:
    asked = {"model": "by-length", "query": QUESTION, "documents": DOCUMENTS}

    answer = rerank(site, secret, version, **asked, top_n=2, return_documents=True)

    best, second = answer["results"]
    assert (answer["model"], best["index"], second["index"]) == ("by-length", 1, 0)
    assert best["document"] == {"text": VACATION}
    assert best["relevance_score"] == pytest.approx(len(VACATION) / 1000)
    assert answer["meta"]["api_version"]["version"] == version[1]


def test_without_a_reranker_likeness_of_vectors_decides_and_says_so(
    site: SiteProcess, secret: str
) -> None:
    answer = rerank(site, secret, query=QUESTION, documents=DOCUMENTS)

    assert answer["model"] == "embedding-similarity"
    assert [each["index"] for each in answer["results"]] == [1, 0, 2]
    embedder = HashingEmbedder()
    cosine = float(embedder.embed_documents([VACATION])[0] @ embedder.embed_query(QUESTION))
    assert answer["results"][0]["relevance_score"] == pytest.approx(cosine, abs=1e-6)
    assert answer["results"][2]["relevance_score"] == 0.0
    assert "document" not in answer["results"][0]


@pytest.mark.parametrize(
    ("wrong", "status", "param"),
    [
        ({"model": "rerank-english-v3.0"}, 404, "model"),
        ({"documents": [{"title": "no text"}]}, 400, "documents"),
        ({"query": " "}, 400, "query"),
    ],
)
def test_a_wrong_wish_to_rerank_is_told_where(
    site: SiteProcess, secret: str, wrong: dict[str, Any], status: int, param: str
) -> None:
    with pytest.raises(HTTPError) as refused:
        rerank(site, secret, **{"query": "a", "documents": ["b"], **wrong})
    assert refused.value.code == status
    assert json.load(refused.value)["error"]["param"] == param


def test_another_site_of_ours_can_use_all_of_it(
    site: SiteProcess, secret: str, stub: StubServer
) -> None:
    url = {"base_url": site.url, "api_key": secret}
    embedder = OpenAIEmbedder("hashing-384", dimensions=384, send_dimensions=False, **url)
    reranker = HttpReranker("embedding-similarity", **url, logits=False)
    chat = OpenAIChat("stub", **url)

    vectors = embedder.embed_documents(["a b", "c"])
    assert np.allclose(vectors, HashingEmbedder().embed_documents(["a b", "c"]))
    scores = reranker.score(QUESTION, ["The archive opens at eight.", VACATION])
    assert scores[1] > scores[0]
    for model in (chat, AnthropicChat("stub", **url)):
        answer = model.complete([ChatMessage("user", "Hello")])
        assert (answer.content, answer.usage and answer.usage.output_tokens) == ("I read 5.", 3)
        assert "".join(map(str, model.stream([ChatMessage("user", "Hello")]))) == "I read 5."


def test_the_examples_of_the_how_to_work(
    site: SiteProcess,
    speaking: None,
    secret: str,
    stub: StubServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (ROOT / "docs" / "how-to" / "call-with-the-openai-client.md").read_text()
    found = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    blocks = [block for block in found if "import Anthropic" not in block]
    assert (len(found), len(blocks)) == (7, 6)
    code = "\n".join(blocks)
    for shown, here in {
        "http://127.0.0.1:8000": site.url,
        "rs_…": secret,
        "my-model": "stub",
        "pipeline/rag": "pipeline/speak",
    }.items():
        assert shown in code
        code = code.replace(shown, here)
    exec(code, {})
    told = capsys.readouterr().out
    for part in ("extractive chat", "ten days", "#passage", "Ten days [1].", "2 384"):
        assert part in told, part
    assert 'get_weather {"city": "Kiel"}' in told
