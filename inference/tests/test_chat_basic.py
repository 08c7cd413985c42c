"""A site without a chat model, and how it is known for one."""

import pytest
from django.test import override_settings

from inference.interfaces import BackendUnavailable, ChatMessage, InferenceError
from inference.model_registry import chats, has_chat

NONE = {"BACKEND": "inference.backends.chat_basic.NoChat"}
SOME = {
    "BACKEND": "inference.backends.chat_openai.OpenAIChat",
    "OPTIONS": {"model": "m", "base_url": "http://127.0.0.1:9", "api_key": ""},
}
BROKEN = {"BACKEND": "inference.backends.chat_openai.OpenAIChat", "OPTIONS": {}}
ASKED = [ChatMessage("user", "Hello?")]


def configured(**aliases):
    return override_settings(INFERENCE={"chat": aliases})


def test_a_site_that_nobody_configured_has_none():
    assert not has_chat()


def test_asking_none_tells_how_to_get_one():
    with configured(default=NONE):
        with pytest.raises(BackendUnavailable, match="set CHAT_BACKEND"):
            chats["default"].complete(ASKED)
        with pytest.raises(BackendUnavailable, match="set CHAT_BACKEND"):
            list(chats["default"].stream(ASKED))


def test_there_is_one_where_one_is_configured():
    with configured(default=NONE, small=SOME):
        assert not has_chat()
        assert has_chat("small")
    with configured():
        assert not has_chat()


def test_one_that_cannot_be_made_is_an_error_and_not_none():
    with configured(default=BROKEN), pytest.raises(BackendUnavailable, match="cannot be made"):
        has_chat()
    with configured(default=NONE), pytest.raises(InferenceError, match="no chat is called 'big'"):
        has_chat("big")
