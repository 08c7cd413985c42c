"""The package's error."""


class ServiceError(Exception):
    """An embedded service cannot do what was asked; the message names the cure."""
