"""Parsers at work in a process of their own, with limits of time and memory. No Django here."""

from documents.parsing.limits import ParserLimits
from documents.parsing.pool import parse_apart, parse_many
from documents.parsing.process import ParserProcess
from documents.parsing.protocol import Request

__all__ = ["ParserLimits", "ParserProcess", "Request", "parse_apart", "parse_many"]
