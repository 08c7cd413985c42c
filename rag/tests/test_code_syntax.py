"""Parsing the code in an answer."""

import re

import pytest

from rag.pipelines.code_syntax import MAX_CHARACTERS, syntax_faults

GOOD = {
    "python": "async def f(x: int) -> int:\n    return x\n",
    "py": "type Pair[T] = tuple[T, T]\nprint(f'{x['a']}')\n",  # newer than this Python
    "json": '{"a": [1, 2.5, null]}',
    "sql": "SELECT TOP 3 [a b] FROM dbo.t;\n",
    "postgresql": "SELECT a::int, b->>'c' FROM t WHERE d @> '{1}';",
    "mysql": "SELECT `a` FROM `t` LIMIT 1, 2;",
    "javascript": "const f = async ({a = 1}) => { await g?.(a ?? 2); };\nexport default f;\n",
    "jsx": "const a = <b c={1}>d</b>;",
    "ts": "interface A { b?: string }\nconst c = <T,>(d: T): T => d satisfies unknown as T;\n",
    "java": "record A(int b) { static void main(String... c) { var d = new int[]{1}; } }",
    "go": "package main\n\nfunc main() { for i := range 3 { println(i) } }\n",
    "rust": 'fn main() { let a: Vec<&\'static str> = vec![]; println!("{a:?}"); }\n',
    "c": "not looked at (",
    "": "plain ( text",
}
BAD = {
    "python": ("def f(:\n    pass\n", 1),
    "py": ("x = 1\n  y = 2\n", 2),
    "json": ('{"a": 1,\n "b": }', 2),
    "sql": ("SELECT a,\nFROM (t\nWHERE\n", 3),
    "javascript": ("let a = 1;\nfunction f( { return a; }\n", 2),
    "typescript": ("interface A {\n b: \n}\n", 2),
    "java": ("class A {\n void b() { int c = ; }\n}", 2),
    "go": ("package main\nfunc main() {\n", 2),
    "rust": ("fn main() {\n let a = ;\n}", 2),
}


@pytest.mark.parametrize("language", GOOD)
def test_what_parses_has_no_fault(language: str) -> None:
    assert syntax_faults(f"Here:\n\n```{language}\n{GOOD[language]}\n```\nand so on (") == []


@pytest.mark.parametrize("language", BAD)
def test_a_fault_is_told_with_its_line(language: str) -> None:
    code, line = BAD[language]
    (fault,) = syntax_faults(f"```\nfirst\n```\n\n~~~{language} title=x\n{code}\n~~~\n")
    assert re.fullmatch(rf"Code block 2 \(\w+\), line {line}: .+", fault)


def test_a_block_that_names_no_language_is_in_that_of_the_run() -> None:
    text = "```\ndef f(:\n```"
    assert syntax_faults(text) == []
    (fault,) = syntax_faults(text, language="Python")
    assert fault.startswith("Code block 1 (python), line 1: ")
    assert syntax_faults(text, language="German") == []


def test_an_open_fence_and_a_session_and_a_long_block() -> None:
    assert len(syntax_faults("```json\n{")) == 1
    assert syntax_faults("```python\n>>> 1 +\n... 2\n3\n```") == []
    assert syntax_faults(f"```json\n{'[' * (MAX_CHARACTERS + 1)}\n```") == []


@pytest.mark.parametrize("language", ["python", "json", "sql", "javascript"])
def test_code_that_is_nested_very_deeply_does_not_fail(language: str) -> None:
    syntax_faults(f"```{language}\n{'(' * 20_000}{'[' * 20_000}\n```")
    syntax_faults(f"```{language}\n{'[' * 20_000}{']' * 20_000}\n```")
