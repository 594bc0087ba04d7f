"""Run `ecosystem/programs` on Pullback and compare what they print with what they print under JAX.

python ecosystem/check.py [--page] [--times] [--timeout SECONDS] [NAME ...]

The exit status is 1 if a program fails or a figure differs. `--page` writes `docs/ecosystem.md`, of all programs.
`--times` runs each program twice, without and with compiled programs on disk, and adds its times to
`ecosystem/times.json`.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
import sys
import time

import catalogue

PAGE = catalogue.HERE.parent / "docs" / "ecosystem.md"
MISSING = "Names of JAX that the program used and that Pullback does not have:\n"

HEAD = """\
# Programs of JAX's libraries

`python -m pullback run program.py` runs a program that imports JAX or a library written for JAX. The folder
`ecosystem/` has a program for each library below. `make ecosystem` runs all of them on Pullback, without JAX installed,
and compares the figures that they print with figures recorded under JAX {jax}. The tolerance is {tolerance:.0e} of a
figure's largest element, unless the program states another one and the reason. Means of random chains have to agree to
{errors:.0f} standard errors. `make ecosystem ECOSYSTEM_ARGS=--page` writes this page.

| library | version | what is run | figures | result |
|---|---|---|---|---|
"""
TAIL = """
{times}## Names that are missing

These names are missing in Pullback, and the libraries look them up in these programs. In most cases they only test
whether the name exists.

"""
TIMES = """\
## Time

The seconds that a program takes from start to end, with its imports: cold, without compiled programs on disk, and warm,
with those of the run before. JAX's persistent cache keeps every program here, as Pullback's does. CPU seconds are those
of all threads. The clock's seconds are from a machine that was busy with other work, so they say less. `make ecosystem`
and `make ecosystem-record` measure them with `ECOSYSTEM_ARGS=--times`.

| program | cold, CPU | of JAX | ratio | warm, CPU | of JAX | ratio | cold, clock | of JAX | warm, clock | of JAX |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
"""


@dataclasses.dataclass
class Outcome:
    """What came of one program: ``wrong`` is empty if all its figures agree."""

    name: str
    seconds: float
    figures: int
    wrong: list[str]
    missing: list[str]

    @property
    def result(self) -> str:
        return "differs" if self.wrong and self.figures else "fails" if self.wrong else "agrees"


def main() -> int:
    parser = argparse.ArgumentParser(description="run programs of JAX's libraries on Pullback")
    parser.add_argument("names", nargs="*", help="programs; all if none is named")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for each")
    parser.add_argument("--page", action="store_true", help="write docs/ecosystem.md")
    parser.add_argument("--times", action="store_true", help="run each twice and write ecosystem/times.json")
    given = parser.parse_args()
    if given.page and given.names:
        parser.error("--page is written of all programs: name none")
    recorded = json.loads(catalogue.RECORDED.read_text())
    outcomes = []
    print(
        f"{'library':17} {'version':10} {'program':12} {'result':8} {'seconds':>7}  missing names asked for", flush=True
    )
    for name in catalogue.chosen(given.names):
        outcome = check(name, recorded, given.timeout, given.times)
        outcomes.append(outcome)
        library = catalogue.PROGRAMS[name]
        head = f"{library:17} {importlib.metadata.version(library):10} {name:12} {outcome.result:8}"
        print(f"{head} {outcome.seconds:7.1f}  {', '.join(outcome.missing)}")
        for line in outcome.wrong:
            print(f"    {line}")
        sys.stdout.flush()
    if given.page:
        PAGE.write_text(page(outcomes, recorded))
    bad = [outcome.name for outcome in outcomes if outcome.wrong]
    print(f"{len(outcomes) - len(bad)} of {len(outcomes)} programs agree" + (f"; not {', '.join(bad)}" if bad else ""))
    return int(bool(bad))


def check(name: str, recorded: dict, timeout: float, times: bool = False) -> Outcome:
    """Run one program on Pullback, twice if its ``times`` are asked for, and compare its figures."""
    command = [sys.executable, "-m", "pullback", "run", "--report", str(catalogue.path_of(name))]
    start = time.perf_counter()
    try:
        ended = catalogue.run_twice(command, timeout, name, "Pullback") if times else catalogue.run(command, timeout)
        figures, stderr = ended.figures, ended.stderr
        if name in recorded:
            wrong = catalogue.differences(figures, recorded[name]["figures"], catalogue.tolerances(name))
        else:
            wrong = ["nothing is recorded: run ecosystem/record.py with a Python that has the real JAX"]
    except catalogue.ProgramError as error:
        figures, stderr, wrong = {}, error.stderr, [str(error)]
    return Outcome(name, time.perf_counter() - start, len(figures), wrong, missing_in(stderr))


def missing_in(report: str) -> list[str]:
    """The names in what ``--report`` printed.

    >>> missing_in(MISSING + "  jax.a.b  file.py:1\\n  jax.c    file.py:2\\n")
    ['jax.a.b', 'jax.c']
    """
    _, _, after = report.partition(MISSING)
    return [line.split()[0] for line in after.splitlines() if line.startswith("  jax")]


def page(outcomes: list[Outcome], recorded: dict) -> str:
    version = next(iter(recorded.values()))["jax"]
    said = HEAD.format(jax=version, tolerance=catalogue.TOLERANCE, errors=catalogue.STANDARD_ERRORS)
    for outcome in outcomes:
        library = catalogue.PROGRAMS[outcome.name]
        cells = [library, importlib.metadata.version(library), catalogue.described(outcome.name), str(outcome.figures)]
        reason = ": " + "; ".join(outcome.wrong).replace("|", "\\|") if outcome.wrong else ""
        said += f"| {' | '.join(cells)} | {outcome.result}{reason} |\n"
    lines = [
        f"- `{outcome.name}`: {', '.join(f'`{n}`' for n in outcome.missing)}" for outcome in outcomes if outcome.missing
    ]
    return said + TAIL.format(times=times_table()) + ("\n".join(lines) if lines else "None.") + "\n"


def times_table() -> str:
    """The section with the times of the programs that were measured on Pullback and under JAX."""
    times = json.loads(catalogue.TIMES.read_text())
    rows = []
    for name, found in times.items():
        if set(found) == {"Pullback", "JAX"}:
            cold, cold_cpu, warm, warm_cpu = zip(found["Pullback"], found["JAX"], strict=True)
            cpu = [f"{ours:.1f} | {theirs:.1f} | {ours / theirs:.2f}" for ours, theirs in (cold_cpu, warm_cpu)]
            clock = [f"{seconds:.0f}" for seconds in (*cold, *warm)]
            rows.append(f"| `{name}` | {' | '.join(cpu + clock)} |\n")
    return TIMES + "".join(rows) + "\n" if rows else ""


if __name__ == "__main__":
    raise SystemExit(main())
