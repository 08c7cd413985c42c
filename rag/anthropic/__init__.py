"""Endpoints compatible with Anthropic's API."""
