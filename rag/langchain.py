"""The former name of `clients.langchain`, for one release."""

from clients.langchain import RagsiteRetriever, RagsiteVectorStore

__all__ = ["RagsiteRetriever", "RagsiteVectorStore"]
