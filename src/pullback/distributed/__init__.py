"""Programs of several processes, on one machine or on several.

``python -m pullback launch --processes 4 program.py`` starts them on one machine, and each calls ``initialize()``. The
modules ``pullback.distributed.ray`` and ``pullback.distributed.dask`` start them on clusters of Ray and Dask.
"""

from pullback.backends.processes.distributed import initialize as initialize
from pullback.backends.processes.distributed import is_initialized as is_initialized
from pullback.backends.processes.distributed import shutdown as shutdown
from pullback.core.faces import face

__all__ = ["initialize", "is_initialized", "shutdown"]
face(globals(), modules="dask ray")
