"""What a call costs each device: peaks of memory, and what is exchanged."""

import subprocess
import sys

import pytest

import pullback
import pullback.numpy as jnp
from pullback import ShapeDtypeStruct, analysis
from pullback.analysis import Collective, Cost
from pullback.core.errors import ArgumentError

OVER_EIGHT_DEVICES = """
import pullback
pullback.config.update("num_cpu_devices", 8)
import pullback.numpy as jnp
from pullback import P, analysis, lax
from pullback.sharding import AxisType, NamedSharding

mesh = pullback.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
whole, rows, heads = (NamedSharding(mesh, P(*spec)) for spec in ((), ("data",), (None, "model")))
kind = pullback.ShapeDtypeStruct

def loss(w, x):
    h, _ = lax.scan(lambda h, _: (jnp.tanh(h @ w), None), x, None, length=5)
    return jnp.sum(h)

step = pullback.jit(lambda w, x: w - pullback.grad(loss)(w, x), in_shardings=(whole, rows), out_shardings=whole)
found = analysis.cost(step)(kind((64, 64), "float32"), kind((16, 64), "float32"))
assert found.devices == 8
assert set(found.moved) == {("data",)}, found
assert {each.kind for each in found.collectives} == {"all-reduce"}
least = 64 * 64 * 4
assert least <= found.moved["data",] <= 5 * least, found
(sentence,) = found.describe(bandwidth=1e9, measured=0.5).splitlines()
moved = sum(each.moved * each.times for each in found.collectives) / 1000
assert sentence == f"each call moves {moved:.3g} kB a device over data; at 1 GB/s that is {moved:.0f} µs of 500 ms"
assert found.collectives[0].line.endswith(":16") and "<string>" in found.collectives[0].line, found

# Axes that are contracted together stay two axes: one made of them, a divided one first, would be gathered.
c, w = kind((8, 16, 4, 16), "float32"), kind((64, 4, 16), "float32")
of_c = NamedSharding(mesh, P("data", None, "model"))
product = pullback.jit(lambda c, w: jnp.einsum("bshd,whd->bsw", c, w), in_shardings=(of_c, heads), out_shardings=rows)
assert {each.kind for each in analysis.cost(product)(c, w).collectives} == {"all-reduce"}
assert "tensor<64x64xf32>" not in product.lower(c, w).as_text()
assert "tensor<64x64xf32>" in pullback.jit(lambda c, w: jnp.einsum("bshd,whd->bsw", c, w)).lower(c, w).as_text()

shifted = pullback.shard_map(lambda x: lax.ppermute(x, "model", [(i, (i + 1) % 4) for i in range(4)]),
                             mesh=mesh, in_specs=P("model"), out_specs=P("model"))
(shift,) = analysis.cost(shifted)(kind((8, 3), "float32")).collectives
assert shift[:5] == ("collective-permute", ("model",), 4, 24, 1), shift
print("done")
"""


def test_over_eight_devices() -> None:
    done = subprocess.run([sys.executable, "-c", OVER_EIGHT_DEVICES], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_on_one_device() -> None:
    found = analysis.cost(lambda x: jnp.sin(x) + 1)(jnp.ones(1000))
    assert (found.devices, found.peak_memory, found.temporaries, found.collectives) == (1, 8000, 0, ())
    assert found.moved == {}
    assert found.seconds(1e9) == 0


def test_donated_memory_counts_once() -> None:
    add = pullback.jit(lambda x: x + 1, donate_argnums=0)
    assert analysis.cost(add)(pullback.ShapeDtypeStruct((1000,), "float32")).peak_memory == 4000


COST = Cost(
    8, 2_000_000, 1_000, (
        Collective("all-reduce", ("data",), 2, 4_000, 3, "model.py:31"),
        Collective("all-gather", ("data", "model"), 8, 1_000, 1, ""),
        Collective("collective-permute", ("data",), 2, 100, None, ""),
    ),
)  # fmt: skip


def test_what_is_moved_and_how_long_it_takes() -> None:
    assert COST.moved == {("data",): 12_100, ("data", "model"): 7_000}
    assert COST.seconds(100.0) == pytest.approx(191)
    assert COST.seconds({"data": 100.0, "model": 10.0}) == pytest.approx(121 + 700)


def test_as_a_table() -> None:
    assert str(COST).splitlines() == [
        "8 devices, 2 MB on each, 1 kB temporary",
        "each call moves 12.1 kB a device over data",
        "  all-reduce                 4 kB of 2 devices, 3 times  model.py:31",
        "  collective-permute    100 bytes of 2 devices, in a loop of unknown length",
        "each call moves 7 kB a device over data, model",
        "  all-gather                 1 kB of 8 devices, once",
    ]


def test_the_lines_follow() -> None:
    found = analysis.cost(lambda x: x @ x)(ShapeDtypeStruct((100, 100), "float32"))
    first, *lines = str(found).splitlines()
    assert first == "1 device, 80 kB on each, 0 bytes temporary"
    assert lines == str(found.lines).splitlines()
    assert lines[1].split() == ["share", "operations", "moved"]
    assert "100 %" in found._repr_html_()


def test_as_sentences() -> None:
    assert COST.describe({"data": 1e6, "model": 1e3}, measured=9.04).splitlines() == [
        "each call moves 12.1 kB a device over data; at 1 MB/s that is 12 ms of 9 s",
        "each call moves 7 kB a device over data, model; at 1 kB/s that is 7 s of 9 s",
    ]
    assert COST.describe(1e9).splitlines()[0].endswith("; at 1 GB/s that is 12 µs")
    assert Cost(1, 0, 0, ()).describe(1.0) == "each call moves nothing between devices"


def test_errors() -> None:
    with pytest.raises(ArgumentError, match="cost: fun must be a function, got 3"):
        analysis.cost(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="no entry for the axis 'model'"):
        COST.seconds({"data": 1.0})
    for wrong in (0.0, float("nan"), "fast", {"data": None, "model": 1.0}):
        with pytest.raises(ArgumentError, match="seconds: bandwidth must be positive, in bytes a second, got"):
            COST.seconds(wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="describe: bandwidth must be positive"):
        COST.describe(0.0)
    with pytest.raises(ArgumentError, match="describe: measured must be a positive number of seconds, got 0"):
        COST.describe(1.0, measured=0)
