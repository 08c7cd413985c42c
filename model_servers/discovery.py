"""Model servers that run beside the site: at their usual ports of this machine, and of the host
where the site is in a container. Begin with `find_servers`."""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from inference.interfaces import BackendUnavailable
from inference.remote.probing import ModelServer
from model_servers.models import ModelConnection
from model_servers.options import PRESETS, Preset

#: Seconds that a server has to answer: it is near.
ANSWER_SECONDS = 1.0
OFFERED_MODELS = 5
_FOUND_PRESETS = ("ollama", "lm-studio", "llama-cpp")
_CONTAINER_HOSTS = ("host.docker.internal", "ollama")
#: Names of models that do not answer questions.
_NOT_CHAT = re.compile(r"embed|rerank|bge-|minilm|whisper|\bclip\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model of a server that answers. `host` is where, as people read it."""

    preset: str
    label: str
    kind: str
    address: str
    model: str

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc


def find_models(known: Sequence[ModelConnection]) -> list[FoundModel]:
    """The models of servers nearby that are not `known`, a few of each. Servers that do not answer
    within a second are left out."""
    places = _places()
    if not places:
        return []
    executor = ThreadPoolExecutor(len(places), thread_name_prefix="find-models")
    asked = [executor.submit(_models_at, *place) for place in places]
    done, _ = wait(asked, timeout=2 * ANSWER_SECONDS)
    executor.shutdown(wait=False, cancel_futures=True)
    connected = {(row.address, row.model) for row in known}
    found = [each for future in asked if future in done for each in future.result()]
    # A machine's own name and that of its container host may be one server.
    seen = {(each.label, each.model): each for each in reversed(found)}
    return [
        each
        for each in found
        if seen[each.label, each.model] is each and (each.address, each.model) not in connected
    ]


def _places() -> list[tuple[str, str]]:
    """Presets and addresses to look at."""
    if settings.FIND_MODEL_SERVERS != ["auto"]:
        pairs = (entry.partition("=") for entry in settings.FIND_MODEL_SERVERS)
        return [(name, address) for name, _, address in pairs if name in PRESETS]
    hosts = ["localhost", *(_CONTAINER_HOSTS if Path("/.dockerenv").exists() else ())]
    return [
        (name, PRESETS[name].address.replace("localhost", host))
        for host in hosts
        for name in _FOUND_PRESETS
    ]


def _models_at(name: str, address: str) -> list[FoundModel]:
    preset: Preset = PRESETS[name]
    models: list[str] = []
    with suppress(BackendUnavailable):
        models = ModelServer(preset.kind, address).models(seconds=ANSWER_SECONDS)
    chats = [model for model in models if not _NOT_CHAT.search(model)]
    return [
        FoundModel(name, preset.label, preset.kind, address, model)
        for model in chats[:OFFERED_MODELS]
    ]
