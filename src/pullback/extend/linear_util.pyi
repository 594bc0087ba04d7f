# Made by `make stubs` from the module itself, for type checkers and editors.

from collections.abc import Callable as Callable
from pullback.core.errors import StoreException as StoreException
from pullback.transforms.functions.linear_util import Store as Store
from pullback.transforms.functions.linear_util import WrappedFun as WrappedFun
from pullback.transforms.functions.linear_util import annotate as annotate
from pullback.transforms.functions.linear_util import cache as cache
from pullback.transforms.functions.linear_util import merge_linear_aux as merge_linear_aux
from pullback.transforms.functions.linear_util import transformation as transformation
from pullback.transforms.functions.linear_util import transformation2 as transformation2
from pullback.transforms.functions.linear_util import transformation_with_aux as transformation_with_aux
from pullback.transforms.functions.linear_util import transformation_with_aux2 as transformation_with_aux2
from pullback.transforms.functions.linear_util import wrap_init as wrap_init

__all__ = [
    "Callable", "Store", "StoreException", "WrappedFun", "annotate", "cache", "merge_linear_aux",
    "transformation", "transformation2", "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]
