# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.core.dims import SymbolicScope as SymbolicScope
from pullback.export.checks import DisabledSafetyCheck as DisabledSafetyCheck
from pullback.export.exported import Exported as Exported
from pullback.export.exported import default_export_platform as default_export_platform
from pullback.export.exported import deserialize as deserialize
from pullback.export.exported import export as export
from pullback.export.exported import maximum_supported_calling_convention_version as maximum_supported_calling_convention_version
from pullback.export.exported import minimum_supported_calling_convention_version as minimum_supported_calling_convention_version
from pullback.export.structures import register_namedtuple_serialization as register_namedtuple_serialization
from pullback.export.structures import register_pytree_node_serialization as register_pytree_node_serialization
from pullback.export.symbolic import is_symbolic_dim as is_symbolic_dim
from pullback.export.symbolic import symbolic_args_specs as symbolic_args_specs
from pullback.export.symbolic import symbolic_dim_bounds as symbolic_dim_bounds
from pullback.export.symbolic import symbolic_shape as symbolic_shape

__all__ = [
    "DisabledSafetyCheck", "Exported", "SymbolicScope", "default_export_platform", "deserialize", "export",
    "is_symbolic_dim", "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version", "register_namedtuple_serialization",
    "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_dim_bounds", "symbolic_shape",
]
