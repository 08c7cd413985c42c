"""The words a model wants before a text: fixed ones for documents, an instruction for queries."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

INSTRUCTED = re.compile(r"(?P<before>Instruct: ?).*(?P<after>\nQuery: ?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prompts:
    """What goes before each document and each query, exactly as written."""

    document: str = ""
    query: str = ""

    def for_query(self, instruction: str | None) -> str:
        """The query prompt with `instruction` in place of the model's own.

        Models taught by "Instruct: …\\nQuery:" (Qwen3-Embedding, E5-instruct) get it into that
        frame; for others it is itself the prompt, as `prompt=` is in sentence-transformers.
        """
        if not instruction:
            return self.query
        if frame := INSTRUCTED.fullmatch(self.query):
            return frame["before"] + instruction + frame["after"]
        return instruction


def read_prompts(config: Mapping[str, Any]) -> Prompts:
    """From `config_sentence_transformers.json`, by the names sentence-transformers looks for."""
    prompts: Mapping[str, str | None] = config.get("prompts") or {}
    default = prompts.get(config.get("default_prompt_name") or "")
    names = [name for name in ("document", "passage", "corpus") if name in prompts]
    document = prompts[names[0]] if names else default
    return Prompts(document=document or "", query=prompts.get("query", default) or "")
