"""Parsers in a child process with limits of time and memory. No Django here. Begin with
`parse_in_sandbox`."""

from documents.sandbox.limits import ParserLimits
from documents.sandbox.process import ParserProcess, parse_in_sandbox, parse_many
from documents.sandbox.protocol import ParseRequest

__all__ = ["ParseRequest", "ParserLimits", "ParserProcess", "parse_in_sandbox", "parse_many"]
