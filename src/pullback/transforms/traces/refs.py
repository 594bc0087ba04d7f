"""References: reading and writing them under each transformation.

No program holds a reference. While a function is staged, the program under construction notes each reference from
outside that the function uses: its content becomes a further input, and its last content, if it was written, a further
result, which the code that runs the program writes to the reference. So every primitive is a function of arrays.

Differentiation and ``vmap`` need no such conversion: their tracers may be written only to references that were made
under the same transformation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes, source, tree
from pullback.core.array import Array, ArrayLike, Index, as_array, typeof
from pullback.core.errors import IndexingError, OperandError, RefError, RefIndexError, UnexpectedTracerError
from pullback.core.jaxpr import Var
from pullback.core.naming import quoted
from pullback.core.refs import AbstractRef, Outside, RefCell, RunsAgain
from pullback.core.trace import Trace, Tracer, leaked, state
from pullback.core.types import ShapedArray
from pullback.core.user_types import HiType, is_user_value
from pullback.core.zeros import zeros_of
from pullback.primitives.elementwise import convert_element_type
from pullback.transforms.functions.arguments import as_weak
from pullback.transforms.traces.batch import BatchTrace
from pullback.transforms.traces.forward import JVPTrace
from pullback.transforms.traces.ref_views import RefAt, RefView, selects_all
from pullback.transforms.traces.stage import StageTrace, StageTracer
from pullback.transforms.traces.taylor import TaylorTrace


class Ref(RefCell):
    """A mutable array reference, as :func:`new_ref` makes it: ``ref[...]`` reads it, and ``ref[...] = x`` writes it.

    The index may be any that an array takes. A written value must have the dtype of the reference and the shape of the
    selected elements; a weakly typed number is converted. Reads and writes happen in program order, within compiled
    functions, loops and branches, too.

    Args:
      args: must not be passed: :func:`new_ref` makes references, and a call of the class raises a TypeError.

    >>> import pullback.numpy as jnp
    >>> from pullback import new_ref
    >>> ref = new_ref(jnp.zeros(3))
    >>> ref[1] += 2.0
    >>> print(ref[...])
    [0. 2. 0.]
    """

    __slots__ = ()
    __array_ufunc__ = None

    def __init__(self, *args: Any) -> None:
        raise TypeError("make a Ref with pullback.new_ref(value)")

    @property
    def aval(self) -> AbstractRef:
        """The type of the reference."""
        return AbstractRef(self.inner)

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        return self.inner.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element."""
        return self.inner.dtype  # type: ignore[no-any-return]

    @property
    def weak_type(self) -> bool:
        """Whether the dtype of the content is weak, and gives way to the dtypes of other operands."""
        return self.inner.weak_type  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.inner.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.inner.size  # type: ignore[no-any-return]

    @property
    def sharding(self) -> Any:
        """The sharding of the content."""
        return content_of(self).sharding

    @property
    def format(self) -> Any:
        """The sharding of the content, and the memory layout of its elements."""
        return content_of(self).format

    @property
    def committed(self) -> bool:
        """Whether the content is committed to its device, as by ``device_put``."""
        return bool(content_of(self).committed)

    def unsafe_buffer_pointer(self) -> int:
        """The address of the elements in host memory. It is valid until the next write, which may move them."""
        return int(content_of(self).unsafe_buffer_pointer())

    @property
    def at(self) -> RefAt:
        """Views: ``ref.at[index]`` reads and writes the elements at an index, as a reference of its own."""
        return RefAt(self)

    def __getitem__(self, idx: Index) -> Array:
        return get(self, idx)

    def __setitem__(self, idx: Index, x: ArrayLike) -> None:
        swap(self, idx, x, "set")

    def get(self, idx: Index = ()) -> Array:
        """Return the elements at an index, as ``ref[idx]`` does."""
        return get(self, idx)

    def set(self, x: ArrayLike, idx: Index = ()) -> None:
        """Replace the elements at an index, as ``ref[idx] = x`` does."""
        swap(self, idx, x, "set")

    def swap(self, x: ArrayLike, idx: Index = ()) -> Array:
        """Replace the elements at an index, and return what they were.

        >>> from pullback import new_ref
        >>> ref = new_ref(1.0)
        >>> print(ref.swap(2.0), ref.get())
        1.0 2.0
        """
        return swap(self, idx, x)

    def addupdate(self, x: ArrayLike, idx: Index = ()) -> None:
        """Add ``x`` to the elements at an index; see :func:`addupdate`.

        >>> from pullback import new_ref
        >>> ref = new_ref(1.0)
        >>> ref.addupdate(2.0)
        >>> print(ref[...])
        3.0
        """
        addupdate(self, idx, x)

    def __len__(self) -> int:
        if not self.inner.shape:
            raise TypeError("a scalar reference has no length")
        return self.inner.shape[0]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        return iter([get(self, i) for i in range(len(self))])

    def __bool__(self) -> bool:
        raise TypeError(f"a reference has no truth value; ref[...] reads its content: {self!r}")

    def __repr__(self) -> str:
        if self.ended:
            return f"Ref<{self.inner}, {self.ended}>"
        if isinstance(self.content, Tracer):
            return f"Ref<{self.inner}>"
        return f"Ref{repr(self.content).removeprefix('Array')}"

    def __copy__(self) -> Ref:
        return self

    def __deepcopy__(self, memo: Any) -> Ref:
        return memo.setdefault(id(self), new_ref(content_of(self)))  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return new_ref, (content_of(self),)


tree.register_leaf_type(Ref)


def _made(content: Any) -> Ref:
    """Make a reference that belongs to the current trace, with the content ``content``."""
    ref = object.__new__(Ref)
    trace = state.trace
    RefCell.__init__(ref, content, None if trace.is_bottom else trace, source.here(), typeof(content))
    return ref


def new_ref(init_val: ArrayLike, *, memory_space: object = None, kind: str | None = None, pin: bool = False) -> Ref:
    """Make a mutable array reference.

    Args:
      init_val: the initial content: an array, which does not change itself, or a number. A value of a user's type is
        read and written as a whole.
      memory_space: must be None: the array stays in its memory.
      kind: ``"no_grad_no_remat"`` is accepted, without effect: no program holds a reference.
      pin: without effect.

    Returns:
      A :class:`Ref`, with the shape and dtype of ``init_val``. It may be passed to functions under ``jit`` and
      ``vmap``, and used in them and in loops and branches without being passed.

    Raises:
      OperandError: ``init_val`` is no array or number (a TypeError).
      RefError: another ``memory_space`` (a ValueError).

    >>> from pullback import jit, new_ref
    >>> count = new_ref(0)
    >>> @jit
    ... def step(x):
    ...     count[...] += 1
    ...     return 2 * x
    >>> print(step(1.0), step(2.0), count[...])
    2.0 4.0 2
    """
    if memory_space is not None:
        raise RefError(f"new_ref: memory_space must be None, got {memory_space!r}; device_put moves an array")
    try:
        return _made(init_val if is_user_value(init_val) else as_array(init_val))
    except OperandError as error:
        raise type(error)(f"new_ref: {error}") from None


def empty_ref(ty: Any, memory_space: Any = None, pin: bool = False) -> Ref:
    """Make a reference without initial content, which should be written before it is read; until then it is zero.

    Args:
      ty: anything with ``shape`` and ``dtype``.
      memory_space: must be None.
      pin: without effect.

    Returns:
      A reference.

    Raises:
      OperandError: ``ty`` has no shape and dtype (a TypeError).
      RefError: another ``memory_space`` (a ValueError).

    >>> from pullback import ShapeDtypeStruct, empty_ref
    >>> print(empty_ref(ShapeDtypeStruct((2,), "float32"))[...])
    [0. 0.]
    """
    try:
        aval = ShapedArray(tuple(ty.shape), dtypes.canonicalize_dtype(ty.dtype))
    except (AttributeError, TypeError):
        raise OperandError(f"empty_ref: expected something with a shape and a dtype, got {quoted(ty)}") from None
    return new_ref(zeros_of(aval), memory_space=memory_space)


# Reading and writing --------------------------------------------------------------------------------------------------


def enclosing_program(ref: RefCell, trace: Trace) -> StageTrace | None:
    """Return the innermost program under construction between ``trace`` and the trace under which ``ref`` was made.

    Return None if there is no such program. Raise if the reference cannot be used under ``trace``.
    """
    if ref.ended:
        raise RefError(f"{ref.described()} cannot be used anymore: {ref.ended}")
    found = None
    while trace is not ref.home:
        if trace.runs_again:  # a second run would read and write it again
            raise RunsAgain
        if ref.home is None and trace.is_bottom:
            return found
        if ref.home is not None and trace.is_same(ref.home):
            return found
        if trace.is_bottom:
            when = "outside of" if ref.home.live else "after the end of"
            error = UnexpectedTracerError(
                f"{ref.described()} was used {when} the transformation under which it was made, "
                f"{ref.home.describe()}: it leaked through a global, a closure, an attribute or a list, or it is "
                f"used in a derivative rule, which runs outside. Make it outside and pass it as an argument, or "
                f"return its content, ref[...]."
            )
            error.trace = ref.home
            raise error
        if found is None and type(trace) is StageTrace:  # it gets the content from the next program outside
            found = trace
        trace = trace.parent
    return found


class Touched:
    """The state that a reference from outside has in a program under construction.

    Attributes:
      var: the input of the program that is the reference's initial content.
      content: the current content.
      first: the initial content.
    """

    __slots__ = ("content", "first", "var")

    def __init__(self, var: Var, content: Any) -> None:
        self.var = var
        self.content = self.first = content

    @property
    def written(self) -> bool:
        return self.content is not self.first


class Scope(Outside):
    """The references that a program under construction uses, and that were made outside of it.

    Attributes:
      touched: the state of each reference in the program.
      carried: references that have an input and a result even if they are unused, in this order.
      varying: for some references, named axes along which the program assumes that their initial content varies.
      in_rules: whether references are arguments of a function with custom rules, which may use them later.
    """

    def __init__(self, carried: Sequence[Ref] = (), varying: dict[Ref, frozenset[Any]] | None = None) -> None:
        self.touched: dict[Ref, Touched] = {}
        self.carried = list(carried)
        self.varying = varying or {}
        self.in_rules = False

    def begin(self, trace: StageTrace) -> None:
        for ref in self.carried:
            self.enter(ref, trace)

    def enter(self, ref: Ref, trace: StageTrace) -> Touched:
        """Return the state of a reference in the program; at its first use, add an input for its content."""
        found = self.touched.get(ref)
        if found is None:
            aval = typeof(content_of(ref, trace.parent))
            aval = aval.update(varying=aval.varying | self.varying.get(ref, frozenset()))
            var = Var(aval)
            found = self.touched[ref] = Touched(var, StageTracer(trace, var, source.here()))
        return found

    @property
    def written(self) -> list[Ref]:
        """The references whose new content is a result of the program.

        These are the references in ``carried``, followed by the others that were written.
        """
        if len(self.touched) <= len(self.carried):  # most programs use no reference
            return self.carried
        return [*self.carried, *(r for r, t in self.touched.items() if t.written and r not in self.carried)]

    @property
    def read(self) -> list[Ref]:
        """The references that the program only reads."""
        if len(self.touched) <= len(self.carried):
            return []
        written = self.written
        return [r for r in self.touched if r not in written]

    def inputs(self) -> list[Var]:
        """Return the inputs of the program that are the contents of references.

        References that are only read come first, followed by references whose new content is a result.
        """
        return [self.touched[r].var for r in [*self.read, *self.written]] if self.touched else []

    def results(self) -> list[Any]:
        return [self.touched[r].content for r in self.written] if self.touched else []


def refuse_second_runs() -> None:
    """Raise if the backward pass will run the current program again, and with it what uses references."""
    trace = state.trace
    while not trace.is_bottom:
        if trace.runs_again:
            raise RunsAgain
        trace = trace.parent


def content_of(ref: RefCell, trace: Trace | None = None) -> Array:
    """Return the content of a reference, as ``trace`` sees it (by default the current trace).

    In a program under construction, the content is a tracer.
    """
    trace = state.trace if trace is None else trace
    program = enclosing_program(ref, trace)
    content: Array = ref.content if program is None else _entered(ref, program).content
    return content


def _entered(ref: Any, program: StageTrace) -> Touched:
    """Return the state of a reference in a program under construction; add an input for its content at the first use.

    Raise if the program cannot use references from outside.
    """
    if type(program.outside) is not Scope:
        raise RefError(
            f"{ref.described()} is used in {program.describe()}, which cannot read or write references from outside. "
            "Pass ref[...] as an argument and return the new content, or make the reference inside the function."
        )
    return program.outside.enter(ref, program)


def write(ref: RefCell, x: Any) -> None:
    """Replace the content of a reference by ``x``, an array of the same type.

    Raise if ``x`` is a tracer that must not be stored in the reference.
    """
    program = enclosing_program(ref, state.trace)
    owner = ref.home if program is None else program
    if isinstance(x, Tracer):
        _check_owner(ref, x, owner)
    if program is None:
        ref.content = x
    else:
        _entered(ref, program).content = x


def _check_owner(ref: RefCell, x: Tracer, owner: Trace | None) -> None:
    """Raise unless the tracer ``x`` belongs to ``owner``, the trace that owns the reference, or to an outer trace.

    A tracer of a later transformation would remain in the reference when that transformation has ended.
    """
    trace = owner
    while trace is not None and not trace.is_bottom:
        if trace.is_same(x._trace):
            return
        trace = trace.parent
    if isinstance(x._trace, (JVPTrace, TaylorTrace)):
        what, cure = "a value that is differentiated", "write lax.stop_gradient(x)"
    elif isinstance(x._trace, BatchTrace):
        what, cure = "a value that is mapped", "map the reference too, as an argument of the function"
    else:
        raise leaked(x)
    error = RefError(
        f"{what} was written to {ref.described()} which is outside of the transformed function and cannot store "
        f"such a value: {x!r}, made by {x.origin()}\nMake the reference inside the function, or {cure}."
    )
    error.trace = x._trace
    raise error


# The operations -------------------------------------------------------------------------------------------------------


def check_ref(ref: Any, what: str) -> None:
    """Raise unless ``ref`` is a reference; ``what`` is the operation, for the message."""
    if not isinstance(ref, Ref):
        raise RefError(f"{what} takes a reference made by new_ref, but got {ref!r} of type {type(ref).__name__}")


def _is_whole(ref: Ref, idx: Any) -> bool:
    """Whether an index selects all elements; raise if it selects some of a value of a user's type.

    A type that has a shape is read whole by slices of all that it has, as `ref[:, 0:2]` is of two columns.
    """
    if selects_all(idx):
        return True
    if not isinstance(ref.inner, HiType):
        return False
    shape, slices = ref.inner.shape or (), idx if isinstance(idx, tuple) else (idx,)
    if len(slices) == len(shape) and all(
        isinstance(s, slice) and range(n)[s] == range(n) for n, s in zip(shape, slices)
    ):
        return True
    raise RefIndexError(
        f"{ref.described()} is read and written as a whole, by ref[...], since its value is of a user's type, but the "
        f"index is {idx!r}"
    )


def _at(ref: Ref, content: Array, idx: Any) -> Array:
    """Read the elements at an index of ``content``, the content of a reference; raise if the index is invalid."""
    if isinstance(idx, Ref) or (isinstance(idx, tuple) and any(isinstance(i, Ref) for i in idx)):
        raise OperandError(f"a reference is not an index; ref[...] reads its content: {idx!r}")
    _check_range(ref, idx if isinstance(idx, tuple) else (idx,))
    try:
        return content[idx]
    except IndexingError as error:
        raise RefIndexError(f"{error} (of {ref.described()})") from None


def _check_range(ref: Ref, indices: tuple[Any, ...]) -> None:
    """Raise if an index that is a Python number is out of range.

    Indexing an array would clip such a number.
    """
    # The number of axes that each index consumes: a mask one for each of its own, None no axis, others one.
    axes = [
        getattr(i, "ndim", 0) if dtypes.is_bool(getattr(i, "dtype", np.dtype(int))) else i is not None for i in indices
    ]
    axis = 0
    for position, i in enumerate(indices):
        if i is Ellipsis:
            axis = ref.ndim - sum(axes[position + 1 :])
            continue
        if isinstance(i, (int, np.integer)) and not isinstance(i, bool) and 0 <= axis < ref.ndim:
            size = ref.shape[axis]
            if not -size <= i < size:
                raise RefIndexError(f"index {i} is out of range for axis {axis} of size {size} of {ref.described()}")
        axis += axes[position]


def get(ref: Ref | RefView, idx: Index = None) -> Array:
    """Read a reference, as ``ref[idx]`` does.

    Args:
      ref: a reference, as ``new_ref`` returns it, to an array of any shape and dtype; or a view, ``ref.at[...]``.
      idx: an index as arrays take it; None or ``...`` for all elements.

    Returns:
      An array of the shape that the index selects. It does not change when the reference does.

    Raises:
      RefError: ``ref`` is no reference, or cannot be used any more (a ValueError).
      RefIndexError: a number out of range, or more indices than axes (a ValueError and IndexError).

    >>> import pullback.numpy as jnp
    >>> from pullback import new_ref, ref
    >>> print(ref.get(new_ref(jnp.arange(5)), slice(1, 3)))
    [1 2]
    """
    if isinstance(ref, RefView):
        return ref[idx]
    check_ref(ref, "ref.get")
    content = content_of(ref)
    return content if _is_whole(ref, idx) else _at(ref, content, idx)


def set(ref: Ref | RefView, idx: Index, value: ArrayLike) -> None:
    """Write to a reference, as ``ref[idx] = value`` does.

    Args:
      ref: a reference, as ``new_ref`` returns it, to an array of any shape and dtype; or a view, ``ref.at[...]``.
      idx: an index as arrays take it; None or ``...`` for all elements. Traced numbers out of range are clipped.
      value: an array of the shape that the index selects, and of the dtype of the reference.

    Raises:
      RefError: ``ref`` is no reference, or cannot be used any more; the shape or dtype differs; or the value belongs to
        a transformation that began after the reference was made (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import new_ref, ref
    >>> x = new_ref(jnp.zeros(3))
    >>> ref.set(x, 1, 10.0)
    >>> x
    Ref([ 0., 10.,  0.], dtype=float32)
    """
    swap(ref, idx, value, "ref.set")


def swap(ref: Ref | RefView, idx: Index, value: ArrayLike, _function_name: str = "ref.swap") -> Array:
    """Write to a reference, and return the elements that were replaced.

    Args:
      ref: a reference, as ``new_ref`` returns it, to an array of any shape and dtype; or a view, ``ref.at[...]``.
      idx: an index as arrays take it; None or ``...`` for all elements.
      value: an array of the shape that the index selects, and of the dtype of the reference.
      _function_name: the name of the called function, for error messages.

    Returns:
      An array of the elements that were replaced, of the shape that the index selects.

    Raises:
      RefError: as from :func:`set` (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import new_ref, ref
    >>> x = new_ref(jnp.arange(4))
    >>> print(ref.swap(x, 3, 10), x[...])
    3 [ 0  1  2 10]
    """
    if isinstance(ref, RefView):
        elements = ref[idx]
        ref[idx] = value
        return elements
    check_ref(ref, _function_name)
    content = content_of(ref)
    if _is_whole(ref, idx):
        write(ref, _fitted(ref, value, ref.shape, _function_name))
        return content
    before = _at(ref, content, idx)
    x = _fitted(ref, value, before.shape, _function_name)
    # Clip, as reading does: exactly the returned elements are replaced.
    write(ref, like(content.at[idx].set(x, mode="clip"), ref))
    return before


def addupdate(ref: Ref | RefView, idx: Index, x: ArrayLike) -> None:
    """Add to elements of a reference, as ``ref[idx] += x`` does.

    Args:
      ref: a reference, as ``new_ref`` returns it, to an array of any shape and dtype; or a view, ``ref.at[...]``.
      idx: an index as arrays take it; None or ``...`` for all elements. Where it selects an element more than once,
        all are added.
      x: an array of the shape that the index selects, and of the dtype of the reference.

    Raises:
      RefError: as from :func:`set` (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import new_ref, ref
    >>> x = new_ref(jnp.arange(5))
    >>> ref.addupdate(x, 2, 10)
    >>> print(x[...])
    [ 0  1 12  3  4]
    """
    if isinstance(ref, RefView):
        ref.addupdate(x, idx)
        return
    check_ref(ref, "ref.addupdate")
    content = content_of(ref)
    if isinstance(ref.inner, HiType) and _is_whole(ref, idx):
        write(ref, ref.inner.vspace_add(content, _fitted_user_value(ref, x, "ref.addupdate")))
        return
    if selects_all(idx):
        write(ref, like(content + _fitted(ref, x, ref.shape, "ref.addupdate"), ref))
        return
    x = _fitted(ref, x, _at(ref, content, idx).shape, "ref.addupdate")
    write(ref, like(content.at[idx].add(x, mode="clip"), ref))


def _fitted(ref: Ref, value: Any, shape: tuple[int, ...], what: str) -> Any:
    """Convert a value to the dtype of the reference, to be written; raise if it does not fit, or its shape is wrong.

    ``shape`` is the expected shape. ``what`` names the operation, for error messages.
    """
    if isinstance(ref.inner, HiType):
        return _fitted_user_value(ref, value, what)
    try:
        x = value if isinstance(value, Array) else as_array(value)
    except OperandError as error:
        raise type(error)(f"{what}: {error}") from None
    if x.shape != shape:
        raise RefError(
            f"{what}: the value must have the shape {shape} of the elements that the index selects, but it is "
            f"{typeof(x)}: references do not broadcast values (use jnp.full or jnp.broadcast_to). It is written to "
            f"{ref.described()}"
        )
    if x.dtype != ref.dtype and not (
        x.weak_type and dtypes.result_type(x, ref.inner.update(weak_type=False)) == ref.dtype
    ):
        raise RefError(
            f"{what}: the value must have the dtype {dtypes.dtype_name(ref.dtype)} of the reference, but it is "
            f"{typeof(x)}; x.astype(ref.dtype) converts it. It is written to {ref.described()}"
        )
    return like(x, ref)


def _fitted_user_value(ref: Ref, value: Any, what: str) -> Any:
    """Return a value to write to a reference of a user's type; raise unless it is of this type."""
    if not (is_user_value(value) or isinstance(value, Tracer)) or typeof(value) != ref.inner:
        found = quoted(value) if not isinstance(value, Array) else typeof(value)
        raise RefError(f"{what}: the value must be of the type {ref.inner} of the reference, but it is {found}")
    return value


def like(x: Any, ref: Ref) -> Any:
    """Convert an array to the dtype and the weak type of a reference."""
    weak = ref.inner.weak_type
    if x.dtype != ref.dtype:
        return convert_element_type(x, ref.dtype, weak)
    return x if x.weak_type == weak else as_weak(x, weak)


def freeze(ref: Ref) -> Array:
    """Return the content of a reference, and end its use.

    Args:
      ref: the reference. A compiled function, a loop or a branch cannot freeze a reference that it received as an
        argument or closes over.

    Returns:
      An array of the shape and dtype of the reference.

    Raises:
      RefError: ``ref`` is no reference, cannot be used any more, or is from outside (a ValueError).

    >>> from pullback import freeze, new_ref
    >>> ref = new_ref(1.0)
    >>> ref[...] = 2.0
    >>> print(freeze(ref))
    2.0
    """
    return _ended(ref, "freeze", "it was frozen")


def free_ref(ref: Ref) -> None:
    """End the use of a reference, and release its memory.

    Args:
      ref: the reference.

    Raises:
      RefError: ``ref`` is no reference, or cannot be used any more (a ValueError).

    >>> from pullback import free_ref, new_ref
    >>> free_ref(new_ref(1.0))
    """
    _ended(ref, "free_ref", "it was freed")


def _ended(ref: Ref, what: str, why: str) -> Array:
    """End the use of a reference, and return its last content.

    Raise if the reference was made outside of the current program.

    Args:
      ref: the reference.
      what: the operation, for error messages.
      why: why the reference has ended, for the error that a later use raises.
    """
    check_ref(ref, what)
    program = enclosing_program(ref, state.trace)
    if program is not None or ref.is_argument:
        raise RefError(f"{what}: {ref.described()} belongs to the caller, and only the caller can freeze it")
    content: Array = ref.content
    ref.ended = why
    ref.content = None
    return content


# Arguments ------------------------------------------------------------------------------------------------------------


def contents(refs: Sequence[RefCell]) -> list[Any]:
    """Return the content of each reference, as the current trace sees it: in a traced function, a tracer."""
    return [content_of(r) for r in refs]


def write_all(refs: Sequence[RefCell], values: Sequence[Any]) -> None:
    """Write ``values``, results of a program, to the references ``refs``."""
    for ref, x in zip(refs, values, strict=True):
        is_array = isinstance(ref.inner, ShapedArray)
        write(ref, as_weak(x, ref.inner.weak_type) if is_array and x.weak_type != ref.inner.weak_type else x)


def check_aliases(refs: Sequence[RefCell], name: str, closed_over: Sequence[RefCell] = ()) -> None:
    """Raise if a reference occurs twice in ``refs``, the arguments of a function, or occurs in ``closed_over`` as well.

    ``closed_over`` are the references that the function closes over. ``name`` names the function in error messages.
    """
    passed: dict[int, RefCell] = {}
    for ref in refs:
        if id(ref) in passed:
            raise RefError(
                f"{name}: {ref.described()} was passed twice. A reference may be one argument only, since each "
                "argument changes independently."
            )
        passed[id(ref)] = ref
    for ref in closed_over:
        if id(ref) in passed:
            raise RefError(
                f"{name}: {ref.described()} was passed as an argument, and the function closes over it as well. Use "
                "the argument, or do not pass it."
            )


def argument_ref(content: Any) -> Ref:
    """Make a reference to ``content`` that a traced function receives instead of its caller's reference."""
    ref = _made(content)
    ref.is_argument = True
    return ref


class WithRefs:
    """A flat function with references among its arguments, wrapped as a function that takes their contents instead.

    The wrapper returns the results of the function, followed by the last contents of the references.

    Attributes:
      run: the function: takes flat arguments, with references among them, and returns a list of results.
      where: the indices of the arguments that are references.
    """

    def __init__(self, run: Callable[..., Sequence[Any]], where: Sequence[int]) -> None:
        self.run = run
        self.where = where

    def __call__(self, *leaves: Any) -> list[Any]:
        args = list(leaves)
        refs = []
        for i in self.where:
            args[i] = ref = argument_ref(leaves[i])
            refs.append(ref)
        outs = self.run(*args)
        return [*outs, *(ref.content for ref in refs)]
