"""Backups: a folder with a dump of the database, the uploaded files, and a manifest that tells
what a restore must come to. docs/decisions/0046 tells why it is made so.
"""

from ragsite.backup.checking import checked
from ragsite.backup.errors import BackupError
from ragsite.backup.making import Made, make
from ragsite.backup.restoring import Restored, restore
from ragsite.backup.server import Server

__all__ = ["BackupError", "Made", "Restored", "Server", "checked", "make", "restore"]
