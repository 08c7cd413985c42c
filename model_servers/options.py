"""What a connection is made of, declared once for page, API and command; and the servers that
people have."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

from common.options import RARE, Options
from common.translation import gettext, gettext_noop
from inference.interfaces import BackendUnavailable
from inference.remote.client import checked_key, checked_url

#: Tokens that Ollama makes room for, whose own default of 4,096 is too few for passages and answer.
OLLAMA_CONTEXT_TOKENS = 8192


def _server_address(text: str) -> str:
    try:
        url = checked_url(text if "://" in text else f"http://{text}")
    except BackendUnavailable as error:
        raise PydanticCustomError(
            "address",
            "{reason}",
            {
                "reason": gettext(
                    "Enter an address such as http://localhost:11434, without a query."
                )
            },
        ) from error
    if url.userinfo:
        raise PydanticCustomError(
            "address",
            "{reason}",
            {"reason": gettext("Leave the login out of the address, and enter it as the key.")},
        )
    return str(url).rstrip("/")


def _key(key: SecretStr) -> SecretStr:
    try:
        checked_key(key.get_secret_value().strip())
    except BackendUnavailable as error:
        raise PydanticCustomError(
            "key",
            "{reason}",
            {"reason": gettext("Keys have no blanks or line breaks. Copy it again.")},
        ) from error
    return SecretStr(key.get_secret_value().strip())


Purpose = Literal["chat", "embedder", "reranker"]
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
Kind = Literal["ollama", "openai", "anthropic"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class ConnectionOptions(Options):
    """A connection to a model."""

    purpose: Purpose = Field(
        default="chat",
        title=gettext_noop("What for"),
        description=gettext_noop(
            "Answers are written by a language model; an embedder finds passages by their meaning,"
            " and a reranker reads the best of them again."
        ),
    )
    kind: Kind = Field(
        title=gettext_noop("Kind of server"),
        description=gettext_noop("The protocol that the server speaks."),
    )
    address: Annotated[str, Field(max_length=500), AfterValidator(_server_address)] = Field(
        title=gettext_noop("Address"),
        description=gettext_noop("Such as http://localhost:11434."),
    )
    key: Annotated[SecretStr, AfterValidator(_key)] | None = Field(
        default=None,
        title=gettext_noop("Key"),
        description=gettext_noop(
            "Only for servers that want one. It is stored encrypted and never shown."
        ),
    )
    model: str = Field(
        min_length=1,
        max_length=200,
        title=gettext_noop("Model"),
        description=gettext_noop("As the server calls it."),
    )
    name: str = Field(
        default="",
        max_length=200,
        title=gettext_noop("Name"),
        description=gettext_noop("By which people choose it. Empty: the model's."),
        json_schema_extra=RARE,
    )
    dimensions: int | None = Field(
        default=None,
        ge=1,
        le=64_000,
        title=gettext_noop("Dimensions"),
        description=gettext_noop(
            "Of an embedder: the length of its vectors. Empty: as they are when it is tried."
        ),
        json_schema_extra=RARE,
    )
    context_tokens: int | None = Field(
        default=None,
        ge=512,
        le=1_048_576,
        title=gettext_noop("Context in tokens"),
        description=gettext_noop(
            "How much Ollama makes room for; more takes more memory. Empty: 8,192."
        ),
        json_schema_extra=RARE,
    )
    input_price: float | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        title=gettext_noop("Price of tokens read"),
        description=gettext_noop("Of a million, in the site's currency. Empty: no costs."),
        json_schema_extra=RARE,
    )
    output_price: float | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        title=gettext_noop("Price of tokens written"),
        description=gettext_noop("Of a million, in the site's currency. Empty: no costs."),
        json_schema_extra=RARE,
    )


@dataclass(frozen=True, slots=True)
class Preset:
    """A server that people know by name. `is_local`: it usually runs on a machine of their own."""

    label: str
    kind: str
    address: str
    is_local: bool = False


PRESETS: Mapping[str, Preset] = {
    "ollama": Preset("Ollama", "ollama", "http://localhost:11434", is_local=True),
    "lm-studio": Preset("LM Studio", "openai", "http://localhost:1234/v1", is_local=True),
    "llama-cpp": Preset("llama.cpp", "openai", "http://localhost:8080/v1", is_local=True),
    "vllm": Preset("vLLM", "openai", "http://localhost:8000/v1", is_local=True),
    "openai": Preset("OpenAI", "openai", "https://api.openai.com/v1"),
    "anthropic": Preset("Anthropic", "anthropic", "https://api.anthropic.com"),
    "azure": Preset("Azure", "openai", "https://NAME.openai.azure.com/openai/v1"),
    "openrouter": Preset("OpenRouter", "openai", "https://openrouter.ai/api/v1"),
    "other": Preset(gettext_noop("Other server"), "openai", ""),
}
