"""Functions that ``pullback bench`` measures too.

They are read from their file in this tree by its path: the process of a peer imports no Pullback, and one that measures
another tree (``benchmarks.changes``) has them too. They are a user's functions here: their code has a file name outside
the package, for the lines of the package's own files are looked for further up the stack, which takes time.
"""

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pullback.bench import workloads
else:
    _path = Path(__file__).parents[1] / "src" / "pullback" / "bench" / "workloads.py"
    workloads = ModuleType("workloads")
    exec(compile(_path.read_text(), str(Path(__file__).with_name("workloads_of_users.py")), "exec"), workloads.__dict__)

network, normal = workloads.network, workloads.normal
rosenbrock, sum_of_tanh_squared = workloads.rosenbrock, workloads.sum_of_tanh_squared
