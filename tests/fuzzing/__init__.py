"""Requests made up from the description of the API, by schemathesis."""
