"""Functions that ``pullback bench`` measures too.

They are read from their file in this tree by its path: the process of a peer imports no Pullback, and one that measures
another tree (``benchmarks.changes``) has them too.
"""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pullback.bench import workloads
else:
    _path = Path(__file__).parents[1] / "src" / "pullback" / "bench" / "workloads.py"
    _spec = importlib.util.spec_from_file_location("workloads", _path)
    workloads = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(workloads)

network, normal = workloads.network, workloads.normal
rosenbrock, sum_of_tanh_squared = workloads.rosenbrock, workloads.sum_of_tanh_squared
