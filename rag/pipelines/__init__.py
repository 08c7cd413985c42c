"""Pipelines: graphs of steps that answer a question, checked before they run."""
