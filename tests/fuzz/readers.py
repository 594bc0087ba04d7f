"""``python -m tests.fuzz.readers --count 20000 --seed 0``: damaged bytes for everything that reads bytes.

Mutation ``i`` of a seed is the same in each run. A reader may return something, or raise the errors that its
documentation names. It is read in a process of its own: if that ends, or does not go on, the mutation is a failure, and
another process goes on after it. ``--only export_bytes --first 17 --count 1`` repeats mutation 17 of a reader.

``program_bytes`` are programs whose bytes are damaged and whose checksum is right: they reach the compiler, which may
end the process. They are read only by hand, and their crashes are counted, not failures.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import io
import json
import os
import pickle
import pickletools
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("PULLBACK_TIERED", "off")

import numpy as np

import pullback
import pullback.numpy as jnp
from pullback import export, jit, lax
from pullback import random as keys
from pullback.backends.compiler import disk_cache
from pullback.backends.compiler.backend import backend
from pullback.core.errors import CompilationError, ExportError, PatternError, PullbackError
from pullback.core.types import ShapedArray
from pullback.derivatives import Colouring, colour_hessian, colour_jacobian
from pullback.export import container
from tests.helpers import ROOT

Random = random.Random
X = np.arange(3, dtype="float32")
PROGRAM = ["-m", "tests.fuzz.readers"]
ENDLESS = 60.0
"""After how many seconds a mutation counts as one that does not end; most take less than a hundredth."""


# Mutations ------------------------------------------------------------------------------------------------------------


def mutated_bytes(rng: Random, data: bytes) -> bytes:
    """Flip, cut, insert, repeat or swap some bytes."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 10))):
        at, length = rng.randrange(len(out) + 1), rng.choice((1, 1, 2, 4, 8, 64))
        kind = rng.randrange(6)
        if kind < 2 and at < len(out):
            out[at] = rng.choice((out[at] ^ (1 << rng.randrange(8)), rng.randrange(256), 0, 255))
        elif kind == 2:
            del out[at : at + length]
        elif kind == 3:
            out[at:at] = rng.randbytes(length)
        elif kind == 4:
            out[at:at] = out[at : at + length]
        else:
            other = rng.randrange(len(out) + 1)
            out[at : at + length] = out[other : other + length]
    return bytes(out)[: rng.randrange(len(out) + 1) if rng.random() < 0.05 else None]


VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 2**40, 2**80, 1.5, float("inf"), "", "main", "program", "float32", "object", "b",
    "2*b+1", "b^64", "mod(b, 0)", "b == b + 1", "cpu", "ä\0", [], {}, [[]], ["leaf"], ["none"], ["tuple", []],
    ["node", "n", "YQ==", []], ["dict", ["a", "a"], [["leaf"], ["leaf"]]], [0], [-1], ["a"], [[["i", 2]], [["i"]]],
]  # fmt: skip


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all parts of JSON data, the whole first."""
    yield path
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield from places(data[key], (*path, key))


def part(data: Any, path: Sequence[Any]) -> Any:
    for key in path:
        data = data[key]
    return data


def mutated_json(rng: Random, data: Any) -> Any:
    """Replace, remove, insert or copy some parts of JSON data."""
    data = json.loads(json.dumps(data))
    for _ in range(rng.choice((1, 1, 2, 3))):
        *above, key = rng.choice([path for path in places(data) if path] or [(0,)])
        at, kind = part(data, above), rng.randrange(5)
        if not at:
            break
        if kind == 0:
            del at[key]
        elif kind == 1 and isinstance(at, list):
            at.insert(key, copy.deepcopy(rng.choice(VALUES)))
        elif kind == 2:
            at[key] = json.loads(json.dumps(part(data, rng.choice(list(places(data))))))
        else:
            at[key] = copy.deepcopy(rng.choice(VALUES))
    return data


def mutated_pickle(rng: Random, data: bytes) -> bytes:
    """Replace some constants of a pickle, each by one of the same kind."""
    operations = list(pickletools.genops(data))
    ends = [at for _, _, at in operations[1:]] + [len(data)]
    texts = [arg for _, arg, _ in operations if isinstance(arg, str) and " " not in arg]
    pieces = [data[at:end] for (_, _, at), end in zip(operations, ends, strict=True)]
    usable = [i for i, (op, _, _) in enumerate(operations) if op.name in _CONSTANTS]
    for i in rng.sample(usable, min(len(usable), rng.choice((1, 1, 2, 4)))):
        arg, kind = operations[i][1], rng.randrange(8)
        if kind == 0:
            new: Any = rng.choice((None, True, 0, -1, 3, 2**31, 2**70, 1.5, "", b"", "x", (), [], {}))
        elif isinstance(arg, str):
            new = rng.choice([*texts, "", arg + "x"])
        elif isinstance(arg, bytes):
            new = mutated_bytes(rng, arg)
        else:
            new = rng.choice((0, 1, -1, 2, 7, 255, 2**31 - 1, 2**63))
        pieces[i] = pickle.dumps(new, 2 if kind == 0 else 3)[2:-1]
    return b"".join(pieces)


_CONSTANTS = {
    "BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "BINBYTES", "SHORT_BINBYTES", "NEWTRUE", "NEWFALSE", "NONE",
    "BINFLOAT",
}  # fmt: skip
WORDS = {
    r"\d+": ["0", "1", "2", "3", "7", "4611686018427387904", "99999"],
    r"stablehlo\.\w+": ["stablehlo.add", "stablehlo.sine", "stablehlo.infeed", "stablehlo.reshape", "stablehlo.iota"],
    r"tensor<[^>]*>": ["tensor<f32>", "tensor<3xf32>", "tensor<?xf32>", "tensor<3xi32>", "tensor<0xf32>", "tensor<i1>"],
    r"@\w+": ["@main", "@program", "@Sharding", "@xla_ffi_python_cpu_callback", "@lapack_spotrf_ffi", "@nope"],
    r"%\w+": ["%0", "%1", "%2", "%arg0", "%c", "%cst"],
}
"""Kinds of words of a program as text, with others of each kind."""


def mutated_program(rng: Random, text: str) -> str:
    """Replace some words of a program, by others of the program or of ``WORDS``; copy or remove some lines."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        if rng.random() < 0.15:
            lines = text.splitlines()
            at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[at : at + rng.randrange(2)] = [lines[other]] if rng.random() < 0.5 else []
            text = "\n".join(lines)
            continue
        kind = rng.choice(list(WORDS))
        found = list(re.finditer(kind, text))
        if found:
            one = rng.choice(found)
            new = rng.choice([*WORDS[kind], *(other[0] for other in found)])
            text = text[: one.start()] + new + text[one.end() :]
    return text


# Readers --------------------------------------------------------------------------------------------------------------


class Reader(NamedTuple):
    """Something that reads bytes.

    Attributes:
      samples: returns bytes, or whatever ``mutate`` takes.
      mutate: takes a generator of random numbers and a sample, and returns what ``read`` takes.
      read: reads, and uses what it has read.
      errors: the errors that it may raise.
      share: how many mutations it gets, as a fraction of those of the others.
      compiler: whether damaged programs reach the compiler, which may end the process.
    """

    samples: Callable[[], Sequence[Any]]
    mutate: Callable[[Random, Any], Any]
    read: Callable[[Any], object]
    errors: tuple[type[BaseException], ...]
    share: float = 1.0
    compiler: bool = False


@cache
def exported() -> list[Any]:
    """Exported functions with trees, derivatives, symbolic sizes, keys, shardings, loops and LAPACK."""
    from pullback import NamedSharding, P
    from pullback.sharding import AbstractMesh

    rows = NamedSharding(AbstractMesh((1,), ("i",)), P("i"))
    rank = pullback.ShapeDtypeStruct(export.symbolic_shape("b, 2"), "float32")
    functions = [
        (jit(lambda x, *, y: {"a": x * y["k"], "b": [x, None]}), (X,), {"y": {"k": 2.0}}),
        (jit(lambda x: x * 2), (rank,), {}),
        (jit(lambda k: keys.uniform(k)), (keys.key(0),), {}),
        (jit(lambda x: x * x.sum(), in_shardings=rows), (X,), {}),
        (jit(lambda x: lax.fori_loop(0, 3, lambda _, y: jnp.sin(y), x)), (X,), {}),
        (jit(jnp.linalg.cholesky), (np.eye(3, dtype="float32"),), {}),
    ]
    return [export.export(f)(*args, **kwargs) for f, args, kwargs in functions]


def files(format: str) -> list[bytes]:
    found = []
    for one in exported():
        try:
            found.append(bytes(one.serialize(1 if one.has_vjp() and len(one.out_avals) < 3 else 0, format)))
        except PullbackError:  # JAX's format has no keys
            continue
    return found


def parts(data: bytes) -> tuple[list[dict[str, Any]], bytes]:
    """The description and the programs of a file."""
    rest = data[container._HEAD :]
    end = 8 + int.from_bytes(rest[:8], "little")
    return json.loads(rest[8:end]), rest[end:]


def joined(description: bytes, programs: bytes) -> bytes:
    """A file of a description and programs, with the right checksum."""
    return container.sealed(len(description).to_bytes(8, "little") + description + programs)


def called(data: bytes) -> None:
    """Read an exported function, and call it with arguments of the types that it names."""
    function = export.deserialize(data)
    if len(function.in_avals) > 100:
        return
    leaves = [
        np.ones([n if isinstance(n, int) and n < 100 else 3 for n in a.shape], _host(a)) for a in function.in_avals
    ]
    args, kwargs = pullback.tree.unflatten(function.in_tree, leaves)
    pullback.tree.leaves(function.call(*args, **kwargs))
    if function.has_vjp():
        pullback.vjp(lambda *args: function.call(*args, **kwargs), *args)[1](function.call(*args, **kwargs))


def _host(aval: ShapedArray) -> Any:
    return aval.dtype if np.dtype(aval.dtype).kind != "V" else "float32"


def with_description(rng: Random, data: bytes) -> bytes:
    description, programs = parts(data)
    if rng.random() < 0.25:
        return joined(mutated_bytes(rng, json.dumps(description).encode()), programs)
    return joined(json.dumps(mutated_json(rng, description)).encode(), programs)


def with_program(change: Callable[[Random, bytes], bytes | None]) -> Callable[[Random, bytes], bytes]:
    def mutate(rng: Random, data: bytes) -> bytes:
        description, programs = parts(data)
        first = description[0]
        program = change(rng, programs[: first["length"]])
        if program is None:
            return b""
        return joined(json.dumps([{**first, "length": len(program)}]).encode(), program)

    return mutate


def rewritten(rng: Random, program: bytes) -> bytes | None:
    """A portable program whose text was changed; None if it is a program no longer."""
    try:
        return backend().to_portable(mutated_program(rng, str(backend().from_portable(program))))
    except CompilationError:
        return None


@cache
def cache_entry() -> tuple[str, bytes, bytes]:
    """A directory with an entry of the persistent cache, the key of the entry, and its content."""
    directory = tempfile.mkdtemp()
    key, payload = hashlib.sha256(b"key").digest(), b"a program " * 100
    header = disk_cache._HEADER.pack(disk_cache._MAGIC, disk_cache._FORMAT, key, len(payload), _digest(payload))
    return directory, key, header + payload


def _digest(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest()


def read_entry(data: bytes) -> None:
    """Read an entry of the cache: whatever was changed must not get to the compiler's reader."""
    directory, key, good = cache_entry()
    path = os.path.join(directory, key.hex())
    Path(path).write_bytes(data)
    os.chmod(path, 0o600)
    found = disk_cache._read(path, key)
    assert found == good[disk_cache._HEADER.size :], "a changed program was read"
    assert data == good, "a changed file was read"


def arrays() -> list[bytes]:
    found = []
    for x in (
        jnp.ones((2, 3)),
        jnp.ones(3, "bfloat16"),
        jnp.arange(3) > 1,
        jnp.ones((), "complex64"),
        jnp.zeros((0, 2)),
    ):
        file = io.BytesIO()
        jnp.save(file, x)
        found.append(file.getvalue())
    file = io.BytesIO()
    jnp.savez(file, x, name=x)
    return [*found, file.getvalue()]


def load(data: bytes) -> None:
    found = jnp.load(io.BytesIO(data))
    if isinstance(found, jnp.ndarray):
        repr(found + found)


@cache
def _folder() -> str:
    return tempfile.mkdtemp()


def colourings() -> list[bytes]:
    found = []
    for colouring in (colour_jacobian(np.eye(4, k=1)), colour_hessian(np.ones((3, 3)), "acyclic")):
        path = os.path.join(_folder(), "written.npz")
        colouring.save(path)
        found.append(Path(path).read_bytes())
    return found


def load_colouring(data: bytes) -> None:
    path = Path(_folder()) / "damaged.npz"
    path.write_bytes(data)
    repr(Colouring.load(path))


@cache
def _things() -> list[Any]:
    jaxpr = pullback.make_jaxpr(lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, jnp.linalg.inv(x @ x.T)))(
        np.eye(2, dtype="float32")
    )
    derivative = pullback.make_jaxpr(pullback.grad(lambda x: lax.fori_loop(0, 3, lambda i, y: jnp.sin(y), x)))(1.0)
    mesh = pullback.make_mesh((1,), ("i",))
    return [
        jnp.ones((2, 3)), jnp.ones(3, "bfloat16"), jnp.asarray(2.0), keys.key(0), keys.split(keys.key(1, impl="rbg")),
        ShapedArray((2, 3), np.dtype("float32")), pullback.ShapeDtypeStruct((2,), "int32"), jaxpr, derivative,
        pullback.tree.structure({"a": (1, [2, None])}), pullback.NamedSharding(mesh, pullback.P("i")),
        ExportError("no"), keys.key(0).dtype,
    ]  # fmt: skip


_numpy: list[Any] = []
"""The objects of NumPy in the pickles, which have numbers there: NumPy's own readers crash when they are damaged."""


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> int | None:
        if not isinstance(obj, (np.ndarray, np.generic, np.dtype)):
            return None
        _numpy.append(obj)
        return len(_numpy) - 1


@cache
def pickles() -> list[bytes]:
    """Pickles of arrays, keys, types, jaxprs, structures of trees and shardings."""
    found = []
    for thing in _things():
        file = io.BytesIO()
        _Pickler(file, 3).dump(thing)
        found.append(file.getvalue())
    return found


@cache
def _globals() -> frozenset[tuple[str, str]]:
    """The classes and functions that the pickles refer to: a mutation may confuse them, but name no others."""
    texts = (arg for data in pickles() for op, arg, _ in pickletools.genops(data) if op.name == "GLOBAL")
    return frozenset(tuple(text.split(" ", 1)) for text in texts)  # type: ignore[misc]


class _Careful(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _globals():
            raise pickle.UnpicklingError(f"{module}.{name} is not looked up")
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        return _numpy[pid % len(_numpy) if type(pid) is int else 0]


def unpickled(data: bytes) -> None:
    """Read a pickle, and use what it holds as its type suggests."""
    found = _Careful(io.BytesIO(data)).load()
    repr(found)
    if isinstance(found, jnp.ndarray) and found.size < 10**6:
        repr(found + found)
    if hasattr(found, "jaxpr"):
        args = [np.ones([n for n in a.shape if n < 10], "float32") for a in found.in_avals[:10]]
        pullback.core.check_jaxpr(found.jaxpr)
        pullback.core.jaxpr_as_fun(found)(*args)


READERS = {
    "export_bytes": Reader(lambda: files("pullback"), mutated_bytes, export.deserialize, (ExportError,), 2),
    "export_description": Reader(lambda: files("pullback"), with_description, export.deserialize, (ExportError,), 2),
    "export_jax": Reader(lambda: files("jax"), mutated_bytes, export.deserialize, (ExportError,), 2),
    "export_call": Reader(lambda: files("pullback"), with_description, called, (PullbackError,), 0.2),
    "export_program": Reader(lambda: files("pullback"), with_program(rewritten), called, (PullbackError,), 0.1),
    "cache": Reader(lambda: [cache_entry()[2]], mutated_bytes, read_entry, (disk_cache._DamagedError,)),
    "numpy_load": Reader(arrays, mutated_bytes, load, (PullbackError, OSError)),
    "colouring": Reader(colourings, mutated_bytes, load_colouring, (PatternError,)),
    "pickle": Reader(pickles, mutated_pickle, unpickled, (Exception,)),
    "program_bytes": Reader(
        lambda: files("pullback"), with_program(mutated_bytes), called, (PullbackError,), 0.1, compiler=True
    ),
}


# Runs -----------------------------------------------------------------------------------------------------------------


def work(name: str, seed: int, first: int, count: int, progress: int | None = None) -> Counter[str]:
    """Read ``count`` mutations in this process, and count what happened; failures are under ``FAILURE ...``.

    Args:
      name: the reader.
      seed, first, count: which mutations.
      progress: a file descriptor, to which the number of the current mutation is written.
    """
    reader = READERS[name]
    samples = reader.samples()
    outcomes: Counter[str] = Counter()
    for i in range(first, first + count):
        if progress is not None:
            os.pwrite(progress, f"{i:12} {json.dumps(outcomes)}\n".encode().ljust(4000), 0)
        rng = Random(f"{seed} {name} {i}")
        data = reader.mutate(rng, rng.choice(samples))
        try:
            reader.read(data)
            outcomes["read"] += 1
        except reader.errors as error:
            bad = isinstance(error, (SystemError, RecursionError)) and not isinstance(error, PullbackError)
            outcomes[f"FAILURE {i}: {error!r:.200}" if bad else type(error).__name__] += 1
        except Exception as error:
            outcomes[f"FAILURE {i}: {error!r:.200}"] += 1
    return outcomes


def run(name: str, seed: int, count: int, first: int = 0) -> Counter[str]:
    """Read mutations in other processes, each of which goes on where the one before it ended.

    Returns:
      How often each thing happened; failures are under ``FAILURE ...``, ends of processes under ``CRASH ...``, and
      mutations that did not end under ``HANG ...``.
    """
    outcomes: Counter[str] = Counter()
    stop = first + count
    while first < stop:
        with tempfile.NamedTemporaryFile() as file:
            asked = [name, str(seed), str(first), str(stop - first), file.name]
            command = [sys.executable, "-W", "ignore", *PROGRAM, "--worker", *asked]
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            ended = _waited(process, Path(file.name))
            output = process.communicate()[0]
            if process.returncode == 0:
                return outcomes + Counter(json.loads(output.splitlines()[-1]))
            number, _, so_far = Path(file.name).read_text().strip().partition(" ")
            if not number:
                raise RuntimeError(f"{name}: the process ended with {process.returncode} before it read anything")
            outcomes += Counter(json.loads(so_far))
            outcomes[f"{f'CRASH {process.returncode}' if ended else 'HANG'} at {number}"] += 1
            first = int(number) + 1
    return outcomes


def _waited(process: subprocess.Popen[str], progress: Path) -> bool:
    """Wait until a process ends, or kill it if it does not go on; whether it ended by itself."""
    seen, since = "", time.monotonic()
    while True:
        try:
            process.wait(0.05 if time.monotonic() - since < 1 else 0.5)
            return True
        except subprocess.TimeoutExpired:
            now = progress.read_text()[:13]
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > ENDLESS:
                process.kill()
                return False


def failures(name: str, outcomes: Counter[str]) -> list[str]:
    """What of the outcomes of a reader must not be."""
    bad = ("FAILURE",) if READERS[name].compiler else ("FAILURE", "CRASH", "HANG")
    return [outcome for outcome in outcomes if outcome.startswith(bad)]


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--worker"]:
        name, seed, first, count, file = arguments[1:]
        with open(file, "r+b", buffering=0) as progress:
            print("\n" + json.dumps(work(name, int(seed), int(first), int(count), progress.fileno())))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000, help="mutations of each reader, times its share")
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutation")
    parser.add_argument("--only", nargs="+", choices=list(READERS), default=list(READERS))
    given = parser.parse_args(arguments)
    total, wrong = 0, 0
    for name in given.only:
        count = max(1, round(given.count * READERS[name].share))
        start = time.monotonic()
        outcomes = run(name, given.seed, count, given.first)
        bad = failures(name, outcomes)
        total, wrong = total + count, wrong + len(bad)
        print(f"{name}: {count} in {time.monotonic() - start:.0f} s, {len(bad)} failures: {dict(outcomes)}", flush=True)
    print(f"{total} mutations, {wrong} failures")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
