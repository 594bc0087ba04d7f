"""Cases of attention, of resampled images, and of segments."""

from typing import Any

import numpy as np

from tests.recorded.cases import Case, real

# Attention ---------------------------------------------------------------------------------------------------------


def attention(
    what: str, t: int = 3, s: int = 4, heads: int = 2, key_heads: int = 2, batch: int = 2, **given: Any
) -> Case:
    """A call with operands of four axes, or of three if there is no batch; ``bias`` is differentiated too."""
    leading = (batch,) if batch else ()
    operands = [real(*leading, t, heads, 3), *(real(*leading, s, key_heads, 3, seed=i) for i in (1, 2))]
    if "bias" in given:
        operands.append(given.pop("bias"))

    def run(lib: Any, *xs: Any) -> Any:
        return lib.nn.dot_product_attention(*xs, **given)

    return Case(f"dot_product_attention {what}", run, tuple(operands))


MASK = real(2, 1, 3, 4) > -0.3
ATTENTION = [
    attention("plain"),
    attention("without a batch", batch=0),
    attention("bias", bias=real(2, 2, 3, 4)),
    attention("bias of heads", bias=real(1, 2, 1, 1)),
    attention("bias of two axes", bias=real(3, 4)),
    attention("mask", mask=MASK),
    attention("mask of all in a row", mask=MASK & (np.arange(3)[:, None] != 1)),
    attention("mask and bias", mask=MASK, bias=real(2, 1, 3, 1)),
    attention("causal", is_causal=True, t=4),
    attention("causal, fewer queries", is_causal=True),
    attention("grouped heads", heads=4),
    attention("one key head", heads=4, key_heads=1, scale=0.3),
    attention("lengths", query_seq_lengths=np.array([1, 3]), key_value_seq_lengths=np.array([2, 4])),
    attention("no keys for one", key_value_seq_lengths=np.array([0, 3])),
    attention("window", t=5, s=5, local_window_size=1),
    attention("window before", t=5, s=5, local_window_size=(2, 0)),
    attention("causal window", t=5, s=5, local_window_size=(1, 2), is_causal=True),
    attention("residual", return_residual=True),
    attention("residual, causal, grouped", return_residual=True, is_causal=True, heads=4, implementation="xla"),
]
NARROW = [
    Case(
        f"dot_product_attention {kind}",
        lambda lib, *xs: lib.nn.dot_product_attention(*xs),
        tuple(real(1, 3, 2, 4, seed=i).astype(kind) for i in range(3)),
        derivatives=False,
    )
    for kind in ("float16",)
]

# Images ------------------------------------------------------------------------------------------------------------

METHODS = ("linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area")
IMAGE = real(4, 6)


def resize(shape: tuple[int, ...], method: str, x: Any = IMAGE, antialias: bool = True, x64: bool = False) -> Case:
    def run(lib: Any, x: Any) -> Any:
        return lib.image.resize(x, shape, method, antialias)

    return Case(f"resize {x.shape} {x.dtype} {shape} {method} {antialias}", run, (x,), x64=x64)


RESIZED = [
    *(resize((3, 9), m) for m in (*METHODS, "nearest")),
    *(resize((2, 4), m, antialias=False) for m in METHODS),
    resize((7, 3), "nearest"),
    resize((2, 3, 5), "bilinear", real(2, 4, 3)),
    resize((4, 6), "bicubic"),
    resize((1, 1), "triangle"),
    resize((5, 5), "trilinear", IMAGE.astype(np.float64), x64=True),
    *(resize((3, 5), m, np.arange(24, dtype=np.uint8).reshape(4, 6)) for m in ("linear", "nearest")),
    resize((3, 5), "cubic", (IMAGE + 1j * real(4, 6, seed=3)).astype(np.complex64)),
]


def moved(method: str, antialias: bool, scale: Any = (0.6, 1.3), translation: Any = (0.21, -0.73)) -> Case:
    def run(lib: Any, x: Any, s: Any, t: Any) -> Any:
        return lib.image.scale_and_translate(x, (3, 7), (0, 1), s, t, method, antialias)

    vectors = (np.array(v, np.float32) for v in (scale, translation))
    return Case(f"scale_and_translate {method} {antialias} {scale} {translation}", run, (IMAGE, *vectors))


MOVED = [
    *(moved(m, antialias) for m in METHODS for antialias in (True, False)),
    Case(
        "scale_and_translate of one axis",
        lambda lib, x, s, t: lib.image.scale_and_translate(x, (4, 3), (-1,), s, t, "linear"),
        (IMAGE, np.array([0.45], np.float32), np.array([0.1], np.float32)),
    ),
]

# Segments ----------------------------------------------------------------------------------------------------------

IDS = np.array([0, 2, 2, -1, 7, 0])
ROWS = real(6, lo=0.5, hi=2)
SEGMENTS: list[Case] = []
for name in ("segment_sum", "segment_prod", "segment_max", "segment_min"):

    def add(what: str, *operands: Any, name: str = name, **given: Any) -> None:
        def run(lib: Any, *xs: Any) -> Any:
            return getattr(lib.ops, name)(*xs, **given)

        SEGMENTS.append(Case(f"{name} {what}", run, operands))

    add("of six", ROWS, IDS)
    add("of six in four", ROWS, IDS, num_segments=4)
    add("of rows", real(6, 2), IDS, num_segments=3)
    add("of integers", np.arange(6, dtype=np.int32), IDS, num_segments=3)
    add("of bytes", np.arange(6, dtype=np.uint8), IDS, num_segments=3)
    add("sorted", ROWS, np.array([0, 0, 1, 3, 3, 4]), indices_are_sorted=True)
    add("unique", ROWS, np.array([3, 1, 0, 5, 2, 4]), unique_indices=True)
    add("clip", ROWS, IDS, num_segments=3, mode="clip")
    add("buckets", ROWS, IDS, num_segments=4, bucket_size=4)
    add("ties", np.array([1, 1, 2, 2, 0, 0], np.float32), np.array([0, 0, 1, 1, 5, 2]), num_segments=4)
    add("of none", ROWS[:0], IDS[:0], num_segments=2)
    add("in none", ROWS, IDS, num_segments=0)

SCALED = [
    Case(
        f"scaled_dot_general {i}",
        lambda lib, x, y, numbers=numbers: lib.nn.scaled_dot_general(x, y, numbers),
        (real(2, 3, 4, seed=i), real(2, 3, 4, seed=i + 1)),
    )
    for i, numbers in enumerate(
        (
            (((2,), (2,)), ((0,), (0,))), (((1,), (1,)), ((0,), (0,))), (((2,), (2,)), ((), ())),
            (((1, 2), (1, 2)), ((0,), (0,))), (((0,), (0,)), ((1,), (1,))), (((), ()), ((0, 1), (0, 1))),
            (((0, 1, 2), (0, 1, 2)), ((), ())), (((2, 1), (2, 1)), ((), ())), (((1,), (1,)), ((), ())),
            (((), ()), ((2, 0, 1), (2, 0, 1))),
        )
    )
]  # fmt: skip

CASES = [*ATTENTION, *NARROW, *RESIZED, *MOVED, *SEGMENTS, *SCALED]
