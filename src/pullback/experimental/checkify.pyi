# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.core.errors import CheckError as JaxException
from pullback.core.errors import CheckError as JaxRuntimeError
from pullback.core.errors import DivisionCheckError as DivisionCheckError
from pullback.core.errors import FailedCheckError as FailedCheckError
from pullback.core.errors import IndexCheckError as IndexCheckError
from pullback.core.errors import NanCheckError as NanCheckError
from pullback.transforms.checks.check import Error as Error
from pullback.transforms.checks.check import ErrorCategory as ErrorCategory
from pullback.transforms.checks.check import all_checks as all_checks
from pullback.transforms.checks.check import automatic_checks as automatic_checks
from pullback.transforms.checks.check import check as check
from pullback.transforms.checks.check import check_error as check_error
from pullback.transforms.checks.check import checkify as checkify
from pullback.transforms.checks.check import debug_check as debug_check
from pullback.transforms.checks.check import div_checks as div_checks
from pullback.transforms.checks.check import float_checks as float_checks
from pullback.transforms.checks.check import index_checks as index_checks
from pullback.transforms.checks.check import init_error as init_error
from pullback.transforms.checks.check import nan_checks as nan_checks
from pullback.transforms.checks.check import user_checks as user_checks

__all__ = [
    "DivisionCheckError", "Error", "ErrorCategory", "FailedCheckError", "IndexCheckError", "JaxException",
    "JaxRuntimeError", "NanCheckError", "all_checks", "automatic_checks", "check", "check_error", "checkify",
    "debug_check", "div_checks", "float_checks", "index_checks", "init_error", "nan_checks", "user_checks",
]
