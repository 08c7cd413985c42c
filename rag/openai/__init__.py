"""Endpoints compatible with OpenAI's API, and with the rerank APIs of Cohere and Jina."""
