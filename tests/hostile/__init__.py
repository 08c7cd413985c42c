"""Hostile requests to every operation that the API's description names."""
