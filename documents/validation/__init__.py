"""Consistency of a database beyond its constraints: checks, what they find, and fixes.

Begin with `validate`; `base` has what a check is, the other modules those of this app.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils.module_loading import autodiscover_modules

from documents.validation import chunk_checks, document_checks
from documents.validation.base import Check, Finding, Scope, SqlProbe, execute

__all__ = ["Check", "Scope", "SqlProbe", "execute", "register_probes", "validate"]

Probe = Check | SqlProbe

_probes: list[Probe] = [
    *document_checks.DOCUMENT_PROBES,
    *chunk_checks.PROBES,
    *document_checks.RUN_AND_FILE_PROBES,
]


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The checks that were run, what they still find, and how much was fixed by check."""

    checks: tuple[str, ...]
    findings: tuple[Finding, ...]
    fixed: dict[str, int] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong (any more)."""
        return not self.findings


def register_probes(probes: Sequence[Probe]) -> None:
    """Add an app's own probes; called by its module `validation`, which is found by name."""
    _probes.extend(probe for probe in probes if probe not in _probes)


def validate(*, collection_id: int | None = None, fix: bool = False) -> ValidationReport:
    """Run all checks for one collection or all. With `fix` fix what is safe to fix, then check
    again. Must not be called inside a transaction if `fix`."""
    autodiscover_modules("validation")
    scope = Scope(collection_id)
    names = tuple(check.name for probe in _probes for check in probe.checks)
    findings = _find_all(scope)
    fixed: dict[str, int] = {}
    if fix and findings:
        for check in [finding.check for finding in findings]:
            if check.fix is not None:
                fixed[check.name] = check.fix(scope)
        findings = _find_all(scope)
    return ValidationReport(names, tuple(findings), fixed)


def _find_all(scope: Scope) -> list[Finding]:
    return [finding for probe in _probes for finding in probe.findings(scope)]
