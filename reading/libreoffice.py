"""Office files of before 2007, turned into those of today by LibreOffice where it is installed.
Begin with `target_format`; `convert` runs in the parser process."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from reading.parsers.base import DEFAULT_LIMITS, Limits, ParseError
from reading.parsers.registry import OLD_POWERPOINT, OLD_WORD, identify_binary, is_compound_file

#: What each kind becomes.
_TARGETS = {OLD_WORD.media_type: "docx", OLD_POWERPOINT.media_type: "pptx"}
_PROGRAMS = ("soffice", "libreoffice", "/Applications/LibreOffice.app/Contents/MacOS/soffice")
#: Address space that it needs for a small file, in bytes.
MIN_MEMORY_BYTES = 2 * 1024**3
#: No macro runs, and nothing that a file refers to is loaded: 2 is “never”.
_SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">
<prop oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop>
<prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Writer/Content/Update">
<prop oor:name="Link" oor:op="fuse"><value>2</value></prop></item>
</oor:items>
"""


@cache
def program() -> str:
    """The path of LibreOffice; empty if it is not installed."""
    return next((path for name in _PROGRAMS if (path := shutil.which(name))), "")


def target_format(data: bytes) -> str:
    """What the file can be converted to, `docx` or `pptx`; empty for all others, and where
    LibreOffice is not installed."""
    if not is_compound_file(data) or not program():
        return ""
    return _TARGETS.get(identify_binary(data).media_type, "")


def reads_workbook(name: str) -> bool:
    """Whether LibreOffice is there for workbooks of this name that calamine cannot read: those of
    Excel 95, some binary ones, those with text boxes alone."""
    return name.lower().endswith((".xls", ".xlsb")) and bool(program())


def convert(
    data: bytes, *, name: str, folder: str, target: str, limits: Limits = DEFAULT_LIMITS
) -> bytes:
    """The file as `target`. All that LibreOffice writes is in `folder`, an empty directory, which
    the caller removes. Raises ParseError."""
    root = Path(folder)
    profile, source = root / "profile", root / "file"
    (profile / "user").mkdir(parents=True)
    (profile / "user/registrymodifications.xcu").write_text(_SETTINGS)
    source.write_bytes(data)
    done = subprocess.run(  # noqa: S603 (its arguments are ours)
        [
            program(),
            f"-env:UserInstallation={profile.as_uri()}",
            *("--headless", "--norestore", "--nolockcheck", "--nodefault"),
            *("--convert-to", target, "--outdir", folder, str(source)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ.get("PATH", os.defpath), "HOME": folder, "TMPDIR": folder},
        check=False,
    )
    converted = source.with_suffix(f".{target}")
    if done.returncode or not converted.is_file():
        raise ParseError(
            "malformed",
            f"LibreOffice cannot read {name}: it is damaged or has a password. Open it, remove the"
            f" password and save it as .{target}.",
        )
    if converted.stat().st_size > limits.max_bytes:
        raise ParseError(
            "too_large", f"{name} has more than {limits.max_bytes:,} bytes as .{target}. Split it."
        )
    return converted.read_bytes()
