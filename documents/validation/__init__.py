"""Consistency checks that database constraints cannot express. Each says which tables it reads
completely."""

from documents.validation.base import Check, Finding, Scope, SqlProbe, execute
from documents.validation.validate import ValidationReport, register_probes, validate

__all__ = [
    "Check",
    "Finding",
    "Scope",
    "SqlProbe",
    "ValidationReport",
    "execute",
    "register_probes",
    "validate",
]
