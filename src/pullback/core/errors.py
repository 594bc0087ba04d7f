"""The exceptions of Pullback, each also the built-in kind that JAX's is.

PullbackError
├── JAXTypeError (TypeError)                 errors of traced values and of keys, under JAX's common name
│   ├── ConcretizationTypeError              a traced value where a concrete one is needed
│   │   ├── LostDerivativeError              float() or int() of a number that is being differentiated
│   │   ├── TracerBoolConversionError        if, while, and, or, not, bool()
│   │   ├── TracerIntegerConversionError     index(), range(), list indices
│   │   │   └── TracerSliceError             start, stop or step of a slice (also IndexError)
│   │   ├── TracerArrayConversionError       np.asarray(), NumPy functions that we lack
│   │   └── NonConcreteBooleanIndexError (JAXIndexError)   a traced boolean mask as an index
│   ├── UnexpectedTracerError                a tracer that outlived its transformation
│   └── KeyReuseError                        a random key used twice, under debug_key_reuse
├── JAXIndexError (IndexError)               errors of indices, under JAX's common name
├── TypePromotionError (ValueError)          dtypes without a common type
│   └── KeyPromotionError (TypeError)        random keys among numbers
├── MissingRuleError (NotImplementedError)   a primitive lacks the rule that is needed
├── NotLinearError (TypeError, NotImplementedError)   transposition of a function that is not linear
├── NotDifferentiableError (TypeError)       inputs or outputs that cannot be differentiated
│   └── DegenerateSolutionError (ValueError)   a solution of a problem that has no derivative
├── CustomRuleError (TypeError, ValueError)  a user's rule whose result has the wrong form or type
│   └── ClosedOverError (UnexpectedTracerError)  it closes over a value that must be an argument
├── MissingCustomRuleError (AttributeError)  a function called before its rules were defined
├── TangentMismatchError (TypeError, ValueError)   (co)tangents of another tree, shape or dtype
├── ShapeError (TypeError, ValueError)       shapes or parameters that do not fit an operation
│   └── AxisError (IndexError)               an axis that an array does not have
├── ArgumentError (TypeError, ValueError)    an argument of a transformation that makes no sense
│   └── MissingMethodError (AttributeError)  a class that lacks a method
├── ScalarError (TypeError)                  an array with axes where Python wants a number
├── TruthValueError (ValueError)             the truth value of an array of several elements
├── UnboundAxisNameError (NameError)         a named axis that is not in scope
├── BatchSizeError (ValueError)              vmap over sizes that disagree, or over nothing
├── BatchAxisError (TypeError, ValueError)   in_axes or out_axes that do not fit
├── IndexingError (IndexError)               an index out of range, or more indices than axes
│   └── RefIndexError (RefError)             an index into a reference that is out of range
├── RefError (ValueError)                    a reference that is read or written outside its scope, or wrongly
├── DtypeError (TypeError)                   operands of a dtype that an operation does not take
│   └── DtypeValueError (ValueError)         the same, where JAX raises a ValueError
├── OperandError (TypeError)                 operands that are no arrays: strings, None, lists
│   ├── IndexKindError (IndexError)          an index that is no integer, slice or array
│   ├── NoneOperandError (ValueError)        an operand that is None
│   ├── ExchangeError (BufferError)          arrays that DLPack cannot exchange, or only by a copy
│   └── MaskedArrayError (ValueError)        NumPy's masked arrays, whose mask would be lost
├── ImmutableArrayError (TypeError)          item assignment, and out= of NumPy's functions
├── KeyConversionError (TypeError)           random keys converted to NumPy arrays
├── UnsupportedFunctionError (TypeError)     a NumPy function that Pullback does not have
├── UnsupportedArgumentError (NotImplementedError)   an option of NumPy's that makes no sense here, such as out=
│   ├── UnsupportedAttributeError (AttributeError)   an attribute of NumPy's arrays that makes no sense here
│   └── UnsupportedSwitchError (ValueError)     a switch of JAX's that cannot be set to this value
├── BackendError (RuntimeError)              no such platform or device, or no compiler
│   └── IncompatibleDevicesError (ValueError)   operands on different devices, or on meshes of different devices
├── MeshError (TypeError, ValueError)        an impossible mesh: too large, or with wrong names
├── MeshContextError (RuntimeError, ValueError)   a specification without a mesh, where none was set
├── ShardMapError (TypeError, ValueError)    specs and shards that do not fit together in shard_map
├── ShardingError (TypeError, ValueError)    a sharding that does not fit its mesh or its array
│   ├── ShardingTypeError                    operands whose shardings do not say that of the result
│   │   └── UnreducedOperandError (NotImplementedError)   terms of a sum, and an operation that is not linear in them
│   ├── LayoutError (NotImplementedError)    a memory layout that arrays do not support
│   ├── IndivisibleError                     an axis of an array that a mesh does not divide evenly
│   └── PartitioningError                    a partition or a sharding rule of custom_partitioning that does not fit
├── JaxRuntimeError (RuntimeError)           what the compiler or its runtime refuses or fails to do
│   ├── CompilationError                     a program that the compiler refuses
│   ├── ExecutionError                       a compiled program that failed while it ran
│   ├── HostFunctionError                    a Python function that raised an error within pure_callback or io_callback
│   ├── ForeignCallError (ValueError, TypeError)  an invalid call of a foreign function
│   ├── AllocationError (MemoryError)        an array too large for memory, or a program that runs out of it
│   └── TransferGuardError                   an array moved between host and device where transfer_guard refuses it
├── ExportError (TypeError, ValueError)      a function that cannot be exported, or bytes that are no exported function
│   └── UnsupportedExportError (NotImplementedError)   it refers to this process, as Python functions do
├── InconclusiveDimensionOperation (TypeError, ValueError)   a question that a symbolic size does not answer
├── DistributedError (RuntimeError)          processes that cannot compute together
│   ├── DistributedTimeoutError (TimeoutError, JaxRuntimeError)   other processes did not join or answer in time
│   ├── ProcessLostError (JaxRuntimeError)   a process of the computation is gone
│   └── ProcessMismatchError (AssertionError, ValueError)   processes that differ in an operation that all do together
├── DeletedArrayError (RuntimeError)         an array whose memory was donated or deleted
├── StaticArgumentError (TypeError, ValueError)   a static argument that is not hashable
├── TracingForbiddenError (RuntimeError)     a function that would be traced for jit, under no_tracing
├── CheckpointError (RuntimeError)           a checkpoint that is not there, is there already, or could not be written
├── FileFormatError (ValueError, EOFError)    a file of arrays that is damaged, or of another format
├── StoreException                           a Store of linear_util that is full, or empty
├── ListenerError (AssertionError)           a listener to unregister that was never registered
├── JaxprError (AssertionError, TypeError)   an ill-typed jaxpr
├── MissingLibraryError (ImportError)        an option that needs a library which is not installed
├── RendererError (RuntimeError)             a drawing without a renderer, or one that fails
├── IntegerRangeError (OverflowError)        a Python integer that a dtype does not hold
├── IndexRangeError (OverflowError, ValueError)     an axis too long for the dtype of indices
├── CallbackError (ValueError, NotImplementedError)   an invalid call of a Python function from a program
├── NonFiniteError (FloatingPointError)      a NaN or an infinity, under debug_nans or debug_infs
├── CheckError (ValueError)                  a check of checkify that failed
│   ├── FailedCheckError                     a check of the user's
│   ├── NanCheckError                        an operation that returned a NaN
│   ├── DivisionCheckError                   a division by zero
│   └── IndexCheckError                      an index out of bounds
│       └── OutOfBoundsError (IndexError)    an index out of bounds, under check_indices
├── UnhandledCheckError (ValueError)         a check in a traced function that checkify does not see
├── ProfilerError (RuntimeError, ValueError)     a profile or a server begun twice, or ended without having begun
├── CompatError (ImportError)                programs written for JAX where the real JAX is imported already
├── PatternError (ValueError)                a pattern of a sparse derivative that is too large or does not fit
├── SingularMatrixError (RuntimeError, ValueError) a sparse matrix that has no factorisation
├── SparseEfficiencyError (ValueError)       a layout of a sparse array that would hold mostly zeros
├── MemoryBudgetError (ValueError, MemoryError)   a budget of memory that cannot be kept
├── PreaccumulationError (ValueError, NotImplementedError)   a region of a program without a small local Jacobian
├── ControlFlowError (TypeError, ValueError)   bodies, branches, predicates and lengths of loops that do not fit
└── RuleCheckError (AssertionError)          rules of a function that check_rule found to be wrong

UserWarning
├── DonationWarning                          an argument that was donated, and whose memory no result can use
├── DtypeTruncationWarning                   a dtype of 64 bits that was asked for while enable_x64 is off
└── SparseEfficiencyWarning                  a layout of a sparse array that holds mostly zeros

RuntimeWarning
├── CompilationCacheWarning                  a cache of compiled programs that cannot be used
├── ForkWarning                              a forked process, which cannot compile
└── LeftRunningWarning                       a program that goes on in the background after an interrupt

``python -m pullback explain ShapeError`` says when one is raised, and what to do about it.
"""

from __future__ import annotations

import contextlib
import functools
import traceback
from collections.abc import Mapping
from typing import Any

from pullback.core.runtime import runtime


class PullbackError(Exception):
    """The root of Pullback's exceptions. ``python -m pullback explain ShapeError`` says what one of them means.

    Attributes:
      trace: the trace of the value that was misused, if the error is about a traced value.
    """

    trace: object = None

    def _render_traceback_(self) -> list[str]:
        """Return the traceback that IPython shows, without Pullback's own frames."""
        from IPython import get_ipython  # type: ignore[import-not-found]

        runtime.hide_frames(self)
        shown: list[str] = get_ipython().InteractiveTB.structured_traceback(type(self), self, self.__traceback__)
        return [*shown, *filter(None, [where_explained(self)])]


SITE = ""
"""The address of the documentation, with a ``/`` at its end; empty as long as it has none."""


def where_explained(error: BaseException) -> str:
    """Return the line that says where the class of an error is explained; an empty one for errors of no class of ours.

    It is shown below errors that nothing catches; their texts, which programs compare, do not have it.
    """
    ours = (cls for cls in type(error).__mro__ if globals().get(cls.__name__) is cls)
    name = next(ours, PullbackError).__name__
    if name == PullbackError.__name__:
        return ""
    page = f", or {SITE}reference/pullback.errors.{name}.html" if SITE else ""
    return f"For more: python -m pullback explain {name}{page}"


class JAXTypeError(PullbackError, TypeError):
    """The common base of errors of traced values and of keys, under JAX's name."""


class JAXIndexError(PullbackError, IndexError):
    """The common base of errors of indices, under JAX's name."""


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where a concrete value is needed."""


class LostDerivativeError(ConcretizationTypeError):
    """Python would take the value of a number that is being differentiated, and the derivative would be lost."""


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used as a condition in Python."""


class TracerIntegerConversionError(ConcretizationTypeError):
    """A traced value was used as a Python integer."""


class TracerArrayConversionError(ConcretizationTypeError):
    """A traced value was converted to a NumPy array."""


class TracerSliceError(TracerIntegerConversionError, IndexError):
    """A traced integer is the start, stop or step of a slice, so that the shape of the result depends on it."""


class NonConcreteBooleanIndexError(ConcretizationTypeError, JAXIndexError):
    """A traced boolean mask was used as an index, so that the shape of the result depends on values."""


class UnexpectedTracerError(JAXTypeError):
    """A tracer was used after the transformation that made it had ended."""


class TypePromotionError(PullbackError, ValueError):
    """Two dtypes have no common type."""


class KeyPromotionError(TypePromotionError, TypeError):
    """An operation on numbers has random keys among its operands."""


class MissingRuleError(PullbackError, NotImplementedError):
    """A primitive lacks the rule that a transformation needs."""


class NotLinearError(PullbackError, TypeError, NotImplementedError):
    """A function that should be linear is not."""


class NotDifferentiableError(PullbackError, TypeError):
    """Inputs or outputs of a kind that cannot be differentiated as asked."""


class CustomRuleError(PullbackError, TypeError, ValueError):
    """A user's rule returned a result of the wrong form or type."""


class ClosedOverError(CustomRuleError, UnexpectedTracerError):
    """A function with custom rules closes over a traced value that must be an argument instead."""


class MissingCustomRuleError(PullbackError, AttributeError):
    """A function with custom rules was called before the rules were defined."""


class TangentMismatchError(PullbackError, TypeError, ValueError):
    """A tangent or cotangent of another tree, shape or dtype than the value it belongs to."""


class ShapeError(PullbackError, TypeError, ValueError):
    """Shapes or parameters that do not fit an operation."""


class AxisError(ShapeError, IndexError):
    """An axis that an array does not have; the array API standard wants an IndexError, and JAX raises a ValueError."""


class ScalarError(PullbackError, TypeError):
    """An array with axes, or of another dtype, where Python wants a number; or one without axes for a sequence."""


class TruthValueError(PullbackError, ValueError):
    """The truth value of an array of several elements, or of none."""


class ArgumentError(PullbackError, TypeError, ValueError):
    """An argument of a transformation, such as ``argnums``, that makes no sense."""


class MissingMethodError(ArgumentError, AttributeError):
    """A class to be a node of trees that lacks a method."""


class UnboundAxisNameError(PullbackError, NameError):
    """The name of an axis that is not in scope."""


class BatchSizeError(PullbackError, ValueError):
    """Mapped axes whose sizes disagree, or no mapped axis at all."""


class BatchAxisError(PullbackError, TypeError, ValueError):
    """``in_axes`` or ``out_axes`` that do not fit the values that they describe."""


class IndexingError(PullbackError, IndexError):
    """An index where an array has no element, or more indices than it has axes."""


class RefError(PullbackError, ValueError):
    """A reference is used outside its scope, or a value of the wrong type is written to it."""


class RefIndexError(RefError, IndexingError):
    """An index where a reference has no element, or more indices than it has axes."""


class DtypeError(PullbackError, TypeError):
    """An operand of a dtype that the operation does not take."""


class DtypeValueError(DtypeError, ValueError):
    """Operands or masks of other dtypes than an operation takes, where JAX raises a ValueError."""


class OperandError(PullbackError, TypeError):
    """An operand that is not an array."""


class IndexKindError(OperandError, IndexError):
    """An index that is no integer, slice, None, ellipsis, or array of integers or booleans."""


class NoneOperandError(OperandError, ValueError):
    """An operand that is None."""


class ExchangeError(OperandError, BufferError):
    """An array that cannot be exchanged with another library under the requested options."""


class MaskedArrayError(OperandError, ValueError):
    """An operand that is one of NumPy's masked arrays, whose mask would be lost."""


class KeyConversionError(PullbackError, TypeError):
    """Random keys were to become a NumPy array."""


class KeyReuseError(JAXTypeError):
    """A random key was used twice while ``debug_key_reuse`` was on."""


class ImmutableArrayError(PullbackError, TypeError):
    """An attempt to change an array in place."""


class UnsupportedFunctionError(PullbackError, TypeError):
    """A NumPy function, called on Pullback's values, that Pullback does not have."""


class UnsupportedArgumentError(PullbackError, NotImplementedError):
    """An option of a NumPy function that Pullback does not have, such as ``out=``: arrays are immutable."""


class UnsupportedAttributeError(UnsupportedArgumentError, AttributeError):
    """An attribute of NumPy's arrays that arrays here do not have; ``hasattr`` says that it is not there."""


class UnsupportedSwitchError(UnsupportedArgumentError, ValueError):
    """A switch of JAX's configuration was set to a value that Pullback does not support."""


class PreaccumulationError(PullbackError, ValueError, NotImplementedError):
    """``preaccumulate`` cannot use a local Jacobian of a region of a program: there is none, or no small one."""


class MemoryBudgetError(PullbackError, ValueError, MemoryError):
    """A budget of memory that cannot be kept.

    Attributes:
      least: the least peak that was found, in bytes.
    """

    least: int = 0


class BackendError(PullbackError, RuntimeError):
    """A platform or device that is not there, or a compiler that is not installed."""


class IncompatibleDevicesError(BackendError, ValueError):
    """The operands of an operation are on different devices, or on meshes of different devices."""


class MeshError(PullbackError, TypeError, ValueError):
    """An impossible mesh: too large for the devices, or with wrong names or sizes."""


class MeshContextError(PullbackError, RuntimeError, ValueError):
    """A specification without a mesh was used where no mesh was set."""


class ShardingError(PullbackError, TypeError, ValueError):
    """A sharding that does not fit its mesh, or the array that it is for."""


class ShardingTypeError(ShardingError):
    """An operation on arrays whose types have shardings that do not say the sharding of the result."""


class UnreducedOperandError(ShardingTypeError, NotImplementedError):
    """An operation on an unreduced array, whose terms are on the devices, that is not linear in it."""


class LayoutError(ShardingError, NotImplementedError):
    """A memory layout that is invalid, or that arrays do not support."""


class ShardMapError(PullbackError, TypeError, ValueError):
    """A call of ``shard_map`` whose specs, operands and results do not fit together."""


class IndivisibleError(ShardingError):
    """An axis of an array that the axes of a mesh do not divide evenly."""


class PartitioningError(ShardingError):
    """A partition or a sharding rule of ``custom_partitioning`` that does not fit the function."""


class JaxRuntimeError(PullbackError, RuntimeError):
    """The compiler or its runtime refused or failed to do something."""


class CompilationError(JaxRuntimeError):
    """A program that the compiler refuses."""


class ExportError(PullbackError, TypeError, ValueError):
    """A function that cannot be exported, or called as it was exported; or bytes that are no exported function."""


class UnsupportedExportError(ExportError, NotImplementedError):
    """A function that cannot be exported, since it refers to objects of this process, such as Python functions."""


class FileFormatError(PullbackError, ValueError, EOFError):
    """A file of arrays that is damaged, cut off, of another format, or that holds objects of Python."""


class CheckpointError(PullbackError, RuntimeError):
    """A checkpoint that is not there, is there already, or could not be written."""


class InconclusiveDimensionOperation(PullbackError, TypeError, ValueError):
    """A question about a symbolic size, such as a comparison, whose answer is not the same for all its values."""


class ExecutionError(JaxRuntimeError):
    """A compiled program failed while it ran; the message is the runtime's."""


class ForeignCallError(JaxRuntimeError, ValueError, TypeError):
    """A foreign function was registered, called, mapped or differentiated in a way that is not possible."""


class HostFunctionError(JaxRuntimeError):
    """A Python function that a program calls raised an exception, which is the cause of this error.

    The error is also an instance of the cause's class, with the cause's attributes: ``except`` may name either class.
    """

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (str(self), self.__cause__)


@functools.cache
def _also(kind: Any) -> type[HostFunctionError]:
    """Return the subclass of ``HostFunctionError`` that is also a subclass of ``kind``."""
    try:
        return type(f"HostFunctionError[{kind.__name__}]", (HostFunctionError, kind), {"__module__": __name__})
    except TypeError:  # their layouts differ
        return HostFunctionError


def _made(cause: Exception, message: str) -> HostFunctionError:
    """Make an error with ``message`` whose class is both ``HostFunctionError`` and the class of ``cause``.

    The ``__init__`` of the cause's class is not called, since it might require other arguments.
    """
    own: Any = type(cause)
    kind = _also(own)
    for base in (own, HostFunctionError):  # which of the two __new__ fits depends on the class
        with contextlib.suppress(Exception):
            return base.__new__(kind, message)
    return HostFunctionError(message)


def _again(message: str, cause: Exception | None) -> HostFunctionError:
    if cause is None:
        return HostFunctionError(message)
    error = _made(cause, message)
    error.args = (message,)
    error.__dict__.update({name: value for name, value in vars(cause).items() if name != "__notes__"})
    error.__cause__ = cause
    return error


def of_host_function(who: str, name: str, cause: Exception) -> HostFunctionError:
    """Return the error to raise when a Python function raised ``cause`` within a callback.

    Args:
      who: Pullback's function that called the Python function, such as ``pure_callback``.
      name: the name of the Python function.
      cause: the exception that the Python function raised.
    """
    raised = "".join(traceback.format_exception_only(cause)).rstrip("\n")
    return _again(f"{who} of {name} raised an error: {raised}", cause)


class TransferGuardError(JaxRuntimeError):
    """An array would move between host and device, or between devices, where ``transfer_guard`` forbids it."""


class DeletedArrayError(PullbackError, RuntimeError):
    """An array was used after its memory had been donated or deleted."""


class IntegerRangeError(PullbackError, OverflowError):
    """A Python integer that no integer dtype, or not the wanted one, holds."""


class IndexRangeError(PullbackError, OverflowError, ValueError):
    """An axis so long that indices into it do not fit their dtype."""


class StaticArgumentError(PullbackError, TypeError, ValueError):
    """A static argument of a compiled function that is not hashable."""


class StoreException(PullbackError):
    """A store of ``extend.linear_util`` was filled twice, or read before it was filled."""


class ListenerError(PullbackError, AssertionError):
    """A function that is to be unregistered from ``pullback.monitoring`` is not a listener."""


class DonationWarning(UserWarning):
    """An argument was donated, but no result can use its memory."""


class DtypeTruncationWarning(UserWarning):
    """A dtype of 64 bits was requested, and the result has 32, since ``enable_x64`` is off."""


class CompilationCacheWarning(RuntimeWarning):
    """The persistent cache of compiled programs is of no use, or a program in it was damaged."""


class ForkWarning(RuntimeWarning):
    """This process was forked from a process that had compiled programs, and therefore cannot compile."""


class LeftRunningWarning(RuntimeWarning):
    """A compiled program goes on in the background, since the wait for it was interrupted."""


class JaxprError(PullbackError, AssertionError, TypeError):
    """A jaxpr that breaks a typing rule."""


JaxprTypeError = JaxprError


class AllocationError(JaxRuntimeError, MemoryError):
    """An array is too large for memory, or a compiled program ran out of it."""


class MissingLibraryError(PullbackError, ImportError):
    """An option needs a library that is not installed."""


class RendererError(PullbackError, RuntimeError):
    """The program that renders drawings is not installed, or failed."""


class CallbackError(PullbackError, ValueError, NotImplementedError):
    """A Python function called from a program returned other results than declared, or was differentiated or mapped."""


class NonFiniteError(PullbackError, FloatingPointError):
    """An operation returned a NaN or an infinity while ``debug_nans`` or ``debug_infs`` was on."""


class TracingForbiddenError(PullbackError, RuntimeError):
    """A function would have been traced for ``jit`` where ``no_tracing`` forbids it."""


class CheckError(PullbackError, ValueError):
    """A check that failed, in a function that ``checkify`` transformed, or a ``check`` in eager code."""


class FailedCheckError(CheckError):
    """A check of the user's failed."""


class NanCheckError(CheckError):
    """An operation returned a NaN."""


class DivisionCheckError(CheckError):
    """An operation divided by zero."""


class IndexCheckError(CheckError):
    """An operation was given an index that is out of bounds."""


class OutOfBoundsError(IndexCheckError, IndexingError):
    """An index is out of range while ``check_indices`` or ``check_static_indices`` is on."""


class UnhandledCheckError(PullbackError, ValueError):
    """A traced function contains a check, and is not transformed by ``checkify``."""


class ProfilerError(PullbackError, RuntimeError, ValueError):
    """A profile or a profiler server was begun while there was one, or ended while there was none."""


class CompatError(PullbackError, ImportError):
    """A program written for JAX would run on Pullback, where the real JAX is imported already."""


class PatternError(PullbackError, ValueError):
    """A pattern of a sparse derivative is too large, too small, or does not fit the function.

    Attributes:
      located: whether the message says which operation it is about.
    """

    located: bool = False


class SingularMatrixError(PullbackError, RuntimeError, ValueError):
    """A sparse matrix that a direct solver cannot factorise, since it is singular; SciPy raises a RuntimeError."""


class DegenerateSolutionError(NotDifferentiableError, ValueError):
    """A solution has no derivative: none was found, or the conditions that it satisfies do not determine one."""


class SparseEfficiencyError(PullbackError, ValueError):
    """A layout of a sparse array would hold mostly zeros."""


class SparseEfficiencyWarning(UserWarning):
    """A layout of a sparse array that holds mostly zeros."""


class ControlFlowError(PullbackError, TypeError, ValueError):
    """A loop or conditional whose body, branches, predicate or length have the wrong type or disagree."""


class RuleCheckError(PullbackError, AssertionError):
    """The rules of a function are wrong.

    Attributes:
      findings: what is wrong, one entry for each fault, with ``kind``, ``rule`` and ``message``.
    """

    findings: tuple[object, ...] = ()


class DistributedError(PullbackError, RuntimeError):
    """Processes that cannot compute together: one is refused, or initialized twice, or at the wrong time."""


class DistributedTimeoutError(DistributedError, JaxRuntimeError, TimeoutError):
    """Other processes did not join or answer in time."""


class ProcessLostError(DistributedError, JaxRuntimeError):
    """A process of the computation is gone: it crashed, was killed, cannot be reached, or ended.

    Attributes:
      processes: the numbers of the processes that are gone, a tuple.
    """

    def __init__(self, what: str, gone: Mapping[int, str]) -> None:
        names = "; ".join(f"process {i} is gone: {why}" for i, why in gone.items())  # the first one first
        super().__init__(
            f"{what} needs all processes and cannot be completed. {names}. Arrays of this process can still be read "
            "and saved; restart all processes to continue from the saved arrays."
        )
        self.processes = tuple(sorted(gone))
        self._made_of = what, dict(gone)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._made_of


class ProcessMismatchError(DistributedError, AssertionError, ValueError):
    """Processes disagree in an operation that all of them do together, or in its values."""
