"""The secret key of a backup, back to where settings look for it."""

import os
from pathlib import Path

from django.conf import settings

from ragsite.backup import files, manifest
from ragsite.backup.files import OnProgress
from ragsite.backup.manifest import Manifest


def put_in_place(folder: Path, noted: Manifest, *, say: OnProgress) -> bool:
    """Whether the backup's key is the site's from the next start on."""
    if noted.secret_key is None:
        return False
    key = (folder / manifest.SECRET_KEY).read_text()
    if os.environ.get("SECRET_KEY"):
        if key != settings.SECRET_KEY:
            say("SECRET_KEY is not the backup's: everybody must log in again")
        return key == settings.SECRET_KEY
    place = settings.VAR_DIR / "secret-key"
    if key == settings.SECRET_KEY:
        return True
    coming = place.with_name(f"{place.name}.new")
    try:
        coming.unlink(missing_ok=True)
        files.write(coming, key.encode())
        coming.replace(place)
    except OSError as error:
        say(f"{place} cannot be written ({error.strerror}): everybody must log in again")
        return False
    say(f"the backup's secret key is in {place}")
    return True
