"""Asking a model server over HTTP, for the remote backends. Knows neither Django nor Celery."""
