"""Cases of sparse arrays: operands are their data, and dense arrays; indices repeat, and some are padding."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tests.recorded.cases import Case, both, real

Layout = tuple[tuple[int, ...], int, int]
"""A shape, and how many batch and dense axes it has."""

LAYOUTS: tuple[Layout, ...] = (
    ((4, 5), 0, 0), ((6,), 0, 0), ((3, 4, 2), 1, 0), ((3, 4, 2), 0, 1), ((2, 3, 4), 1, 1), ((2, 2, 3), 2, 0),
    ((1, 7), 0, 0), ((3, 3), 0, 0), ((2, 3, 2, 2), 1, 1), ((2, 3, 4), 0, 0),
)  # fmt: skip
MATRICES: tuple[Layout, ...] = tuple(
    ((n, m), 0, 0) for n, m in ((4, 5), (1, 6), (3, 3), (6, 2), (2, 2), (5, 1), (3, 4), (2, 7), (7, 3), (4, 4))
)
IN_ROWS: tuple[Layout, ...] = (
    *MATRICES[:6], ((2, 3, 4), 1, 0), ((3, 4, 2), 0, 1), ((2, 2, 3), 1, 0), ((2, 3, 3, 2), 1, 1)
)  # fmt: skip


def of(lib: Any) -> Any:
    """The module of a library."""
    return import_module(f"{lib.__name__}.experimental.sparse")


def places(layout: Layout, nse: int, distinct: bool = False, seed: int = 0) -> np.ndarray[Any, Any]:
    """Indices of some elements, of which the last is padding unless all are distinct."""
    shape, batch, dense = layout
    sparse = shape[batch : len(shape) - dense]
    rng = np.random.default_rng([*shape, batch, dense, seed])
    lead = shape[:batch]
    indices = np.empty((*lead, nse, len(sparse)), np.int32)
    for i in np.ndindex(lead):
        cells = rng.choice(int(np.prod(sparse)), nse, replace=not distinct)
        indices[i] = np.stack(np.unravel_index(cells, sparse), -1)
    if not distinct:
        indices[..., -1, :] = sparse
    return indices


def made(lib: Any, layout: Layout, data: Any, distinct: bool = False, seed: int = 0) -> Any:
    shape, batch, _ = layout
    indices = places(layout, data.shape[batch], distinct, seed)
    return of(lib).BCOO((data, lib.numpy.asarray(indices)), shape=shape, unique_indices=distinct)


def data_of(layout: Layout, nse: int = 4, seed: int = 0, draw: Callable[..., Any] = real) -> Any:
    shape, batch, dense = layout
    drawn = draw(*shape[:batch], nse, *shape[len(shape) - dense :])
    return drawn * np.float32(1 + seed / 4)


def dense_of(x: Any) -> Any:
    return x.todense() if hasattr(x, "todense") else x


def each(
    name: str, call: Callable[..., Any], layouts: Sequence[Layout] = LAYOUTS, distinct: bool = False,
    others: Callable[[Layout], tuple[Any, ...]] = lambda layout: (), nse: int = 4,
) -> list[Case]:  # fmt: skip
    """A case for each layout: ``call(lib, array, layout, *others)``, whose result is compared as a dense array."""

    def case(layout: Layout) -> Case:
        def run(lib: Any, data: Any, *more: Any) -> Any:
            return dense_of(call(lib, made(lib, layout, data, distinct), layout, *more))

        count = min(nse, int(np.prod(layout[0][layout[1] : len(layout[0]) - layout[2]]))) if distinct else nse
        return Case(f"{name} {layout}", run, (data_of(layout, count), *others(layout)))

    return [case(layout) for layout in layouts]


def first_sparse(layout: Layout) -> int:
    return layout[1]


def vector(layout: Layout) -> tuple[Any, ...]:
    return (real(layout[0][-1 - layout[2]], seed=1),)


def whole(layout: Layout) -> tuple[Any, ...]:
    return (real(*layout[0], seed=2),)


def turned(layout: Layout) -> tuple[int, ...]:
    """A permutation within batch, sparse and dense axes."""
    shape, batch, dense = layout
    kinds = range(batch), range(batch, len(shape) - dense), range(len(shape) - dense, len(shape))
    return tuple(i for kind in kinds for i in reversed(kind))


def contracted(lib: Any, mat: Any, layout: Layout, v: Any) -> Any:
    axis = len(layout[0]) - layout[2] - 1
    numbers = (((axis,), (0,)), ((), ()))
    return of(lib).bcoo_dot_general(mat, v, dimension_numbers=numbers)


def sampled(layout: Layout) -> Case:
    (n, m), _, _ = layout
    indices = places(layout, 5)

    def run(lib: Any, x: Any, y: Any) -> Any:
        numbers = (((1,), (0,)), ((), ()))
        return of(lib).bcoo_dot_general_sampled(x, y, lib.numpy.asarray(indices), dimension_numbers=numbers)

    return Case(f"bcoo_dot_general_sampled {layout}", run, (real(n, 3), real(3, m)))


def fromdense(name: str, layout: Layout) -> Case:
    shape, batch, dense = layout
    x = np.where(real(*shape, seed=3) > 0, real(*shape), 0).astype(np.float32)
    options = {"n_batch": batch, "n_dense": dense, "nse": 3} if name.startswith("b") else {"nse": 3}
    return Case(f"{name} {layout}", lambda lib, x: getattr(of(lib), name)(x, **options).data, (x,))


def reshaped(layout: Layout) -> tuple[int, ...]:
    """The sparse axes as one."""
    shape, batch, dense = layout
    end = len(shape) - dense
    return (*shape[:batch], int(np.prod(shape[batch:end])), *shape[end:])


def part(layout: Layout) -> dict[str, Any]:
    shape, batch, _ = layout
    starts = [0 if i < batch or n == 1 else 1 for i, n in enumerate(shape)]
    return {"start_indices": tuple(starts), "limit_indices": shape}


def in_rows(name: str, call: Callable[..., Any], others: Callable[[Layout], tuple[Any, ...]]) -> list[Case]:
    return each(
        name,
        lambda lib, mat, layout, *more: call(lib, of(lib).BCSR.from_bcoo(mat), layout, *more),
        IN_ROWS,
        True,
        others,
        3,
    )


def one_matrix(lib: Any, kind: str, mat: Any) -> Any:
    """The COO or CSR of a BCOO."""
    if kind == "coo":
        return of(lib).COO((mat.data, mat.indices[:, 0], mat.indices[:, 1]), shape=mat.shape)
    by_rows = of(lib).BCSR.from_bcoo(mat)
    return of(lib).CSR((by_rows.data, by_rows.indices, by_rows.indptr), shape=mat.shape)


def of_matrices(kind: str) -> list[Case]:
    call = lambda name: lambda lib, mat, layout, *v: getattr(of(lib), f"{kind}_{name}")(one_matrix(lib, kind, mat), *v)
    width = lambda layout: (real(layout[0][1], 3, seed=4),)
    return [
        *each(f"{kind}_todense", call("todense"), MATRICES, True, nse=2),
        *each(f"{kind}_matvec", call("matvec"), MATRICES, True, vector, 2),
        *each(f"{kind}_matmat", call("matmat"), MATRICES, True, width, 2),
        *(fromdense(f"{kind}_fromdense", layout) for layout in MATRICES),
    ]


def sparsified(name: str, f: Callable[..., Any], layouts: Sequence[Layout] = MATRICES) -> list[Case]:
    return each(
        name, lambda lib, mat, layout, *v: of(lib).sparsify(lambda m, v: f(lib, m, v))(mat, *v), layouts, False, vector
    )


def operators() -> list[Case]:
    call = lambda f: lambda lib, mat, layout, *more: f(mat, *more)
    complex_case = Case(
        "matmul complex",
        lambda lib, data, v: made(lib, MATRICES[0], data) @ v,
        (data_of(MATRICES[0], draw=both), both(5)),
    )
    return [
        *each("matmul", call(lambda m, v: m @ v), MATRICES, others=vector),
        complex_case,
        *each("add", call(lambda m: m + 2 * m)),
        *each("subtract", call(lambda m: m - 2 * m)),
        *each("multiply", call(lambda m, x: m * x), others=whole),
        *each("divide", call(lambda m: m / 3)),
        *each("negative", call(lambda m: -m)),
        *each("sum", call(lambda m: m.sum())),
        *each("getitem", call(lambda m: m[0]), MATRICES),
        *each("power", call(lambda m: m**2), distinct=True),
    ]


DIAGONALS = (
    (3, 3, 0), (2, 4, 1), (4, 2, -1), (1, 1, 0), (5, 3, 2), (3, 5, -2), (2, 2, 1), (4, 4, 3), (6, 1, 0), (1, 6, 5),
)  # fmt: skip
CASES = [
    *each("bcoo_todense", lambda lib, mat, layout: of(lib).bcoo_todense(mat)),
    *(fromdense("bcoo_fromdense", layout) for layout in LAYOUTS),
    *each("bcoo_transpose", lambda lib, mat, layout: of(lib).bcoo_transpose(mat, permutation=turned(layout))),
    *each(
        "bcoo_broadcast_in_dim",
        lambda lib, mat, layout: of(lib).bcoo_broadcast_in_dim(
            mat, shape=(2, *layout[0]), broadcast_dimensions=tuple(range(1, len(layout[0]) + 1))
        ),
    ),
    *each(
        "bcoo_concatenate",
        lambda lib, mat, layout: of(lib).bcoo_concatenate([mat, mat], dimension=first_sparse(layout)),
        distinct=True,
    ),
    *each("bcoo_reshape", lambda lib, mat, layout: of(lib).bcoo_reshape(mat, new_sizes=reshaped(layout)), MATRICES),
    *each(
        "bcoo_reduce_sum", lambda lib, mat, layout: of(lib).bcoo_reduce_sum(mat, axes=(len(layout[0]) - 1 - layout[2],))
    ),
    *each("bcoo_slice", lambda lib, mat, layout: of(lib).bcoo_slice(mat, **part(layout))),
    *each(
        "bcoo_dynamic_slice",
        lambda lib, mat, layout: of(lib).bcoo_dynamic_slice(
            mat, [lib.numpy.asarray(9)] * len(layout[0]), (*layout[0][:-1], max(layout[0][-1] - 1, 1))
        ),
    ),
    *each("bcoo_squeeze", lambda lib, mat, layout: of(lib).bcoo_squeeze(mat[None], dimensions=(0,))),
    *each("bcoo_sort_indices", lambda lib, mat, layout: of(lib).bcoo_sort_indices(mat).data, distinct=True),
    *each("bcoo_sum_duplicates", lambda lib, mat, layout: of(lib).bcoo_sum_duplicates(mat, nse=4)),
    *each("bcoo_update_layout", lambda lib, mat, layout: of(lib).bcoo_update_layout(mat, n_batch=0, n_dense=0)),
    *each("bcoo_extract", lambda lib, mat, layout, x: of(lib).bcoo_extract(mat, x).data, distinct=True, others=whole),
    *each("bcoo_multiply_dense", lambda lib, mat, layout, x: of(lib).bcoo_multiply_dense(mat, x), distinct=True,
    others=whole),
    *each(
        "bcoo_multiply_sparse",
        lambda lib, mat, layout, other: of(lib).bcoo_multiply_sparse(mat, made(lib, layout, other, True, 1)),
        distinct=True,
        others=lambda layout: (data_of(layout, 2, 1),),
        nse=3,
    ),
    *each("bcoo_dot_general", contracted, others=vector),
    *map(sampled, MATRICES),
    *(fromdense("bcsr_fromdense", layout) for layout in IN_ROWS),
    *in_rows("bcsr_todense", lambda lib, mat, layout: of(lib).bcsr_todense(mat), lambda layout: ()),
    *in_rows("bcsr_extract", lambda lib, mat, layout, x: of(lib).bcsr_extract(mat.indices, mat.indptr, x), whole),
    *each(
        "bcsr_dot_general",
        lambda lib, mat, layout, v: of(lib).bcsr_dot_general(
            of(lib).BCSR.from_bcoo(mat), v, dimension_numbers=(((1,), (0,)), ((), ()))
        ),
        MATRICES, True, vector, 2,
    ),
    *of_matrices("coo"),
    *of_matrices("csr"),
    *operators(),
    *sparsified("sparsify", lambda lib, m, v: lib.numpy.sin(2 * m).T.sum(0) + abs(m) @ v),
    *sparsified("sparsify_jit", lambda lib, m, v: lib.jit(lambda m, v: (m * v) @ v)(m, v)),
    *sparsified("sparsify_cond", lambda lib, m, v: lib.lax.cond(v[0] > 0, lambda m: m @ v, lambda m: (-m) @ v, m)),
    *sparsified("sparsify_loop", lambda lib, m, v: lib.lax.fori_loop(0, 3, lambda i, m: 2 * m, m) @ v),
    *(
        Case(f"eye {n} {m} {k}", lambda lib, n=n, m=m, k=k: of(lib).eye(n, m, k).todense())
        for n, m, k in DIAGONALS
    ),
    *(
        Case(f"empty {shape}", lambda lib, shape=shape: of(lib).empty(shape).todense())
        for shape in ((2,), (3,), (2, 2), (1, 4), (3, 1), (2, 3), (2, 2, 2), (1,), (5, 1), (4, 2))
    ),
    *(
        Case(
            f"grad {layout}",
            lambda lib, data, v, layout=layout: of(lib).grad(lambda m, v: lib.numpy.sin(m @ v).sum())(
                made(lib, layout, data, True), v
            ).data,
            (data_of(layout, 2), *vector(layout)),
        )
        for layout in MATRICES
    ),
    *(
        Case(
            f"value_and_grad {layout}",
            lambda lib, data, v, layout=layout: of(lib).value_and_grad(lambda v, m: lib.numpy.sin(m @ v).sum())(
                v, made(lib, layout, data)
            ),
            (data_of(layout, 2), *vector(layout)),
        )
        for layout in MATRICES
    ),
]  # fmt: skip
