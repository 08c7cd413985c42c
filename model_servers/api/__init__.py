"""Connections to models over HTTP."""
