"""Requests to model servers over HTTP, for the remote backends. Imports neither Django nor
Celery.
"""
