"""How long programs take to compile, and to run once they are compiled.

``python -m benchmarks.compile_time`` prints for each program the time from tracing to the compiled program, of
Pullback, of Pullback with ``equal_parts`` off and of JAX, and the ratios of the times of a run. Each figure is from a
process of its own that compiles into no cache; the processes take turns. ``--phases`` prints where the compiler's time
goes, by ``perf``, where that is installed.
"""

import argparse
import importlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy

Program = tuple[Callable[..., Any], tuple[Any, ...]]
VARIANTS = {"pullback": ("pullback", "1"), "whole": ("pullback", "0"), "jax": ("jax", "1")}


def _random(*shape: int, seed: int = 0) -> Any:
    numbers = numpy.random.default_rng(seed).standard_normal(shape)
    return (numbers / numpy.sqrt(shape[0])).astype(numpy.float32)


def transformer(library: Any, layers: int, width: int = 64) -> Program:
    """The gradient of a transformer with 4 heads, of two sequences of 16."""
    np, nn, heads, batch, length = library.numpy, library.nn, 4, 2, 16

    def layer(seed: int) -> dict[str, Any]:
        square = {name: _random(width, width, seed=seed + i) for i, name in enumerate("qkvo")}
        norms = {name: numpy.full(width, name[0] == "s", numpy.float32) for name in ("s1", "b1", "s2", "b2")}
        wide = {"up": _random(width, 4 * width, seed=seed + 5), "down": _random(4 * width, width, seed=seed + 6)}
        return {**square, **norms, **wide, "up_bias": _random(4 * width), "down_bias": _random(width)}

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        mean = np.mean(x, -1, keepdims=True)
        variance = np.mean((x - mean) ** 2, -1, keepdims=True)
        return (x - mean) / np.sqrt(variance + 1e-5) * scale + shift

    def block(p: Any, x: Any) -> Any:
        h = norm(x, p["s1"], p["b1"])
        q, k, v = ((h @ p[name]).reshape(batch, length, heads, width // heads) for name in "qkv")
        scores = np.einsum("bqhd,bkhd->bhqk", q, k) / float(numpy.sqrt(width // heads))
        mixed = np.einsum("bhqk,bkhd->bqhd", nn.softmax(scores, axis=-1), v)
        x = x + mixed.reshape(batch, length, width) @ p["o"]
        h = norm(x, p["s2"], p["b2"])
        return x + nn.gelu(h @ p["up"] + p["up_bias"]) @ p["down"] + p["down_bias"]

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        for p in parameters:
            x = block(p, x)
        return np.mean((x - y) ** 2)

    parameters = [layer(10 * i) for i in range(layers)]
    x, y = (_random(batch, length, width, seed=seed) for seed in (1, 2))
    return library.grad(loss), (parameters, x, y)


def convolutional(library: Any, layers: int = 50) -> Program:
    """The gradient of a residual convolutional network in three stages, of eight images of 16 by 16."""
    np, nn, lax = library.numpy, library.nn, library.lax

    def convolution(x: Any, kernel: Any, stride: int = 1) -> Any:
        return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        mean = np.mean(x, (0, 1, 2))
        variance = np.mean((x - mean) ** 2, (0, 1, 2))
        return (x - mean) / np.sqrt(variance + 1e-5) * scale + shift

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        x = convolution(x, parameters["first"])
        for stage in parameters["stages"]:
            for i, (one, other, narrow) in enumerate(stage):
                stride = 2 if i == 0 and narrow is not None else 1
                h = nn.relu(norm(convolution(x, one["kernel"], stride), one["scale"], one["shift"]))
                h = norm(convolution(h, other["kernel"]), other["scale"], other["shift"])
                x = nn.relu(h + (x if narrow is None else convolution(x, narrow, stride)))
        return np.mean((np.mean(x, (1, 2)) @ parameters["last"] - y) ** 2)

    def layer(inputs: int, outputs: int, seed: int) -> dict[str, Any]:
        ones = numpy.ones(outputs, numpy.float32)
        return {"kernel": _random(3, 3, inputs, outputs, seed=seed) * 0.3, "scale": ones, "shift": 0 * ones}

    stages, inputs = [], 16
    for outputs in (16, 32, 64):
        stage = []
        for i in range((layers - 2) // 6):
            narrow = None if inputs == outputs else _random(1, 1, inputs, outputs)
            stage.append((layer(inputs, outputs, i), layer(outputs, outputs, i + 50), narrow))
            inputs = outputs
        stages.append(stage)
    parameters = {"first": _random(3, 3, 3, 16), "stages": stages, "last": _random(64, 10)}
    return library.grad(loss), (parameters, _random(8, 16, 16, 3), _random(8, 10))


def chain(library: Any, steps: int = 100) -> Program:
    """The gradient of ``y = sin(y) + s``, many times, with respect to 10,000 numbers and to the number ``s``."""

    def total(y: Any, s: Any) -> Any:
        for _ in range(steps):
            y = library.numpy.sin(y) + s
        return y.sum()

    return library.grad(total, (0, 1)), (numpy.linspace(0, 1, 10_000, dtype=numpy.float32), numpy.float32(0.1))


def hessian(library: Any) -> Program:
    """The Hessian of a network of ten layers of 10."""
    np = library.numpy

    def loss(x: Any, weights: Any) -> Any:
        for w in weights:
            x = np.tanh(x @ w)
        return np.sum(x**2)

    return library.hessian(loss), (_random(10), [_random(10, 10, seed=i) for i in range(10)])


def odeint(library: Any) -> Program:
    """The gradient of a solution of the Lorenz equations."""
    np = library.numpy
    solve = importlib.import_module(f"{library.__name__}.experimental.ode").odeint

    def slope(y: Any, t: Any, p: Any) -> Any:
        return np.stack([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])

    def loss(p: Any, y: Any, times: Any) -> Any:
        return np.sum(solve(slope, y, times, p) ** 2)

    times = numpy.linspace(0, 1, 10, dtype=numpy.float32)
    return library.grad(loss), (numpy.array([10, 28, 2.7], numpy.float32), numpy.ones(3, numpy.float32), times)


PROGRAMS: dict[str, Callable[[Any], Program]] = {
    "transformer-6": lambda library: transformer(library, 6),
    "transformer-24": lambda library: transformer(library, 24),
    "transformer-96": lambda library: transformer(library, 96),
    "transformer-24-width-256": lambda library: transformer(library, 24, 256),
    "transformer-24-width-1024": lambda library: transformer(library, 24, 1024),
    "convolutional-50": convolutional,
    "chain-100": chain,
    "hessian": hessian,
    "odeint": odeint,
}


def measure(name: str, variant: str, seconds: float) -> dict[str, float]:
    """In this process: the seconds of tracing and lowering, of compiling, by the clock and of processors, of a run."""
    package, parts = VARIANTS[variant]
    library: Any = importlib.import_module(package)
    for module in ("numpy", "nn", "lax"):
        importlib.import_module(f"{package}.{module}")
    library.config.update("jax_enable_compilation_cache", False)
    if package == "pullback":
        library.config.update("equal_parts", parts == "1")
    library.jit(lambda x: x + 1)(1.0)
    function, arguments = PROGRAMS[name](library)
    start = time.perf_counter()
    lowered = library.jit(function).lower(*arguments)
    between, processor = time.perf_counter(), time.process_time()
    compiled = lowered.compile()
    stop, processor = time.perf_counter(), time.process_time() - processor
    arguments = library.device_put(arguments)
    best = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        library.block_until_ready(compiled(*arguments))
        best = min(best, time.perf_counter() - began)
    return {"lower": between - start, "compile": stop - between, "processor": processor, "run": best}


def _in_a_process(name: str, variant: str, seconds: float) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.compile_time", "--measure", name, variant, "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def compare(names: Sequence[str], variants: Sequence[str], rounds: int, seconds: float) -> None:
    """Print the least times of each program."""
    print("| program | " + " | ".join(f"{v}: lower, compile, run" for v in variants) + " | compile | run |")
    print("|---" * (len(variants) + 3) + "|")
    for name in names:
        taken = [[_in_a_process(name, variant, seconds) for variant in variants] for _ in range(rounds)]
        best = [{key: min(row[i][key] for row in taken) for key in taken[0][i]} for i in range(len(variants))]
        shown = [f"{b['lower']:.2f} s, {b['compile']:.2f} s, {b['run'] * 1e3:.2f} ms" for b in best]
        whole = [b["lower"] + b["compile"] for b in best]
        compiling = ", ".join(f"{whole[0] / w:.2f} of {v}" for w, v in zip(whole[1:], variants[1:], strict=True))
        running = ", ".join(f"{best[0]['run'] / b['run']:.2f}" for b in best[1:])
        print(f"| {name} | " + " | ".join(shown) + f" | {compiling} | {running} |", flush=True)


PHASES = {
    "passes over HLO": "xla::cpu::CpuCompiler::RunHloPasses",
    "of these, fusion": "xla::cpu::CpuInstructionFusion::Run",
    "buffers, kernels": "xla::cpu::CpuCompiler::RunBackend",
    "loops to LLVM": "xla::cpu::FusionCompiler::Compile",
    "LLVM's passes": "xla::cpu::IrCompiler::RunIrPasses",
    "machine code": "xla::cpu::IrCompiler::EmitMachineCode",
}
_TOP = ("passes over HLO", "buffers, kernels", "loops to LLVM", "LLVM's passes", "machine code")


def phases(names: Sequence[str], variant: str) -> None:
    """Print for each program the processor seconds of each phase of compiling, on all threads, by ``perf``."""
    print("| program | " + " | ".join(PHASES) + " | all |")
    print("|---" * (len(PHASES) + 2) + "|")
    for name in names:
        with tempfile.NamedTemporaryFile(suffix=".perf") as record:
            child = [sys.executable, "-m", "benchmarks.compile_time", "--measure", name, variant, "--seconds", "0"]
            recording = ["perf", "record", "-F", "200", "-g", "-o", record.name, *child]
            done = subprocess.run(recording, capture_output=True, text=True, check=True)
            taken = next(json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))["processor"]
            options = ["--children", "--stdio", "-g", "none", "--percent-limit", "0"]
            report = subprocess.run(
                ["perf", "report", "-i", record.name, *options], capture_output=True, text=True, check=True
            ).stdout
        shares = {}
        for phase, function in PHASES.items():
            found = re.findall(rf"^\s*([\d.]+)%.*\] {re.escape(function)}", report, re.MULTILINE)
            shares[phase] = max(map(float, found), default=0.0)
        whole = sum(shares[phase] for phase in _TOP)
        shown = " | ".join(f"{share / whole * taken:.2f}" for share in shares.values())
        print(f"| {name} | {shown} | {taken:.2f} |", flush=True)


def main() -> None:
    """Print the table, or what one process measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a prefix of the names of programs")
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="for how long each compiled program runs")
    parser.add_argument("--phases", action="store_true")
    parser.add_argument("--measure", nargs=2, metavar=("PROGRAM", "VARIANT"))
    options = parser.parse_args()
    names = [name for name in PROGRAMS if name.startswith(options.only)]
    if options.measure:
        print(json.dumps(measure(options.measure[0], options.measure[1], options.seconds)))
    elif options.phases:
        phases(names, options.variants[0])
    else:
        compare(names, options.variants, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
