"""What OpenAI's own address asks for, beside what every server of its protocol does."""

import os

from inference.base import BackendUnavailable

OPENAI = "https://api.openai.com/v1"
BAD_KEY = "Check OPENAI_API_KEY, or api_key in OPTIONS."


def openai_key(api_key: str | None, base_url: str) -> str:
    """`api_key`, or OPENAI_API_KEY for None. Raises BackendUnavailable where OpenAI needs one."""
    key = os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key
    if not key.strip() and is_openai(base_url):
        raise BackendUnavailable(
            "OpenAI answers nobody without a key: set OPENAI_API_KEY, or base_url in OPTIONS for"
            " a server of your own."
        )
    return key


def is_openai(base_url: str) -> bool:
    return "//api.openai.com" in base_url
