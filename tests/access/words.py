"""What texts of a workspace hold."""

from dataclasses import dataclass


@dataclass(slots=True)
class Words:
    """What texts of a workspace hold."""

    shared: str
    listed: str
    own: str
    memory: str
    asked: str
