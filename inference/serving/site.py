"""The models that this process offers to others, by the site's settings."""

from collections.abc import Callable
from typing import Any

from django.conf import settings

from inference.handler import InferenceHandler, embedders, rerankers
from inference.serving.offers import Offer, offer_embedder, offer_reranker
from inference.serving.server import Server

#: Backends that ask a worker, or do nothing.
_NOT_OFFERED = ("inference.backends.worker.", "inference.backends.rerank_basic.NoReranker")


def server() -> Server:
    """A server, not started, of every configured model that does not itself ask a worker."""
    offers: list[Callable[[], Offer]] = [
        *(_embedder(alias) for alias in _own(embedders)),
        *(_reranker(alias) for alias in _own(rerankers)),
    ]
    return Server(settings.REDIS_URL, offers)


def _own(models: InferenceHandler[Any]) -> list[str]:
    return [
        alias
        for alias in models
        if not settings.INFERENCE[models.kind][alias]["BACKEND"].startswith(_NOT_OFFERED)
    ]


def _embedder(alias: str) -> Callable[[], Offer]:
    return lambda: offer_embedder(alias, embedders.own(alias))


def _reranker(alias: str) -> Callable[[], Offer]:
    return lambda: offer_reranker(alias, rerankers.own(alias))
