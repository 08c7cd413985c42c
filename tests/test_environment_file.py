"""Settings from a file `.env`: its form, what goes before it, and what is refused."""

import re
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from ragsite.environment import FILE_VARIABLE, Environment, load_env_file, read_env_file
from tests.test_bootstrap import REPOSITORY, manage, refused, var_dir

__all__ = ["var_dir"]


@pytest.fixture
def env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "site.env"
    monkeypatch.setenv(FILE_VARIABLE, str(path))
    return path


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b c", "b c"),
        ("export A = b", "b"),
        ("A=", ""),
        ("A=# nothing", ""),
        ("A=b#c  # comment", "b#c"),
        ("A=' b # c '  # comment", " b # c "),
        (r'A="b \"c\" \\ $d"', r'b "c" \ $d'),
        ('A={"threads": 2}', '{"threads": 2}'),
    ],
)
def test_values_of_a_line(env_file: Path, line: str, value: str) -> None:
    env_file.write_text(f"# comment\n\n{line}\r\n")
    assert read_env_file(env_file) == {"A": (3, value)}


@pytest.mark.parametrize("line", ["just words", "=value", "2A=b", "A='b", 'A="b" c', "A-B=c"])
def test_a_malformed_line_is_named_and_not_shown(env_file: Path, line: str) -> None:
    env_file.write_text(f"LOG_LEVEL=INFO\n{line}-s3cret\n")
    with pytest.raises(ImproperlyConfigured, match=rf"{env_file}, line 2\b") as refusal:
        load_env_file({})
    assert "s3cret" not in str(refusal.value)


def test_the_environment_goes_before_the_file(env_file: Path) -> None:
    env_file.write_text("A=file\nB=file\nC=file\n")
    environment = {"A": "environment", "B": ""}
    load_env_file(environment)
    assert environment == {"A": "environment", "B": "", "C": "file"}


def test_mistyped_names_are_refused_and_other_programs_names_are_not(env_file: Path) -> None:
    environment = Environment()
    environment.str("DATABASE_URL", default="")
    env_file.write_text("SOMETHING_ELSE=1\nPOSTGRES_PASSWORD=x\nDATABASE_URL=y\n")
    environment.check_names()
    env_file.write_text("\nDATABSE_URL=y\n")
    with pytest.raises(ImproperlyConfigured, match=r"line 2: DATABSE_URL .* mean DATABASE_URL"):
        environment.check_names()
    env_file.write_text("RAGSITE_SPEED=fast\n")
    with pytest.raises(ImproperlyConfigured, match="line 1: RAGSITE_SPEED is no setting"):
        environment.check_names()


@pytest.mark.parametrize(
    ("kind", "value", "cure"),
    [("int", "4.5", "a whole number"), ("float", "soon", "a number"), ("bool", "maybe", "true or")],
)
def test_values_of_another_type_are_refused(
    monkeypatch: pytest.MonkeyPatch, kind: str, value: str, cure: str
) -> None:
    monkeypatch.setenv("RAGSITE_X", value)
    with pytest.raises(ImproperlyConfigured, match=f"RAGSITE_X is “{value}”. Write {cure}"):
        getattr(Environment(), kind)("RAGSITE_X", default=1)


@pytest.mark.nightly
def test_commands_read_the_file_or_say_what_is_wrong(env_file: Path, var_dir: Path) -> None:
    env_file.write_text("LOG_LEVEL=DEBUG\nDATABASE_URL=postgresql://u:p@db.invalid/x\n")
    said = manage("services", "status", var_dir=var_dir, REDIS_URL="redis://r.invalid")
    assert "not used: DATABASE_URL is set" in said.out
    assert "LOG_LEVEL = 'DEBUG'" in manage("diffsettings", var_dir=var_dir).out
    env_file.write_text("LOG_LEVEL\n")
    for command in (["services", "status"], ["help"], ["migrate"], ["up"]):
        assert "line 1 is not NAME=value" in refused(manage(*command, var_dir=var_dir))
    env_file.unlink()
    assert "No such file" in refused(manage("check", var_dir=var_dir))


def test_the_example_file_can_be_used_and_its_names_are_described(tmp_path: Path) -> None:
    example = (REPOSITORY / ".env.example").read_text()
    uncommented = re.sub(r"^#(?=[A-Z_]+=)", "", example, flags=re.MULTILINE)
    (tmp_path / ".env").write_text(uncommented)
    values = read_env_file(tmp_path / ".env")
    assert len(values) > 20
    described = (REPOSITORY / "docs/reference/settings.md").read_text()
    assert [name for name in values if f"`{name}`" not in described] == []
    lines = uncommented.splitlines()
    # each has its line of explanation above it
    assert [n for n, _ in values.values() if not re.match(r"# |[A-Z]", lines[n - 2])] == []
