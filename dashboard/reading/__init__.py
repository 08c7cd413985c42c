"""The figures of a workspace over a stretch of time."""

from dashboard.reading.board import Board, read_board
from dashboard.reading.unanswered import Unanswered, unanswered

__all__ = ["Board", "Unanswered", "read_board", "unanswered"]
