"""``jax._src.interpreters``: the modules of ``jax.interpreters``."""

from pullback.interpreters import ad as ad
from pullback.interpreters import batching as batching
from pullback.interpreters import mlir as mlir
from pullback.interpreters import partial_eval as partial_eval
from pullback.interpreters import xla as xla
