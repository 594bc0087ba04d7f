"""What the jobs run in the tests of clusters."""

import os
from typing import Any


def train(folder: str, steps: int) -> tuple[int, float, str]:
    """Sum numbers over two devices in each of two processes, with checkpoints; process 1 is killed in the first run."""
    import signal

    import numpy as np

    import pullback
    import pullback.numpy as jnp
    from pullback.checkpointing import Checkpoints

    mesh = pullback.make_mesh((4,), ("data",), axis_types=(pullback.sharding.AxisType.Auto,))
    rows = pullback.NamedSharding(mesh, pullback.P("data"))
    checkpoints = Checkpoints(folder)
    step = checkpoints.latest()
    x = pullback.make_array_from_callback((4,), rows, lambda index: np.arange(4.0, dtype="float32")[index])
    begin = 0 if step is None else step + 1
    if step is not None:
        x = checkpoints.restore({"x": x})["x"]
    add = pullback.jit(lambda x: x + jnp.sum(x) / 8)
    for i in range(begin, steps):
        x = add(x)
        checkpoints.save(i, {"x": x})
        checkpoints.wait()
        if i == 3 and os.environ["PULLBACK_RESTART"] == "0" and pullback.process_index() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    print("finished from", begin, flush=True)
    return pullback.device_count(), float(jnp.sum(x)), os.environ["PULLBACK_RESTART"]


def fail() -> None:
    """Raise an exception."""
    raise KeyError("no such key")


def own_rows(read: Any, data: Any, *column: str) -> tuple[list[int], float, int]:
    """Read a data set; return this process's rows, the sum of all, and how many elements this process was given."""
    import importlib

    import numpy as np

    import pullback
    import pullback.numpy as jnp

    module = importlib.import_module(read.__module__)
    make, given = module.make_array_from_callback, []

    def counting(shape: Any, sharding: Any, shard: Any, **options: Any) -> Any:
        def counted(index: Any) -> Any:
            given.append(shard(index))
            return given[-1]

        return make(shape, sharding, counted, **options)

    module.make_array_from_callback = counting  # type: ignore[attr-defined]
    mesh = pullback.make_mesh((4,), ("data",), axis_types=(pullback.sharding.AxisType.Auto,))
    x = read(data, *column, pullback.NamedSharding(mesh, pullback.P("data")))
    rows = [int(n) for shard in x.addressable_shards for n in np.asarray(shard.data)]
    return rows, float(jnp.sum(x)), sum(part.size for part in given)
