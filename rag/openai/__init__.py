"""Endpoints that programs written for OpenAI's API, Cohere's or Jina's find at the root."""
