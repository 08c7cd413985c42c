"""The former name of `clients.remote_retriever`, for one release."""

from clients.remote_retriever import Document, RemoteRetriever, SiteRefused, SiteUnreachable

__all__ = ["Document", "RemoteRetriever", "SiteRefused", "SiteUnreachable"]
