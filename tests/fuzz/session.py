"""One run: draws programs until the time is over, checks each, reduces and prints what fails, and counts."""

from __future__ import annotations

import argparse
import gc
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pullback.core.config import config
from tests.fuzz import draw, laws, show
from tests.fuzz.compiler import without_compiler
from tests.fuzz.program import Case, Input, Program
from tests.fuzz.reduce import reduced

COMPILED_EVERY = 50
"""How many eager programs are run for one that is compiled."""
PROGRESS_EVERY = 1000
"""After how many eager programs, or a tenth as many compiled ones, a line says how many there were."""
DEVICES_EVERY = 4
"""How many of the compiled programs there are for one over eight devices."""


@dataclass
class Session:
    """The counts of a run, and what it found.

    Attributes:
      seed: of the programs.
      eager, compiled: how many programs were run.
      law: the only law that eager programs are checked by; None for a choice for each.
      found: the texts of tests, one for each kind of failure.
      unconfirmed: failures that were not seen again near by, which rounding explains.
    """

    seed: int
    eager: int = 0
    compiled: int = 0
    found: list[str] = field(default_factory=list)
    unconfirmed: Counter[str] = field(default_factory=Counter)
    record: draw.Record = field(default_factory=draw.Record)
    law: laws.Law | None = None

    def eager_program(self, number: int) -> None:
        """Draw and check a program without the compiler."""
        with without_compiler():
            case = draw.case(self.seed, number, draw.Options(), self.record)
            self.eager += 1
            laws.remember(case, self.record.results)
            self._check(case, laws.chosen(number) if self.law is None else (self.law,))
            self._of_refusals(number)

    def compiled_program(self, number: int) -> None:
        """Draw a program, and check that it is the same when it is compiled."""
        options = draw.Options(jit=True, devices=number % DEVICES_EVERY == 0, longest=16)
        case = draw.case(self.seed, -1 - number, options, self.record)
        self.compiled += 1
        laws.remember(case, self.record.results)
        self._check(case, (laws.COMPILED[number % len(laws.COMPILED)],))
        self._of_refusals(number)

    def _check(self, case: Case, chosen: Sequence[laws.Law]) -> None:
        for law in chosen:
            failure = laws.broken(law, case)
            if failure is None:
                continue
            if laws.persists(law, case, failure.how):
                self._report(law, case, failure)
            else:
                self.unconfirmed[f"{failure.law}, {failure.how}"] += 1

    def _of_refusals(self, number: int) -> None:
        """Report operations that raised errors, which their plain forms did not, as programs of one instruction."""
        for refusal in self.record.refusals:
            inputs = tuple(_as_input(x) for x in refusal.operands)
            step = replace(refusal.step, operands=tuple(range(len(inputs))))
            case = Case(Program(len(inputs), (step,), (len(inputs),)), inputs, f"{self.seed}/{number}")
            failure = laws.broken(laws.of_refusal, case)
            if failure is not None and not laws.expected_of(refusal.error):
                self._report(laws.of_refusal, case, failure)
        self.record.refusals.clear()

    def _report(self, law: laws.Law, case: Case, failure: laws.Failure) -> None:
        def fails(smaller: Case) -> bool:
            again = laws.broken(law, smaller)
            return (
                again is not None
                and (again.law, again.how) == (failure.law, failure.how)
                and laws.persists(law, smaller, again.how)
            )

        try:
            case = reduced(case, fails)
            text = show.test(case, laws.broken(law, case) or failure)
        except Exception:
            text = f"{case}\n{failure}\nnot reduced or printed: {traceback.format_exc()}"
        self.found.append(text)
        print(f"\n# ---- failure {len(self.found)}: {show.summary(case)}\n{text}", flush=True)

    def summary(self) -> str:
        drawn = self.record.drawn
        lines = [
            f"seed {self.seed}: {self.eager} eager and {self.compiled} compiled programs, {len(self.found)} failures"
        ]
        lines.append(f"{sum(drawn.values())} operations of {len(drawn)} kinds; the most frequent and the rarest:")
        lines.append("  " + ", ".join(f"{kind} {n}" for kind, n in drawn.most_common(40)))
        lines.append("  " + ", ".join(f"{kind} {n}" for kind, n in drawn.most_common()[-12:]))
        lines.append("refused: " + ", ".join(f"{kind} {n}" for kind, n in self.record.refused.most_common(15)))
        lines.append(
            "not seen again near by: " + (", ".join(f"{kind} {n}" for kind, n in self.unconfirmed.items()) or "none")
        )
        return "\n".join(lines)


def _as_input(x: object) -> Input:
    """An array of double precision as an argument of a program."""
    a = np.asarray(x)
    names = {"f": "float32", "c": "complex64", "b": "bool_"}
    values = np.stack([a.real, a.imag], -1).tolist() if a.dtype.kind == "c" else a.tolist()
    return Input(
        values,
        names.get(a.dtype.kind, a.dtype.name if a.dtype.name in ("int8", "uint8", "int16", "uint32") else "int32"),
    )


def main(arguments: Sequence[str]) -> int:
    """Run; 1 if something failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=None, help="how long (1, unless a number of programs is given)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=None, help="how many eager programs at most")
    parser.add_argument("--compiled", type=int, default=None, help="how many compiled ones at most")
    parser.add_argument("--first", type=int, default=0, help="the number of the first eager program")
    parser.add_argument("--law", choices=laws.BY_NAME, help="the only law of eager programs")
    parser.add_argument("--most", type=int, default=20, help="after how many failures to stop")
    chosen = parser.parse_args(arguments)
    config.update("enable_x64", True)
    config.update("tiered", "off")
    warnings.simplefilter("ignore")
    gc.freeze()  # what is imported stays: looking through it again and again takes a tenth of the time
    gc.set_threshold(20_000, 20, 50)
    session = Session(chosen.seed, law=laws.BY_NAME.get(chosen.law))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(session, chosen)
    except KeyboardInterrupt:
        print("interrupted")
    print(session.summary())
    return int(bool(session.found))


def run(session: Session, chosen: argparse.Namespace) -> None:
    """Eager programs and, for every so many of them, a compiled one, until all that was asked for is done."""
    counted = chosen.programs is not None or chosen.compiled is not None
    minutes = chosen.minutes if chosen.minutes is not None else float("inf") if counted else 1
    end = time.monotonic() + 60 * minutes
    eager = chosen.programs if chosen.programs is not None else 0 if counted else 10**9
    compiled = chosen.compiled if chosen.compiled is not None else 0 if counted else 10**9
    while time.monotonic() < end and len(session.found) < chosen.most:
        if session.eager < eager:
            session.eager_program(chosen.first + session.eager)
            if session.eager % PROGRESS_EVERY == 0:
                print(f"{session.eager} eager and {session.compiled} compiled programs", flush=True)
        if session.compiled < compiled and (session.eager >= eager or session.eager % COMPILED_EVERY == 0):
            session.compiled_program(session.compiled)
            if session.compiled % (PROGRESS_EVERY // 10) == 0 and session.eager >= eager:
                print(f"{session.eager} eager and {session.compiled} compiled programs", flush=True)
        if session.eager >= eager and session.compiled >= compiled:
            break
