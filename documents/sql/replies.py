"""SQL taken out of what a language model replied: `extract_sql`."""

import re

_CODE_BLOCK = re.compile(r"```[ \t]*(?:\w+)?[ \t]*\r?\n(.*?)(?:\r?\n[ \t]*```|\Z)", re.DOTALL)
_STATEMENT_START = re.compile(r"^[ \t]*(?:\(\s*)*(?:SELECT|WITH)\b", re.IGNORECASE | re.MULTILINE)


def extract_sql(reply: str) -> str:
    """The SQL in a reply; empty if there is none."""
    text = reply
    for block in _CODE_BLOCK.findall(text):
        if _STATEMENT_START.search(block):
            return str(block).strip()
    if code_blocks := [block.strip() for block in _CODE_BLOCK.findall(text) if block.strip()]:
        return str(code_blocks[0])
    begins = _STATEMENT_START.search(text)
    return text[begins.start() :].strip().rstrip("`").strip() if begins else ""
