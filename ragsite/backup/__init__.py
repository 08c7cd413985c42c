"""Backups: a folder with a dump of the database, the uploaded files, and a manifest to verify a
restore (docs/decisions/0046). Begin with `make` and `restore`.
"""

from ragsite.backup.creation import create_backup
from ragsite.backup.database import BackupError, Server
from ragsite.backup.manifest import checked_manifest
from ragsite.backup.restoration import RestoreResult, restore_backup

__all__ = [
    "BackupError",
    "RestoreResult",
    "Server",
    "checked_manifest",
    "create_backup",
    "restore_backup",
]
