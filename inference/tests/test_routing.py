"""Which chat model a name means, and which names there are."""

import pytest
from django.test import override_settings

from common.errors import RagsiteError
from inference import chat_models as inference_chat_models
from inference.backends.chat_anthropic import AnthropicChat
from inference.backends.chat_ollama import OllamaChat
from inference.backends.chat_openai import OpenAIChat
from inference.chat_models import PROVIDERS, ModelName, UnknownModel, chat_model, chat_models
from inference.checks import check_chat_names
from inference.interfaces import BackendUnavailable, ChatMessage, InferenceError
from inference.tests.stub_server import chat_reply, stub_server

NONE = {"BACKEND": "inference.backends.chat_basic.NoChat"}
OPENAI = "inference.backends.chat_openai.OpenAIChat"
BIG = {"BACKEND": OPENAI, "OPTIONS": {"model": "qwen3-32b", "base_url": "http://a", "api_key": ""}}
SMALL = {"BACKEND": OPENAI, "OPTIONS": {"model": "qwen3-4b", "base_url": "http://a", "api_key": ""}}
BROKEN = {"BACKEND": OPENAI, "OPTIONS": {}}
EXTRACTIVE = ModelName("extractive", "ragsite", is_default=True)


def configured(*, names=(), ollama="", **aliases):
    return override_settings(
        INFERENCE={"chat": aliases}, CHAT_MODELS=list(names), OLLAMA_URL=ollama
    )


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    """Both; what is built with them is forgotten afterwards."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-2")
    with override_settings(OPENAI_URL="", ANTHROPIC_URL=""):
        inference_chat_models._build_routed.cache_clear()
        yield
    inference_chat_models._build_routed.cache_clear()


@pytest.fixture
def no_keys(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("ANTHROPIC_API_KEY", " ")


@pytest.mark.parametrize("name", ["", "default", "extractive"])
@pytest.mark.parametrize("aliases", [{"default": NONE}, {}], ids=["none", "nothing"])
def test_a_site_without_a_chat_model_answers_by_quoting(name, aliases):
    with configured(**aliases):
        assert chat_model(name) is None


def test_a_site_with_one_still_answers_by_quoting_where_that_is_wished():
    with configured(default=BIG):
        assert chat_model("extractive") is None


@pytest.mark.parametrize("name", ["", "default", "qwen3-32b"])
def test_the_default_has_three_names(name):
    with configured(default=BIG, small=SMALL):
        assert chat_model(name).model_name == "qwen3-32b"


@pytest.mark.parametrize("name", ["small", "qwen3-4b"])
def test_an_alias_has_two(name):
    with configured(default=NONE, small=SMALL):
        assert chat_model(name).model_name == "qwen3-4b"


def test_an_alias_goes_before_a_model_and_a_model_before_a_maker():
    named = {"BACKEND": OPENAI, "OPTIONS": {**SMALL["OPTIONS"], "model": "gpt-5"}}
    with configured(default=named, **{"claude-x": BIG, "qwen3-4b": BIG, "b": SMALL}):
        assert chat_model("qwen3-4b").model_name == "qwen3-32b"
        assert chat_model("claude-x").model_name == "qwen3-32b"
        assert chat_model("gpt-5") is chat_model("")


@pytest.mark.parametrize(
    ("name", "kind", "called"),
    [
        ("claude-sonnet-5", AnthropicChat, "claude-sonnet-5"),
        ("gpt-5-mini", OpenAIChat, "gpt-5-mini"),
        ("chatgpt-4o-latest", OpenAIChat, "chatgpt-4o-latest"),
        ("o1-mini", OpenAIChat, "o1-mini"),
        ("o3", OpenAIChat, "o3"),
        ("o4-mini", OpenAIChat, "o4-mini"),
        ("ollama/hf.co/a/b:Q4", OllamaChat, "hf.co/a/b:Q4"),
    ],
)
def test_makers_are_known_by_how_the_names_of_their_models_begin(name, kind, called):
    with configured(ollama="http://localhost:1"):
        model = chat_model(name)
        assert isinstance(model, kind)
        assert model.model_name == called
        assert chat_model(name) is model


@pytest.mark.parametrize("name", ["llama-3", "orca", "o1mini", "my-gpt-4", "ollama", "Extractive"])
def test_other_names_are_unknown_and_the_error_tells_those_that_there_are(name):
    with configured(default=BIG, small=SMALL):
        with pytest.raises(UnknownModel) as unknown:
            chat_model(name)
        assert str(unknown.value) == (
            f"There is no chat model “{name}”. There are: qwen3-32b, extractive, small."
        )
    assert isinstance(unknown.value, RagsiteError)
    assert isinstance(unknown.value, InferenceError)


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("claude-1", "ANTHROPIC_API_KEY"),
        ("gpt-5", "OPENAI_API_KEY"),
        ("ollama/x", "RAGSITE_OLLAMA_URL"),
    ],
)
def test_a_maker_without_key_or_address_is_not_asked(name, needs, no_keys):
    with configured(), pytest.raises(UnknownModel, match=needs):
        chat_model(name)


def test_only_what_the_settings_allow_is_asked_where_they_say_anything():
    with configured(names=["gpt-5*", "claude-opus-5"], ollama="http://localhost:1", small=SMALL):
        assert chat_model("gpt-5-mini")
        assert chat_model("claude-opus-5")
        assert chat_model("small")
        for name in ("gpt-4", "claude-opus-5-1", "ollama/x", "xgpt-5"):
            with pytest.raises(UnknownModel):
                chat_model(name)
        with pytest.raises(UnknownModel, match="RAGSITE_CHAT_MODELS does not allow it"):
            chat_model("gpt-4")


def test_a_site_may_have_keys_and_allow_no_model_by_its_name():
    with configured(names=["none"]), pytest.raises(UnknownModel, match="does not allow it"):
        chat_model("gpt-5")


@pytest.mark.parametrize("name", ["gpt-" + "x" * 1000, "gpt-5\n", "gpt-\x00"])
def test_names_that_no_model_has_are_not_sent_anywhere(name):
    with configured(), pytest.raises(UnknownModel) as unknown:
        chat_model(name)
    assert len(str(unknown.value)) < 500


def test_made_up_names_do_not_fill_the_memory():
    with configured():
        for number in range(200):
            chat_model(f"gpt-{number}")
        assert (
            inference_chat_models._build_routed.cache_info().currsize
            == inference_chat_models.CACHED_MODELS
        )


def test_the_names_of_a_site_without_a_chat_model(no_keys):
    with configured(default=NONE):
        assert chat_models() == [EXTRACTIVE]


def test_the_names_of_a_site_with_several():
    names = ["gpt-5", "claude-*", "ollama/x", "gpt-5", "qwen"]
    with configured(names=names, default=BIG, small=SMALL, broken=BROKEN):
        assert chat_models() == [
            ModelName("qwen3-32b", "ragsite", is_default=True),
            ModelName("extractive", "ragsite", is_default=False),
            ModelName("small", "ragsite", is_default=False),
            ModelName("gpt-5", "openai", is_default=False),
        ]


def test_each_name_that_is_listed_can_be_asked_for_and_exactly_one_is_the_default():
    shadowed = {"qwen3-32b": SMALL}
    with configured(names=["gpt-5", "qwen3-32b"], default=BIG, **shadowed):
        listed = chat_models()
        assert [each.name for each in listed if each.is_default] == ["default"]
        for each in listed:
            assert (chat_model(each.name) is None) == (each.name == "extractive")
        assert len({each.name for each in listed}) == len(listed)


def test_a_broken_alias_is_an_error_only_for_who_asks_for_it():
    with configured(default=BIG, broken=BROKEN):
        assert chat_model("qwen3-32b")
        with pytest.raises(BackendUnavailable, match="cannot be made"):
            chat_model("broken")
        assert [each.name for each in chat_models()] == ["qwen3-32b", "extractive"]
    with configured(default=BROKEN):
        assert [(each.name, each.is_default) for each in chat_models()] == [("extractive", False)]
        with pytest.raises(BackendUnavailable, match="cannot be made"):
            chat_model()


def test_a_gateway_is_asked_instead_of_the_maker():
    with stub_server() as stub, configured(), override_settings(OPENAI_URL=stub.url):
        stub.always(lambda _: chat_reply("Hello."))
        assert chat_model("gpt-5").complete([ChatMessage("user", "Hi")]).content == "Hello."
    assert stub.requests[0].headers["authorization"] == "Bearer sk-1"


def found(**settings):
    with override_settings(**settings):
        return [(message.id, message.msg) for message in check_chat_names()]


def test_good_names_and_addresses_pass_the_checks():
    assert found(CHAT_MODELS=["gpt-5", "claude-*"]) == []
    assert found(CHAT_MODELS=["none"]) == []
    assert found(OLLAMA_URL="http://localhost:11434", CHAT_MODELS=["ollama/*"]) == []


def test_an_alias_called_extractive_is_e005():
    [(number, message)] = found(INFERENCE={"chat": {"extractive": BIG}})
    assert number == "inference.E005"
    assert "extractive" in message


@pytest.mark.parametrize("name", ["llama", "*", ""])
def test_a_name_of_no_maker_is_e006(name):
    assert [number for number, _ in found(CHAT_MODELS=[name])] == ["inference.E006"]


@pytest.mark.parametrize("address", ["localhost:11434", "ftp://x", "http://"])
def test_what_is_no_address_is_e007(address):
    [(number, message)] = found(OLLAMA_URL=address)
    assert number == "inference.E007"
    assert message.startswith("RAGSITE_OLLAMA_URL: ")


def test_a_model_whose_maker_is_not_configured_is_w001(no_keys):
    ids = [number for number, _ in found(CHAT_MODELS=["gpt-5", "claude-*", "ollama/x"])]
    assert ids == ["inference.W001"] * len(PROVIDERS)
