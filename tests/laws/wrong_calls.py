"""Calls of every public function with nonsense, drawn from a seed, and what comes of each.

``python -m tests.laws.wrong_calls --seed 1`` makes some fifty thousand calls in two processes, and prints those that
do not end within seconds, and the raw errors: raised within the library, of no type of its own, with neither the
function nor an argument in the message. The exit status is 1 if these are more than ``--most``.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import inspect
import io
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

import pullback
import pullback.numpy as jnp
from pullback.core.errors import PullbackError
from tests.helpers import ROOT

SECONDS, PATIENCE = 4, 150
"""A call that takes longer is made again, with more patience, for it may have compiled a program."""
MEMORY = 8 << 30
MODULES = [
    "", "ad_checkpoint", "custom_batching", "custom_derivatives", "debug", "dlpack", "dtypes", "experimental.ode",
    "experimental.sparse", "experimental.jet", "flatten_util", "image", "lax", "lax.linalg", "nn",
    "nn.initializers", "numpy", "numpy.fft", "numpy.linalg", "ops", "random", "scipy.cluster.vq", "scipy.fft",
    "scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal",
    "scipy.sparse.linalg", "scipy.spatial", "scipy.spatial.distance",
    "scipy.spatial.transform", "scipy.special", "scipy.stats", "sharding", "test_util", "tree",
    "tree_util",
]  # fmt: skip
DISTRIBUTIONS = """
    bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace
    logistic multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy
"""
MODULES += [f"scipy.stats.{name}" for name in DISTRIBUTIONS.split()]
LEFT_OUT = {
    "numpy.save", "numpy.savez", "numpy.load", "debug.breakpoint", "clear_caches", "debug.visualize_array_sharding",
}  # fmt: skip
"""Functions that read or write files, or talk to whoever sits there."""


class Thing:
    def __repr__(self) -> str:
        return "<a thing>"


def first(x: Any, *rest: Any) -> Any:
    return x


def nonsense() -> dict[str, Callable[[], Any]]:
    """What no function, or few, can use, by kind; each call makes it anew."""
    return {
        "a string": lambda: "a",
        "an empty string": lambda: "",
        "bytes": lambda: b"ab",
        "None": lambda: None,
        "an object": Thing,
        "a class": lambda: Thing,
        "a function": lambda: first,
        "a module": lambda: np,
        "a list of strings": lambda: ["a", "b"],
        "a ragged list": lambda: [[1.0, 2.0], [3.0]],
        "a deep list": lambda: [[[[1]]]],
        "an empty list": list,
        "an empty tuple": lambda: (),
        "a list of None": lambda: [None, 1],
        "a tuple of floats": lambda: (1.5, 2.5),
        "a tuple of large ints": lambda: (10**40, -(10**40)),
        "a dict": lambda: {"a": 1.0},
        "a set": lambda: {1},
        "a generator": lambda: (i for i in range(2)),
        "a huge int": lambda: 10**40,
        "a large int": lambda: 2**63 - 1,
        "a negative int": lambda: -7,
        "zero": lambda: 0,
        "a float": lambda: 2.0,
        "NaN": lambda: float("nan"),
        "infinity": lambda: float("inf"),
        "a complex number": lambda: 1j,
        "a boolean": lambda: True,
        "a slice": lambda: slice(None),
        "an ellipsis": lambda: ...,
        "a NumPy array of objects": lambda: np.array([1, "a", None], object),
        "a NumPy array of strings": lambda: np.array(["a", "b"]),
        "an array without elements": lambda: np.zeros((0, 3), np.float32),
        "an array of 40 axes": lambda: jnp.ones((1,) * 40),
        "an array of ints": lambda: jnp.array([1, 2]),
        "an array of booleans": lambda: jnp.array([[True, False]]),
        "an array of complex numbers": lambda: jnp.ones((2, 3, 2), "complex64"),
        "a key": lambda: pullback.random.key(0),
        "a type of array": lambda: pullback.ShapeDtypeStruct((2,), "float32"),
        "an array": lambda: jnp.array([0.5, 1.5, 2.5]),
    }


def sound() -> list[Callable[[], Any]]:
    """What stands beside the nonsense."""
    return [
        lambda: jnp.array([0.25, 0.5, 0.75]),
        lambda: jnp.array([[2.0, 0.5], [0.5, 1.0]]),
        lambda: jnp.float32(0.5),
        lambda: jnp.array([0, 1, 1]),
        lambda: 1,
        lambda: 1.5,
    ]


BY_NAME: dict[str, Callable[[], Any]] = {
    "key": lambda: pullback.random.key(0), "shape": lambda: (2, 2), "dtype": lambda: "float32",
    "axis": lambda: 0, "f": lambda: first, "fun": lambda: first, "func": lambda: first, "function": lambda: first,
    "tree": lambda: {"a": jnp.ones(2)}, "treedef": lambda: pullback.tree.structure([0, 0]), "axes": lambda: (0,),
    "dimension": lambda: 0, "num": lambda: 2, "n": lambda: 2, "permutation": lambda: (1, 0),
    "padding": lambda: "VALID", "window_strides": lambda: (1,), "axis_name": lambda: "i",
}  # fmt: skip


class Call(NamedTuple):
    """A wrong call: the full name of the function, where the nonsense stands, its kind, and all arguments."""

    name: str
    function: Callable[..., Any]
    where: str
    kind: str
    arguments: list[Any]
    options: dict[str, Any]


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions of all modules by their full names, each once."""
    seen = set()
    for module in MODULES:
        face = importlib.import_module(f"pullback.{module}".rstrip("."))
        for name in sorted(getattr(face, "__all__", None) or [n for n in dir(face) if not n.startswith("_")]):
            function, full = getattr(face, name), f"{module}.{name}".lstrip(".")
            if not callable(function) or inspect.ismodule(function) or full in LEFT_OUT or id(function) in seen:
                continue
            if inspect.isclass(function) and (issubclass(function, BaseException) or module not in ("", "numpy")):
                continue
            seen.add(id(function))
            yield full, function


def wrong_calls(name: str, function: Callable[..., Any], seed: int, share: float = 1.0) -> Iterator[Call]:
    """Calls of a function in which the first, the second, or another argument is nonsense.

    The other arguments that the function needs are sound, as far as their names tell. Only a share of the calls is
    drawn.
    """
    draw = random.Random(f"{seed} {name}")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is p.empty for p in by_place)
    options = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.default is not p.empty]
    options = [o for o in options if o not in [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]]
    goods = sound()
    for kind, make in nonsense().items():
        for place in (0, 1, "option"):
            if draw.random() >= share:
                continue
            wanted = max(needed, 0 if place == "option" else place + 1)
            names = [p.name for p in by_place] + [""] * wanted
            arguments = [BY_NAME.get(names[i], draw.choice(goods))() for i in range(wanted)]
            if place != "option":
                arguments[place] = make()
                yield Call(name, function, f"argument {place}", kind, arguments, {})
            elif options:
                option = draw.choice(options)
                kept = wanted if option not in names[:wanted] else names.index(option)
                yield Call(name, function, option, kind, arguments[:kept], {option: make()})


class Late(BaseException):
    """A call did not end in time."""


def _late(number: int, frame: Any) -> None:
    raise Late


class Outcome(NamedTuple):
    """What came of a call: a class of outcomes, and for faults the place and the error."""

    what: str
    place: str = ""
    error: str = ""


def outcome(call: Call, seconds: float = SECONDS) -> Outcome:
    """Make the call, and say what came of it."""
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
    try:
        with np.printoptions():  # which some calls set to nonsense
            pullback.block_until_ready(call.function(*call.arguments, **call.options))
    except Late:
        return Outcome("late")
    except PullbackError:
        return Outcome("own")
    except Exception as error:
        return _of_another(call, error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return Outcome("accepted")


_PYTHONS = re.compile(
    r"missing \d+ required|takes \d+ positional|takes no arguments|unexpected keyword|multiple values for"
)


def _of_another(call: Call, error: Exception) -> Outcome:
    """The class of an error that is not of the library's own types."""
    frames = traceback.extract_tb(error.__traceback__)
    within = [f for f in frames if f.filename.startswith(str(ROOT / "src"))]
    if (
        not within
        or frames[-1].filename == __file__
        or isinstance(error, FileNotFoundError)
        or _PYTHONS.search(str(error))
    ):
        return Outcome("python")  # a missing argument, or the user's own function
    words = set(re.findall(r"\w+", str(error)))
    own = call.name.rpartition(".")[2]
    with contextlib.suppress(Exception):
        words_of_arguments = {p for p in inspect.signature(call.function).parameters if len(p) > 3}
        if own in words or (words & words_of_arguments and isinstance(error, (TypeError, ValueError))):
            return Outcome("named")
    last = within[-1]
    return Outcome(
        "raw", f"{last.filename.partition('pullback/')[2]}:{last.lineno}", f"{type(error).__name__}: {error}"[:110]
    )


def _child(seed: int, part: int, parts: int, share: float) -> None:
    """Make one part of the calls; say before each which it is, and after it what came of it if it is a fault."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _late)
    warnings.simplefilter("ignore")

    def say(**what: Any) -> None:
        print(json.dumps(what), file=answers, flush=True)

    answers, sys.stdout = sys.stdout, io.StringIO()
    counts: Counter[str] = Counter()
    for name, function in list(public_functions())[part::parts]:
        for call in wrong_calls(name, function, seed, share):
            say(call=f"{name}, {call.where}: {call.kind}")
            faulthandler.dump_traceback_later(2 * PATIENCE, exit=True)  # if the call does not even see the alarm
            found = outcome(call)
            if found.what == "late":
                same = wrong_calls(name, function, seed, share)
                again = next(c for c in same if (c.where, c.kind) == (call.where, call.kind))
                found = outcome(again, PATIENCE)
            counts[found.what] += 1
            if found.what in ("raw", "late"):
                say(name=name, where=call.where, kind=call.kind, **found._asdict())
    say(counts=counts)


class Report(NamedTuple):
    """What came of all calls: how many of each class, the faults, and the calls at which a process ended."""

    counts: Counter[str]
    faults: list[dict[str, str]]
    ended: list[str]

    def run(self, command: list[str], folder: str) -> None:
        """Run a process that makes a part of the calls, and take what it says."""
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
        last = ""
        with tempfile.TemporaryFile("w+") as errors:
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, cwd=folder, text=True, env=environment
            ) as child:
                assert child.stdout is not None
                for line in child.stdout:
                    said = json.loads(line)
                    last = said.get("call", last)
                    self.counts.update(said.get("counts", {}))
                    if "what" in said:
                        self.faults.append(said)
            if child.returncode:
                errors.seek(0)
                self.ended.append(f"{last}: the process ended with {child.returncode}\n{errors.read()[-2000:]}")

    def text(self) -> str:
        """The faults by the places where they were raised, and the counts."""
        lines = list(self.ended)
        places = Counter((f["what"], f["place"], f["error"].partition(":")[0]) for f in self.faults)
        for place, count in places.most_common():
            here = [f for f in self.faults if (f["what"], f["place"], f["error"].partition(":")[0]) == place]
            calls = sorted({f"{f['name']}({f['where']}={f['kind']})" for f in here})
            lines += [f"{count:4} {place[0]} {place[1]} {here[0]['error']}", f"       {'; '.join(calls[:6])}"]
        counts = ", ".join(f"{n} {what}" for what, n in self.counts.most_common())
        return "\n".join([*lines, f"{self.counts.total()} calls: {counts}"])


def run(seed: int, processes: int = 2, share: float = 1.0) -> Report:
    """Make the calls of a seed, or a share of them, in some processes, each in an empty folder."""
    report = Report(Counter(), [], [])
    command = [sys.executable, "-m", "tests.laws.wrong_calls", f"--seed={seed}", f"--processes={processes}"]
    command += [f"--share={share}"]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        parts = [[*command, f"--part={part}"] for part in range(processes)]
        list(pool.map(report.run, parts, [folder] * processes))
    return report


def main() -> int:
    """Make the calls that the command line asks for."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--most", type=int, default=50, help="how many raw errors there may be")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--share", type=float, default=1.0, help="which part of the calls to make, up to 1")
    options.add_argument("--part", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.part is not None:
        _child(given.seed, given.part, given.processes, given.share)
        return 0
    report = run(given.seed, given.processes, given.share)
    print(report.text())
    return int(report.counts["raw"] > given.most or report.counts["late"] > 0 or bool(report.ended))


if __name__ == "__main__":
    sys.exit(main())
