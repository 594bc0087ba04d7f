"""``sparsify``: evaluate functions that are written for dense arrays on sparse arrays.

The function is traced with dense arrays of the same shapes. Equations of its program with sparse operands are evaluated
by the rules of this module, all others as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.control.conditional import cond_p, switch
from pullback.control.loops import while_loop
from pullback.control.scan import scan
from pullback.control.scan_primitive import scan_p
from pullback.control.while_primitive import while_p
from pullback.core import source, traits, tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import require_function
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import UnsupportedArgumentError
from pullback.core.inlining import inlined
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Var
from pullback.core.trace import Primitive, RuleKind, Tracer, state
from pullback.core.types import ShapedArray
from pullback.experimental.sparse import arithmetic, layouts
from pullback.experimental.sparse.arithmetic import dense_result, elementwise, linear
from pullback.experimental.sparse.compressed import from_bcoo, to_bcoo
from pullback.experimental.sparse.formats import BCOO, BCSR, JAXSparse
from pullback.experimental.sparse.products import bcoo_dot_general, cast
from pullback.experimental.sparse.structure import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_gather,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    bcoo_transpose,
)
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.arrays.gather import gather_p
from pullback.primitives.arrays.indexing import dynamic_slice_p
from pullback.primitives.linalg.contraction import dot_general_p
from pullback.primitives.reductions import norm_p
from pullback.primitives.rules import batch_unary
from pullback.primitives.sums import add_any_p, reduce_sum_p
from pullback.transforms.autodiff.tracing import eval_shape, stage_tree
from pullback.transforms.checkpoint.checkpoint_policies import name_p
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.jit.jit import jit
from pullback.transforms.programs.jit_primitive import jit_p
from pullback.transforms.traces.derived import cached_by_jaxpr

# An operation, since within a sparsified function every array is traced as dense.
todense_p = Primitive("sparse_todense", elementwise=True, cost=traits.Cost.SIMPLE)
todense_p.host_rule = lambda x: x
todense_p.abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
todense_p.jvp(lambda primals, tangents: (primals[0], tangents[0]))
todense_p.transpose(lambda ct, x: (ct,))
todense_p.batch_rule = batch_unary(todense_p)
todense_p.lowering(lambda hlo, x: x)


def todense(arr: JAXSparse | ArrayLike) -> Array:
    """Convert a sparse array of any format to a dense one; return other arrays unchanged.

    Args:
      arr: an array, sparse or dense.

    Returns:
      A dense array. Within a sparsified function, use this to convert sparse arrays.

    Raises:
      OperandError: ``arr`` is neither an array nor a number (a TypeError).

    >>> from pullback.experimental import sparse
    >>> print(sparse.todense(sparse.eye(2)))
    [[1. 0.]
     [0. 1.]]
    """
    if isinstance(arr, JAXSparse):
        return layouts.bcoo_todense(to_bcoo(arr))
    x = pnp.asarray(arr)
    return todense_p.bind(x) if isinstance(x, Tracer) else x


@api_boundary
def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., PyTree]:
    """Return a function that evaluates ``f``, written for dense arrays, on sparse ones too, and keeps them sparse.

    Args:
      f: takes and returns trees of arrays. It may use ``jit``, other transformations, ``cond``, ``while_loop`` and
        ``scan``.
      use_tracer: is ignored; in JAX it selects one of two implementations.

    Returns:
      A function of the same arguments, in which arrays may be sparse: BCOO, BCSR, or another format, which becomes a
      BCOO. The result of an operation whose sparse operands are all BCSR is a BCSR if it has two sparse axes.

    Raises:
      UnsupportedArgumentError: an operation of ``f`` would have a dense result, or has no rule for sparse operands; the
        message names it (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> print(sparse.sparsify(lambda x, v: 2 * jnp.sin(x) @ v)(sparse.eye(2), jnp.ones(2)))
    [1.682942 1.682942]
    """
    require_function("sparsify", "f", f)

    @source.named_as(f)
    def sparse_function(*args: Any, **kwargs: Any) -> Any:
        leaves, treedef = tree.flatten((args, kwargs), is_leaf=is_sparse)
        leaves = [x if isinstance(x, BCSR) or not is_sparse(x) else to_bcoo(x) for x in leaves]
        dense = [ShapedArray(x.shape, np.dtype(x.dtype)) if is_sparse(x) else x for x in leaves]
        dense_args, dense_kwargs = tree.unflatten(treedef, dense)
        closed, out_tree = stage_tree(f, "sparsify", dense_args, dense_kwargs)
        values = [x if is_sparse(x) else pnp.asarray(x) for x in leaves]
        return tree.unflatten(out_tree, evaluate(closed, values))

    return sparse_function


def is_sparse(x: Any) -> bool:
    """Whether a value is a sparse array."""
    return isinstance(x, JAXSparse)


def evaluate(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Evaluate a program on sparse and dense arrays."""
    jaxpr = closed.jaxpr
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    read = lambda atom: env[atom] if type(atom) is Var else atom.val
    for eqn in jaxpr.eqns:
        operands = [read(a) for a in eqn.invars]
        if any(isinstance(x, JAXSparse) for x in operands):
            out = _evaluated(eqn, operands)
        else:
            out = eqn.primitive.bind(*operands, **eqn.params)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
    return [read(a) for a in jaxpr.outvars]


def _evaluated(eqn: Eqn, operands: list[Any]) -> Any:
    """Evaluate an equation with sparse operands. If all of these are BCSR, so are results with two sparse axes."""
    rule = sparse_rule(eqn)
    if not any(isinstance(x, BCSR) for x in operands):
        return rule(eqn, operands)
    given = [to_bcoo(x) if isinstance(x, BCSR) else x for x in operands]
    out = rule(eqn, given)
    if any(isinstance(x, BCOO) for x in operands):
        return out
    many = eqn.primitive.multiple_results
    outs = [_by_row_pointers(y, operands, given) for y in (out if many else [out])]
    return outs if many else outs[0]


def _by_row_pointers(out: Any, operands: Sequence[Any], given: Sequence[Any]) -> Any:
    """Convert a result to a BCSR, with the row pointers of the operand whose indices it has, if there is one."""
    if not isinstance(out, BCOO) or out.n_sparse != 2:
        return out
    for x, y in zip(operands, given, strict=True):
        if isinstance(x, BCSR) and out.indices is y.indices:
            flags = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
            return BCSR((out.data, x.indices, x.indptr), shape=out.shape, **flags)
    return from_bcoo(out)


Rule = Callable[[Eqn, list[Any]], Any]
sparsified = RuleKind(
    "sparsified",
    "elementwise operations: by their trait; functions: by their programs; others: an error that names the operation",
)
"""``rule(eqn, operands) -> results``, for equations with sparse operands; elementwise operations have a default."""


def sparse_rule(eqn: Eqn) -> Rule:
    """Return the rule that evaluates an equation with sparse operands; raise an error if its primitive has none."""
    rule = sparsified.of(eqn.primitive) or (_zero_at_zero if traits.elementwise.of(eqn.primitive) else None)
    if rule is None and (program := inlined.of(eqn.primitive)) is not None:
        return lambda eqn, operands: evaluate(program(**eqn.params), operands)
    if rule is None:
        raise UnsupportedArgumentError(
            f"sparsify: {eqn.primitive.name} has no rule for sparse arrays; if you want the dense result, convert "
            f"them first with sparse.todense(...)"
        )
    return rule


# Rules -------------------------------------------------------------------------------------------------------------


def _zero_at_zero(eqn: Eqn, operands: list[Any]) -> Any:
    """Apply an elementwise operation to the stored elements of one sparse array; other operands must be scalars.

    Raise an error if the operation does not map zeros to zero.
    """
    sparse = [x for x in operands if isinstance(x, BCOO)]
    others = [x for x in operands if not isinstance(x, BCOO)]
    numbers = all(not np.shape(x) and not isinstance(x, Tracer) for x in others)
    bind = partial(eqn.primitive.bind, **eqn.params)
    if len(sparse) > 1 or not numbers:
        raise dense_result(eqn.primitive.name)
    put = lambda x: [x if isinstance(y, BCOO) else y for y in operands]
    on_host: Any = eqn.primitive.host_rule  # evaluates even while tracing
    if on_host is None:
        raise dense_result(eqn.primitive.name)
    at_zero = state.silently(
        partial(on_host, **eqn.params), *[np.asarray(x) for x in put(np.zeros((), sparse[0].dtype))]
    )
    if at_zero != 0:
        raise dense_result(eqn.primitive.name)
    return elementwise(lambda data: bind(*put(data)), sparse[0])


def _binary(function: Callable[[Any, Any], Any]) -> Rule:
    def rule(eqn: Eqn, operands: list[Any]) -> Any:
        return cast(function(*operands), eqn.outvars[0].aval.dtype)

    return rule


def _of_first(function: Callable[..., Any]) -> Rule:
    return lambda eqn, operands: function(operands[0], **eqn.params)


def _all_sparse(operands: Sequence[Any], name: str) -> None:
    if not all(isinstance(x, BCOO) for x in operands):
        raise UnsupportedArgumentError(
            f"sparsify: {name} of sparse and dense arrays together; convert the sparse ones by sparse.todense(...), or "
            "the dense ones by sparse.BCOO.fromdense(...)"
        )


def _concatenate(eqn: Eqn, operands: list[Any]) -> Any:
    _all_sparse(operands, "concatenate")
    return bcoo_concatenate(operands, dimension=eqn.params["dimension"])


def _stack(eqn: Eqn, operands: list[Any]) -> Any:
    _all_sparse(operands, "stack")
    d = eqn.params["dimension"]
    grown = [bcoo_reshape(x, new_sizes=(*x.shape[:d], 1, *x.shape[d:])) for x in operands]
    return bcoo_concatenate(grown, dimension=d)


def _roll(eqn: Eqn, operands: list[Any]) -> Any:
    (x,), d = operands, eqn.params["dimension"]
    lows, highs = [0] * x.ndim, list(x.shape)
    lows[d] = highs[d] = x.shape[d] - eqn.params["shift"]
    first = bcoo_slice(x, start_indices=lows, limit_indices=x.shape)
    return bcoo_concatenate([first, bcoo_slice(x, start_indices=[0] * x.ndim, limit_indices=highs)], dimension=d)


def _unstack(eqn: Eqn, operands: list[Any]) -> Any:
    (x,), d = operands, eqn.params["dimension"]
    lows, highs = [0] * x.ndim, list(x.shape)
    parts = []
    for i in range(x.shape[d]):
        lows[d], highs[d] = i, i + 1
        parts.append(bcoo_squeeze(bcoo_slice(x, start_indices=lows, limit_indices=highs), dimensions=(d,)))
    return parts


def _gather(eqn: Eqn, operands: list[Any]) -> Any:
    x, indices = operands
    if isinstance(indices, BCOO):
        raise UnsupportedArgumentError("sparsify: gather takes dense indices, got a sparse array")
    params = {**eqn.params, "fill_value": None}
    numbers, sizes = params.pop("dimension_numbers"), params.pop("slice_sizes")
    return bcoo_gather(x, indices, numbers, sizes, **params)


def _reduce_sum(eqn: Eqn, operands: list[Any]) -> Any:
    out = bcoo_reduce_sum(operands[0], axes=eqn.params["axes"])
    return out if out.ndim else layouts.bcoo_todense(out)


def _norm(eqn: Eqn, operands: list[Any]) -> Any:
    mat, axes = operands[0], eqn.params["axes"]
    if len(axes) < mat.ndim:
        raise UnsupportedArgumentError("sparsify: norm of a sparse array takes all of its axes")
    mat = layouts.unique(mat)
    _, indices = layouts.spread(mat)
    data = layouts.kept(layouts.spread(mat)[0], layouts.inside(indices, layouts.kinds(mat)[1]))
    return eqn.primitive.bind(data, axes=tuple(range(data.ndim)))


def _reshape(eqn: Eqn, operands: list[Any]) -> Any:
    """Reshape an array; if only axes of size 1 are new, as in ``x[None]``, by broadcasting, which keeps the layout."""
    (x,), sizes = operands, eqn.params["new_sizes"]
    axes: list[int] = []
    for i, n in enumerate(sizes):
        if len(axes) < x.ndim and n == x.shape[len(axes)]:
            axes.append(i)
        elif n != 1:
            return bcoo_reshape(x, **eqn.params)
    if len(axes) < x.ndim:
        return bcoo_reshape(x, **eqn.params)
    return bcoo_broadcast_in_dim(x, shape=sizes, broadcast_dimensions=axes)


def _convert(eqn: Eqn, operands: list[Any]) -> Any:
    (x,) = operands
    function = linear if arithmetic.keeps_sums(x.dtype, eqn.params["new_dtype"]) else elementwise
    return function(lambda data: eqn.primitive.bind(data, **eqn.params), x)


# Programs ----------------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _compiled(closed: ClosedJaxpr) -> Callable[..., Any]:
    return jit(lambda *args: evaluate(closed, args))


class Form(NamedTuple):
    """The static layout of a sparse array, besides its shape and dtype."""

    n_batch: int
    n_dense: int
    nse: int
    index_dtype: Any
    indices_sorted: bool
    unique_indices: bool


def form_of(x: Any) -> Form | None:
    """Return the form (static layout) of a sparse array; None for a dense array."""
    if not isinstance(x, BCOO):
        return None
    return Form(x.n_batch, x.n_dense, x.nse, np.dtype(x.indices.dtype), x.indices_sorted, x.unique_indices)


def common_form(a: Form | None, b: Form | None) -> Form | None:
    """Return a form (static layout) to which arrays of both forms can be converted.

    It is None, for a dense array, if a form is None, or if the numbers of batch or dense axes differ.
    """
    if a is None or b is None or (a.n_batch, a.n_dense) != (b.n_batch, b.n_dense):
        return None
    wide = np.promote_types(a.index_dtype, b.index_dtype)
    flags = a.indices_sorted and b.indices_sorted, a.unique_indices and b.unique_indices
    return Form(a.n_batch, a.n_dense, max(a.nse, b.nse), wide, *flags)


def conform(x: Any, form: Form | None) -> Any:
    """Convert an array to a form (static layout); None is for a dense array."""
    if form is None:
        return layouts.bcoo_todense(x) if isinstance(x, BCOO) else x
    data, indices = layouts.spread(x)
    n, sparse = x.n_batch, layouts.kinds(x)[1]
    indices = indices.astype(form.index_dtype)
    lack = form.nse - x.nse
    if lack:
        zeros = pnp.zeros((*data.shape[:n], lack, *data.shape[n + 1 :]), data.dtype)
        outside = pnp.broadcast_to(
            pnp.asarray(layouts.limits(sparse, indices.dtype)), (*indices.shape[:n], lack, len(sparse))
        )
        data, indices = pnp.concatenate([data, zeros], axis=n), pnp.concatenate([indices, outside], axis=n)
    flags = {"indices_sorted": form.indices_sorted, "unique_indices": form.unique_indices}
    return BCOO((data, indices), shape=x.shape, **flags)


def _cond(eqn: Eqn, operands: list[Any]) -> Any:
    index, args = operands[0], operands[1:]
    branches = [partial(evaluate, b) for b in eqn.params["branches"]]
    results = [eval_shape(lambda *xs, b=b: [_as_tree(y) for y in b(xs)], *args) for b in branches]
    forms = [_common(column) for column in zip(*results, strict=True)]

    def run(branch: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: [conform(y, f) for y, f in zip(branch(xs), forms, strict=True)]

    return switch(index, [run(b) for b in branches], *args)


def _as_tree(x: Any) -> Any:
    return conform(x, form_of(x)) if isinstance(x, BCOO) else x


def _common(results: Sequence[Any]) -> Form | None:
    found = form_of(results[0])
    for x in results[1:]:
        found = common_form(found, form_of(x))
    return found


def fixed_point(step: Callable[[Sequence[Any]], Sequence[Any]], init: Sequence[Any]) -> list[Any]:
    """Convert the initial carry of a loop to forms (static layouts of sparse arrays) that ``step`` preserves.

    Arrays that store more elements after each step become dense.
    """
    carry = [_as_tree(x) for x in init]
    for attempt in range(2 + len(carry)):
        outs = eval_shape(lambda *xs: [_as_tree(y) for y in step(xs)], *carry)
        forms = [form_of(x) for x in carry]
        wanted = [common_form(a, form_of(b)) for a, b in zip(forms, outs, strict=True)]
        if wanted == forms:
            return carry
        if attempt:
            wanted = [w if w == f else None for w, f in zip(wanted, forms, strict=True)]
        carry = [conform(x, w) for x, w in zip(carry, wanted, strict=True)]
    return [conform(x, None) for x in carry]


def _while(eqn: Eqn, operands: list[Any]) -> Any:
    p = eqn.params
    n, m = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    tests, consts = operands[:n], operands[n:m]
    step = lambda xs: evaluate(p["body_jaxpr"], [*consts, *xs])
    carry = fixed_point(step, operands[m:])
    forms = [form_of(x) for x in carry]
    body = lambda xs: [conform(y, f) for y, f in zip(step(xs), forms, strict=True)]
    return while_loop(lambda xs: evaluate(p["cond_jaxpr"], [*tests, *xs])[0], body, carry)


def _scan(eqn: Eqn, operands: list[Any]) -> Any:
    p = eqn.params
    n, m = p["num_consts"], p["num_consts"] + p["num_carry"]
    consts, xs = operands[:n], [_by_rows(x) for x in operands[m:]]
    run = lambda carry, x: evaluate(p["jaxpr"], [*consts, *carry, *x])
    count = p["num_carry"]

    def one(carry: Sequence[Any]) -> Sequence[Any]:
        rows = [_row(x) for x in xs]
        return run(carry, rows)[:count]

    init = operands[n:m]
    carry = fixed_point(one, init) if p["length"] else [_as_tree(x) for x in init]
    forms = [form_of(x) for x in carry]

    def step(carry: Any, x: Any) -> Any:
        outs = run(carry, x)
        return [conform(y, f) for y, f in zip(outs[:count], forms, strict=True)], [_as_tree(y) for y in outs[count:]]

    last, ys = scan(step, carry, xs, length=p["length"], reverse=p["reverse"], unroll=p["unroll"])
    return [*last, *ys]


def _row(x: Any) -> Any:
    """Return the first slice of a scanned array, dense or sparse, which stands for all slices in tracing."""
    if not isinstance(x, BCOO):
        return x[0]
    data, indices = layouts.spread(x)
    flags = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
    return BCOO((data[0], indices[0]), shape=x.shape[1:], **flags)


def _by_rows(x: Any) -> Any:
    """Convert a sparse array so that its first axis is a batch axis; return other objects unchanged.

    As few elements as possible are stored for each index along this axis.
    """
    if not isinstance(x, BCOO):
        return x
    if not x.n_batch:
        x = layouts.relaid(x, n_batch=1, n_dense=min(x.n_dense, x.ndim - 1))
        x = layouts.at_most(x, int(np.prod(layouts.kinds(x)[1], dtype=np.int64)))
        x = layouts.bcoo_sum_duplicates(x) if layouts.known_values(x.indices) else x
    return _as_tree(x)


for _p in (ops.neg_p, ops.copy_p, ops.real_p, ops.imag_p, ops.conj_p, ops.stop_gradient_p, ops.once_p, name_p):
    sparsified(_p)(lambda eqn, operands: linear(lambda data: eqn.primitive.bind(data, **eqn.params), operands[0]))
sparsified(ops.convert_element_type_p)(_convert)
sparsified(ops.add_p)(_binary(arithmetic.add))
sparsified(add_any_p)(_binary(arithmetic.add))
sparsified(ops.sub_p)(_binary(arithmetic.subtract))
sparsified(ops.mul_p)(_binary(arithmetic.multiply))
sparsified(ops.div_p)(_binary(arithmetic.divide))
sparsified(dot_general_p)(lambda eqn, operands: bcoo_dot_general(*operands, **eqn.params))
sparsified(reduce_sum_p)(_reduce_sum)
sparsified(norm_p)(_norm)
sparsified(shapes.transpose_p)(_of_first(bcoo_transpose))
sparsified(shapes.reshape_p)(_reshape)
sparsified(shapes.squeeze_p)(_of_first(bcoo_squeeze))
sparsified(shapes.broadcast_in_dim_p)(_of_first(bcoo_broadcast_in_dim))
sparsified(slicing.slice_p)(_of_first(bcoo_slice))
sparsified(slicing.rev_p)(_of_first(bcoo_rev))
sparsified(dynamic_slice_p)(
    lambda eqn, operands: bcoo_dynamic_slice(operands[0], operands[1:], eqn.params["slice_sizes"])
)
sparsified(gather_p)(_gather)
sparsified(slicing.concatenate_p)(_concatenate)
sparsified(slicing.stack_p)(_stack)
sparsified(slicing.roll_p)(_roll)
sparsified(slicing.unstack_p)(_unstack)
sparsified(todense_p)(lambda eqn, operands: layouts.bcoo_todense(operands[0]))
sparsified(jit_p)(lambda eqn, operands: _compiled(eqn.params["jaxpr"])(*operands))
sparsified(cond_p)(_cond)
sparsified(while_p)(_while)
sparsified(scan_p)(_scan)

__all__ = ["sparsify", "todense"]
