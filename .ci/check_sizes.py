"""Refuse functions over 60 lines and files over 800, unless a comment says why.

The reason stands on the line above the function (above its decorators), or on the first line of the file,
as ``# long: because ...``.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST_FUNCTION = 60
LONGEST_FILE = 800
REASON = re.compile(r"#\s*long:\s*\S")


def too_long(path: Path) -> Iterator[str]:
    """What of the file at ``path`` is too long without a reason, one line each."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    if len(lines) > LONGEST_FILE and not REASON.match(lines[0]):
        yield f"{path}: {len(lines)} lines, more than {LONGEST_FILE}"
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        size = (node.end_lineno or node.lineno) - node.lineno + 1
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        if size > LONGEST_FUNCTION and not REASON.match(lines[first - 2].strip()):
            yield f"{path}:{node.lineno}: {node.name} has {size} lines, more than {LONGEST_FUNCTION}"


def main(roots: list[str]) -> int:
    """Print what is too long below ``roots``; the exit status is 1 if anything is."""
    paths = sorted(path for root in roots for path in Path(root).rglob("*.py"))
    findings = [finding for path in paths for finding in too_long(path)]
    print("\n".join(findings) or f"{len(paths)} files: no function or file is too long")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
