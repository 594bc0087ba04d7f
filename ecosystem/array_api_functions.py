"""Which functions of SciPy and scikit-learn run on Pullback's arrays, by the Python array API standard.

python ecosystem/array_api_functions.py [--way plain|served|jax] [--page] [MODULE ...]

It runs the lines of ``array_api_calls`` in processes of their own, which may crash or hang, and writes what came of
each to ``array_api_functions.json``; ``--page`` only writes ``docs/array_api_functions.md`` from it. The way ``jax``
needs a Python that has JAX, to which ``--python`` points.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import array_api_calls
import array_api_worker

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "array_api_functions.json"
PAGE = HERE.parent / "docs" / "array_api_functions.md"
PATIENCE = 2 * array_api_worker.SECONDS * len(array_api_worker.STEPS)
"""Seconds without a word after which a worker is stopped: its own limit does not interrupt compiled code."""

TITLES = {"plain": "Pullback", "served": "served as `jax`", "jax": "JAX"}
HEAD = """# Functions of SciPy and scikit-learn on Pullback's arrays

`make array-api-functions` runs a call of each function on Pullback's arrays, with `SCIPY_ARRAY_API=1` and
`array_api_dispatch=True`, and compares it with the same call on NumPy's arrays:

* *concrete*: it returns Pullback's arrays, or Python's numbers, with the values that NumPy's arrays give;
* *`jit`*: it returns these values if its arrays are traced;
* *`grad`*: a weighted sum of its results has the directional derivative that differences of NumPy's have;
* *`vmap`*: a batch of three gives what NumPy's arrays give one by one.

A step that has nothing to do, such as the derivatives of integers, is left empty and does not count. {versions}

Libraries know immutable arrays by the name of JAX's class, and write into all others. After
`pullback.compat.install()` and `import jax`, before SciPy is imported, Pullback's arrays have that name: the column
*served as `jax`* counts the functions then, *JAX* those that run on the arrays of JAX itself. The tables by
function are of plain Pullback; "served" in their last column marks what then runs on concrete arrays in addition.

Most reasons are the libraries': a function that passes its arrays to compiled code, as `numpy.asarray` does, has
no traced values to pass; one that chooses a branch by a value cannot be traced; one that writes into arrays needs the
name above.
"""


def run(way: str, module: str, python: str) -> dict[str, dict[str, str]]:
    """Return what each line of a module says, by the line."""
    found: dict[str, dict[str, str]] = {}
    lines: list[str] | None = None
    while lines is None or len(found) < len(lines):
        command = [python, str(HERE / "array_api_worker.py"), way, module, str(len(found))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as worker:
            told: queue.Queue[str] = queue.Queue()
            threading.Thread(target=listen, args=(worker, told), daemon=True).start()
            why = "the process crashed"
            try:
                answer = told.get(timeout=PATIENCE)
                if not answer and lines is None:
                    raise SystemExit(f"array_api_functions: {' '.join(command)} does not start")
                lines = list(dict.fromkeys(json.loads(answer))) if answer else lines
                while answer := told.get(timeout=PATIENCE):
                    found.update(json.loads(answer))
            except queue.Empty:
                why = f"more than {PATIENCE} s"
                worker.kill()
        if lines and len(found) < len(lines):
            found[lines[len(found)]] = dict.fromkeys(array_api_worker.STEPS, why)
    return found


def listen(worker: subprocess.Popen[str], told: queue.Queue[str]) -> None:
    """Put the lines that a worker prints into a queue, and "" at its end."""
    assert worker.stdout is not None
    for line in worker.stdout:
        told.put(line)
    told.put("")


def count(found: dict[str, dict[str, str]], step: str) -> str:
    """Return how many lines a step succeeds in, of how many."""
    said = [steps[step] for steps in found.values() if steps.get(step)]
    return f"{said.count(array_api_worker.YES)} of {len(said)}"


def page(recorded: dict[str, Any]) -> str:
    """Return the page of what was recorded."""
    versions = ", ".join(f"{name} {version}" for name, version in recorded["versions"].items())
    text = HEAD.format(versions=f"Versions: {versions}.")
    ways = [way for way in array_api_worker.WAYS if recorded.get(way)]
    for way in ways:
        text += f"\n## Counts: {TITLES[way]}\n\n| module | {' | '.join(array_api_worker.STEPS)} |\n"
        text += f"|---|{'---|' * len(array_api_worker.STEPS)}\n"
        for module, found in recorded[way].items():
            text += f"| `{module}` | {' | '.join(count(found, step) for step in array_api_worker.STEPS)} |\n"
        whole = {f"{module}:{line}": steps for module, found in recorded[way].items() for line, steps in found.items()}
        text += f"| all | {' | '.join(count(whole, step) for step in array_api_worker.STEPS)} |\n"
    for module, found in recorded["plain"].items():
        text += f"\n## `{module}`\n\n| call | {' | '.join(array_api_worker.STEPS)} | why not |\n"
        text += f"|---|{'---|' * (len(array_api_worker.STEPS) + 1)}\n"
        for line, steps in found.items():
            if "numpy" not in steps:
                text += row(line, steps, recorded.get("served", {}).get(module, {}).get(line, {}))
    return text


def row(line: str, steps: dict[str, str], served: dict[str, str]) -> str:
    """Return the row of a line: each step, and the reason of the first that fails."""
    marks = {array_api_worker.YES: "yes", array_api_worker.NOTHING: ""}
    states = [marks.get(steps[step], "no") for step in array_api_worker.STEPS]
    why = next((f"{step}: {steps[step]}" for step in array_api_worker.STEPS if steps[step] not in marks), "")
    if served.get("concrete") == array_api_worker.YES != steps["concrete"]:
        why = f"served; {why}"
    why = why.replace("|", "\\|").replace("`", "'").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
    return f"| `{line}` | {' | '.join(states)} | {why} |\n"


def text_of(recorded: Any, depth: int = 0) -> str:
    """JSON with one line for each call."""
    if depth == 3 or not recorded or not all(isinstance(x, dict) for x in recorded.values()):
        return json.dumps(recorded)
    inner = (f"{json.dumps(key)}: {text_of(value, depth + 1)}" for key, value in recorded.items())
    return "{\n" + ",\n".join(inner) + "\n}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="all, if none is named")
    parser.add_argument("--way", choices=array_api_worker.WAYS, default="plain")
    parser.add_argument("--python", default=sys.executable, help="the Python that runs the lines")
    parser.add_argument("--page", action="store_true", help="write the page from what is recorded, and run nothing")
    options = parser.parse_args()
    recorded = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {"versions": {}}
    if not options.page:
        for module in options.modules or array_api_calls.MODULES:
            found = run(options.way, module, options.python)
            print(
                f"{module}: {', '.join(f'{step} {count(found, step)}' for step in array_api_worker.STEPS)}", flush=True
            )
            recorded.setdefault(options.way, {})[module] = found
        if options.way != "jax":
            names = ("scipy", "scikit-learn", "array-api-compat")
            recorded["versions"] = {name: importlib.metadata.version(name) for name in names}
        for way in array_api_worker.WAYS:
            ordered = {
                module: recorded[way][module] for module in array_api_calls.MODULES if module in recorded.get(way, {})
            }
            recorded[way] = ordered
        RECORDED.write_text(text_of(recorded) + "\n", encoding="utf-8")
    PAGE.write_text(page(recorded), encoding="utf-8")


if __name__ == "__main__":
    main()
