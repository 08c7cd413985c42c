"""Is everything as it should be? Named checks of what no constraint of the database can say.

Which of them read whole tables is said beside them.
"""

from documents.validation.base import Check, Finding, Scope, SqlProbe, execute
from documents.validation.run import Report, register, validate

__all__ = ["Check", "Finding", "Report", "Scope", "SqlProbe", "execute", "register", "validate"]
