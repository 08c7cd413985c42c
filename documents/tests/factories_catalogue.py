"""Scripts of SQL read into tables."""

from pathlib import Path
from tempfile import NamedTemporaryFile

from documents.catalogue.ddl import read_scripts
from documents.catalogue.tables import Table
from documents.ingestion.sources import BrokenSource


def read_ddl(script: str, **options: str) -> list[Table | BrokenSource]:
    """The tables of a script that is given as text."""
    with NamedTemporaryFile("w", encoding="utf-8", suffix=".sql") as file:
        file.write(script)
        file.flush()
        return read_scripts([Path(file.name)], **options)
