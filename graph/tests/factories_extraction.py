"""Documents that wait to be read for the graph, and a chat model that reads them."""

import json
from datetime import timedelta
from typing import Any

from django.core.cache import cache
from django.utils import timezone

from documents.models import Document
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from graph.models import Extraction
from inference.tests.stub_server import Reply, chat_reply

CHAT = "inference.backends.chat_openai.OpenAIChat"
State = Extraction.State


def waiting(*texts: str | tuple[str, ...], graph: str = "rules", **fields: Any) -> list[Document]:
    """A document for each text, or for the texts of each tuple, in a collection of that mode."""
    collection = fields.pop("collection", None) or CollectionFactory(graph=graph)
    documents = []
    for passages in texts:
        document = DocumentFactory(collection=collection, **fields)
        for text in (passages,) if isinstance(passages, str) else passages:
            ChunkFactory(document=document, text=text)
        Extraction.objects.create(
            workspace=document.workspace,
            collection=collection,
            document=document,
            due_at=timezone.now(),
        )
        documents.append(document)
    return documents


def row_of(document: Document) -> Extraction:
    """How far reading it is."""
    return Extraction.objects.get(document=document)


def come_due(*documents: Document) -> None:
    """The interval before the next attempt is over, and the pause for all with it."""
    cache.delete("graph.extraction.pause")
    waits = Extraction.objects.filter(document__in=documents, state=State.WAITING)
    waits.update(due_at=timezone.now() - timedelta(seconds=1), leased_until=None)


def use_chat(settings: Any, url: str) -> None:
    """Have this server asked."""
    options = {"model": "stub-1", "base_url": url, "timeout": 5, "attempts": 1}
    chat = {"BACKEND": CHAT, "OPTIONS": options}
    settings.INFERENCE = {**settings.INFERENCE, "chat": {"default": chat}}


def found(*names: str, relations: Any = ()) -> Reply:
    """What a model answers that found these entities and (source, relation, target, evidence)."""
    keys = "source", "relation", "target", "evidence"
    answer = {
        "entities": [{"name": name, "type": "person"} for name in names],
        "relations": [dict(zip(keys, relation, strict=True)) for relation in relations],
    }
    return chat_reply(json.dumps(answer))


def passage_of(payload: Any) -> str:
    """The passage that a model is asked about."""
    text: str = json.loads(payload["messages"][1]["content"])["passage"]
    return text
