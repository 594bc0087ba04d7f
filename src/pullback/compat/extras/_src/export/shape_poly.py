"""``jax._src.export.shape_poly``: symbolic sizes, by the names of ``jax.export``, for JAX's own tests."""

from pullback.core.dims import Dim as _DimExpr
from pullback.export import SymbolicScope as SymbolicScope
from pullback.export import symbolic_args_specs as symbolic_args_specs
from pullback.export import symbolic_shape as symbolic_shape

DimSize = int | _DimExpr
