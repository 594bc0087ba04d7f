"""Colourings: which columns and rows of a sparse matrix share a product, and the position of each element in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from pullback.core.arguments import is_listed
from pullback.core.errors import ArgumentError, PatternError
from pullback.core.waiting import waiting
from pullback.derivatives.patterns import bidirectional, boolean, greedy, symmetric
from pullback.derivatives.patterns.lattice import regular
from pullback.derivatives.patterns.pattern import Pattern, pattern_of
from pullback.derivatives.patterns.pictures import picture, tones_of

MODES = ("auto", "forward", "reverse", "both")
METHODS = ("auto", "star", "acyclic", "columns")


class Forest:
    """The trees by which the elements of a matrix are computed from products, with an acyclic colouring.

    The columns of any two colours form a graph without cycles: its vertices are the columns, and its edges the elements
    that join them. An entry of a product is the sum of an element and of the elements at the edges directly below its
    edge in the tree. So the element is the sum of the entries of its edge and of all edges below, with signs that
    alternate with the depth.

    Attributes:
      above: for each edge the next edge towards the root; -1 if there is none: integers (edges,).
      signs: 1 or -1 for each edge: integers (edges,).
      elements: for each element of the matrix its edge: integers (nnz,).
    """

    __slots__ = ("above", "elements", "signs")

    def __init__(self, above: Any, signs: Any, elements: Any) -> None:
        self.above, self.signs, self.elements = above, signs, elements

    def jumps(self) -> list[Any]:
        """Return a list of arrays: ``jumps[k][e]`` is the edge 2**k steps above edge e, -1 if there is none."""
        jumps = []
        at = self.above
        while (at >= 0).any():
            jumps.append(at)
            at = np.where(at >= 0, at[np.maximum(at, 0)], -1)
        return jumps


class Colouring:
    """A pattern with the colours of its columns or rows, or both, from which a sparse derivative is computed.

    One Jacobian-vector product computes all columns of a colour, and one vector-Jacobian product all rows of a colour.
    :func:`colour_jacobian`, :func:`colour_hessian` and the method ``prepare`` of a sparse derivative return colourings.
    They can be pickled, and saved in a file.

    Attributes:
      pattern: the pattern.
      method: for a Jacobian ``"columns"``, ``"rows"`` or ``"both"``; for a Hessian ``"star"``, ``"acyclic"`` or
        ``"columns"``.
      columns: the colour of each column, -1 for a column that needs no product: integers (columns,).
      rows: the colour of each row, -1 for a row that needs no product: integers (rows,).
      positions: the index of the entry from which each element is read, in the concatenation of all products, those of
        columns first. For each edge of ``forest`` instead, with an acyclic colouring.
      forest: the trees by which elements are computed from entries, with an acyclic colouring; otherwise None.

    >>> from pullback.derivatives import Pattern, colour_jacobian
    >>> c = colour_jacobian(Pattern([[1, 1, 0], [0, 1, 1], [0, 0, 1]]))
    >>> c
    Colouring(3 x 3, 5 elements, 2 colours of columns)
    >>> c.columns.tolist(), c.count
    ([0, 1, 0], 2)
    """

    __slots__ = ("columns", "forest", "method", "pattern", "positions", "rows")

    def __init__(
        self, pattern: Pattern, method: str, columns: Any, rows: Any, positions: Any, forest: Forest | None = None
    ) -> None:
        self.pattern, self.method = pattern, method
        self.columns, self.rows = columns, rows
        self.positions, self.forest = positions, forest

    @property
    def counts(self) -> tuple[int, int]:
        """The number of colours of columns, and the number of colours of rows."""
        return int(self.columns.max(initial=-1)) + 1, int(self.rows.max(initial=-1)) + 1

    @property
    def count(self) -> int:
        """The number of all colours, which is the number of products."""
        return sum(self.counts)

    @property
    def products(self) -> Any:
        """For each element of the pattern the number of the product from which it is read: integers (nnz,).

        Products of columns are numbered first.
        """
        positions = self.positions if self.forest is None else self.positions[self.forest.elements]
        of_columns, _ = self.counts
        rows, columns = self.pattern.shape
        split = of_columns * rows
        return np.where(
            positions < split, positions // max(rows, 1), of_columns + (positions - split) // max(columns, 1)
        )

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the colouring to a file, in NumPy's format ``npz``, from which :meth:`load` reads it.

        Args:
          file: the path of the file; ``.npz`` is appended unless the path ends in it.

        >>> import os, tempfile
        >>> from pullback.derivatives import Colouring, colour_jacobian
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = os.path.join(folder, "colours.npz")
        ...     colour_jacobian([[1, 0], [0, 1]]).save(file)
        ...     Colouring.load(file)
        Colouring(2 x 2, 2 elements, 1 colour of columns)
        """
        p = self.pattern
        parts = {"shape": p.shape, "bounds": p.bounds, "pattern_columns": p.columns, "method": self.method}
        parts |= {"columns": self.columns, "rows": self.rows, "positions": self.positions}
        if self.forest is not None:
            f = self.forest
            parts |= {"above": f.above, "signs": f.signs, "elements": f.elements}
        np.savez_compressed(file, **parts)  # type: ignore[arg-type]

    @staticmethod
    def load(file: str | os.PathLike[str]) -> Colouring:
        """Read the colouring that :meth:`save` wrote to a file.

        Args:
          file: the path of the file.

        Returns:
          The :class:`Colouring`.

        Raises:
          PatternError: the file holds something else (a ValueError).
        """
        with open(file, "rb") as opened:
            try:
                return _read(dict(np.load(opened, allow_pickle=False)))
            except Exception as error:  # of whatever kind: from the readers of zip files and of NumPy's headers
                raise PatternError(f"the file {os.fspath(file)!r} does not contain a colouring: {error}") from None

    def _repr_svg_(self) -> str:
        return self.picture()

    def picture(self, size: int = 400) -> str:
        """Return a picture of the pattern as SVG, with each element in the colour of its product.

        Products of columns have bright colours, those of rows dark colours.

        Args:
          size: the length of the longer side of the picture, in pixels.

        Returns:
          The text of an SVG file.

        >>> from pullback.derivatives import colour_jacobian
        >>> colour_jacobian([[1, 1], [0, 1]]).picture().startswith("<svg")
        True
        """
        tones = tones_of(*self.counts)
        p = self.pattern
        return picture(p.shape, p.rows, p.columns, [tones[k] for k in self.products.tolist()], size)

    def __reduce__(self) -> Any:
        forest = self.forest and (self.forest.above, self.forest.signs, self.forest.elements)
        return _restored, (self.pattern, self.method, self.columns, self.rows, self.positions, forest)

    def __repr__(self) -> str:
        named = zip(self.counts, ("columns", "rows"), strict=True)
        used = [f"{n} colour{'s' if n != 1 else ''} of {what}" for n, what in named if n]
        kind = f", {self.method}" if self.method in ("star", "acyclic") else ""
        return f"Colouring({repr(self.pattern)[8:-1]}, {' and '.join(used) or 'no colours'}{kind})"


def _restored(pattern: Pattern, method: str, columns: Any, rows: Any, positions: Any, forest: Any) -> Colouring:
    return Colouring(pattern, method, columns, rows, positions, None if forest is None else Forest(*forest))


def _uncoloured(count: int) -> Any:
    return np.full(count, -1, np.int32)


def _check_orders(orders: Sequence[str], name: str) -> None:
    unknown = [o for o in orders if o not in greedy.ORDERS]
    if isinstance(orders, str) or unknown or not orders:
        raise ArgumentError(
            f"{name}: orders must be a sequence of names among {', '.join(greedy.ORDERS)}, got {orders!r}"
        )


# Jacobians -----------------------------------------------------------------------------------------------------------


def _read(parts: dict[str, Any]) -> Colouring:
    """Make a colouring of the arrays that :meth:`Colouring.save` wrote, by their names."""
    shape = (int(parts["shape"][0]), int(parts["shape"][1]))
    pattern = pattern_of(boolean.rows_of(parts["bounds"], parts["pattern_columns"], shape))
    forest = Forest(parts["above"], parts["signs"], parts["elements"]) if "above" in parts else None
    positions = parts["places" if "places" in parts else "positions"]  # files of earlier versions have "places"
    return Colouring(pattern, str(parts["method"]), parts["columns"], parts["rows"], positions, forest)


def colour_jacobian(
    pattern: Any,
    mode: str = "auto",
    orders: Sequence[str] = tuple(greedy.ORDERS),
    shapes: tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]] | None = None,
) -> Colouring:
    """Colour the columns or rows of a Jacobian, or both, with few colours.

    Columns of the same colour have no row in common, so that one product in forward mode contains all their elements.
    Likewise, rows of the same colour have no column in common, and share a product in reverse mode. With ``"both"``,
    elements of long rows are read from products of rows, so that columns of the same colour may have these rows in
    common. The same holds for long columns (Coleman and Verma 1998, *The efficient computation of sparse Jacobian
    matrices using automatic differentiation*).

    Args:
      pattern: a :class:`Pattern`, or the argument for making one.
      mode: ``"forward"`` colours columns, ``"reverse"`` rows, ``"both"`` both. ``"auto"`` selects the mode with the
        fewest colours: columns if there are as many as of rows, and both only if that saves a quarter of the products.
      orders: the orders of greedy colouring to try: some of ``"natural"``, ``"largest_first"``, ``"smallest_last"`` and
        ``"incidence_degree"``. Very large patterns are coloured in the natural order only.
      shapes: ``(shapes of the arguments, shapes of the results)``, by which regular patterns, as of stencils, are
        coloured quickly. By default, there is one vector each.

    Returns:
      The :class:`Colouring`.

    Raises:
      ArgumentError: an unknown mode or order (a ValueError).

    >>> from pullback.derivatives import colour_jacobian
    >>> arrow = [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]
    >>> colour_jacobian(arrow, "forward").count
    4
    >>> colour_jacobian(arrow)
    Colouring(4 x 4, 10 elements, 2 colours of columns and 1 colour of rows)
    """
    if not is_listed(mode, MODES):
        raise ArgumentError(f"colour_jacobian: mode must be one of {', '.join(MODES)}, got {mode!r}")
    _check_orders(orders, "colour_jacobian")
    pattern = pattern if isinstance(pattern, Pattern) else Pattern(pattern)
    rows = pattern.to_scipy()
    of_columns, of_rows = shapes or ([(pattern.shape[1],)], [(pattern.shape[0],)])
    if mode in ("auto", "both"):
        # A lower bound for the products of one kind: with a row and a column of a million elements, whose greedy
        # colouring takes too long, it shows that "both" is better without any.
        longest = min(int(np.diff(rows.indptr).max(initial=0)), int(np.bincount(rows.indices).max(initial=0)))
        best = _mixed(pattern, rows, None if mode == "both" else longest)
        if best is not None:
            return _jacobian_colouring(pattern, *best)
    best = _one_kind(pattern, rows, mode, orders, (of_columns, of_rows))
    if mode == "auto":
        best = _mixed(pattern, rows, _total(best)) or best
    return _jacobian_colouring(pattern, *best)


class Colours(NamedTuple):
    """The colours of columns and rows, before the positions of elements in products are known.

    Attributes:
      columns: the colour of each column; -1 if it needs no product.
      rows: the colour of each row; -1 if it needs no product.
      by_row: for each element whether it is read from a product of rows, instead of columns.
    """

    columns: Any
    rows: Any
    by_row: Any


def _total(colours: Colours) -> int:
    return int(colours.columns.max(initial=-1) + colours.rows.max(initial=-1)) + 2


def _one_kind(pattern: Pattern, rows: Any, mode: str, orders: Sequence[str], shapes: Any) -> Colours:
    """Colour the columns if ``mode`` is "forward", the rows if "reverse"; if "auto", whichever needs fewer colours.

    Args:
      pattern: the pattern of the Jacobian.
      rows: the pattern as a sparse matrix.
      mode: "forward", "reverse" or "auto".
      orders: the names of the orders of greedy colouring to try.
      shapes: ``(shapes of the arguments, shapes of the results)``, by which regular patterns are coloured.
    """
    best: Colours | None = None
    of_columns, of_rows = shapes
    if mode in ("auto", "forward"):
        columns = greedy.smallest(rows, orders, best=regular(rows, of_columns))
        best = Colours(columns, _uncoloured(pattern.shape[0]), np.zeros(pattern.nnz, bool))
    if mode in ("auto", "reverse") and not (best and _total(best) <= 1):
        transposed = _transposed(rows)
        least = int(np.diff(transposed.indptr).max(initial=0))
        if best is None or least < _total(best):
            by_row = greedy.smallest(transposed, orders, best=regular(transposed, of_rows))
            found = Colours(_uncoloured(pattern.shape[1]), by_row, np.ones(pattern.nnz, bool))
            best = found if best is None or _total(found) < _total(best) else best
    assert best is not None
    return best


def _transposed(rows: Any) -> Any:
    out = rows.T.tocsr()
    out.sort_indices()
    return out


def _jacobian_colouring(pattern: Pattern, columns: Any, rows: Any, by_row: Any) -> Colouring:
    """Make the :class:`Colouring` of a Jacobian from colours: find the position of each element in the products.

    Args:
      pattern: the pattern of the Jacobian.
      columns, rows: the colour of each column and of each row; colours from which no element is read are dropped.
      by_row: for each element whether it is read from a product of rows, instead of columns.
    """
    i, j = pattern.rows, pattern.columns
    columns, rows = _needed(columns, j[~by_row]), _needed(rows, i[by_row])
    count = int(columns.max(initial=-1)) + 1
    at_columns = columns[j].astype(np.int64) * pattern.shape[0] + i
    at_rows = count * pattern.shape[0] + rows[i].astype(np.int64) * pattern.shape[1] + j
    method = "rows" if count == 0 and pattern.nnz else "both" if (rows >= 0).any() else "columns"
    return Colouring(pattern, method, columns, rows, np.where(by_row, at_rows, at_columns))


def _needed(colours: Any, members: Any) -> Any:
    """Keep the colours of the columns (or rows) ``members``, and set the colours of all others to -1.

    The colours that remain are renumbered from 0, without gaps.
    """
    members = np.unique(members)
    found = _uncoloured(len(colours))
    found[members] = np.unique(colours[members], return_inverse=True)[1]
    return found


WORTH_BOTH = 0.75
"""Colour both columns and rows if that takes at most this fraction of the products of one kind: running both modes
evaluates the function twice, and reverse mode stores residuals."""


def _mixed(pattern: Pattern, rows: Any, other: int | None) -> Colours | None:
    """Colour both columns and rows, so that each element is read from a product of columns or of rows.

    Args:
      pattern: the pattern of the Jacobian.
      rows: the pattern as a sparse matrix.
      other: the number of colours if only columns, or only rows, are coloured; or None.

    Returns:
      The colours; None if they are not clearly fewer than ``other``.
    """
    most = None if other is None else int(WORTH_BOTH * other)
    # Each product has at most one element of a row, or of a column.
    if most is not None and (most < 2 or pattern.nnz > most * max(pattern.shape)):
        return None
    by_row, least = bidirectional.by_rows(pattern.rows, pattern.columns, pattern.shape)
    if most is not None and least > most:
        return None
    # The elements in the order of the transpose: by column, then by row.
    turned = np.argsort(pattern.columns, kind="stable")
    of_columns = bidirectional.smallest(rows, ~by_row)
    found = Colours(of_columns, bidirectional.smallest(_transposed(rows), by_row[turned]), by_row)
    return found if most is None or _total(found) <= most else None


# Hessians ------------------------------------------------------------------------------------------------------------


def colour_hessian(
    pattern: Any,
    method: str = "auto",
    orders: Sequence[str] = tuple(greedy.ORDERS),
    shapes: Sequence[Sequence[int]] | None = None,
) -> Colouring:
    """Colour the columns of a Hessian with few colours, using its symmetry.

    Args:
      pattern: a :class:`Pattern`, or the argument for making one; missing mirror images of elements are added.
      method: with ``"star"``, each element is read from a product: its own, or that of its mirror image. ``"acyclic"``
        needs fewer colours, but elements are differences of entries of products, so that rounding errors add up.
        ``"columns"`` colours as for a Jacobian. ``"auto"`` selects star or columns, whichever has fewer colours; but
        acyclic if that saves half of the products, and at least ten.
      orders: as for :func:`colour_jacobian`.
      shapes: the shapes of the arguments, by which regular patterns are coloured quickly; one vector by default.

    Returns:
      The :class:`Colouring`. Sources of the methods are in ``derivatives/patterns/symmetric.py``.

    Raises:
      ArgumentError: an unknown method or order (a ValueError).
      PatternError: the pattern is not square (a ValueError).

    >>> from pullback.derivatives import colour_hessian
    >>> tridiagonal = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    >>> colour_hessian(tridiagonal)
    Colouring(4 x 4, 10 elements, 3 colours of columns, star)
    >>> colour_hessian(tridiagonal, "acyclic").count
    2
    """
    if not is_listed(method, METHODS):
        raise ArgumentError(f"colour_hessian: method must be one of {', '.join(METHODS)}, got {method!r}")
    _check_orders(orders, "colour_hessian")
    pattern = pattern if isinstance(pattern, Pattern) else Pattern(pattern)
    if pattern.shape[0] != pattern.shape[1]:
        raise PatternError(f"the pattern of a Hessian must be square, got shape {pattern.shape}")
    rows = boolean.union([pattern.to_scipy(), _transposed(pattern.to_scipy())])
    if rows.nnz > pattern.nnz:
        pattern = pattern_of(rows)
    columns = None
    if method in ("auto", "columns"):
        columns = regular(rows, shapes or [(pattern.shape[1],)])
        if method == "columns":
            columns = greedy.smallest(rows, orders, best=columns)
            return _jacobian_colouring(pattern, columns, _uncoloured(pattern.shape[0]), np.zeros(pattern.nnz, bool))
        # For regular patterns symmetry does not help.
        lengths = np.diff(rows.indptr)
        if columns is not None and columns.max() < lengths.max() <= 1.25 * lengths.mean():
            return _hessian_colouring(pattern, "star", columns)
    return _hessian_colouring(pattern, *_symmetric_colours(rows, method, orders, columns))


WORTH_SUBSTITUTION = 10
"""``"auto"`` selects an acyclic colouring if it saves half of the products of a star colouring, and at least this many:
then the sums over trees cost less than the products (44 and 17 products of 2,000 columns: 4.6 and 0.8 ms; 17 and 8
products: 0.34 and 0.39 ms)."""


def _symmetric_colours(rows: Any, method: str, orders: Sequence[str], columns: Any) -> tuple[str, Any]:
    """Colour the columns of a Hessian greedily in several orders, and return the method and the fewest colours.

    Args:
      rows: the symmetric pattern, as a sparse matrix.
      method: "star", "acyclic", or "auto", which selects star, or acyclic if that saves many colours.
      orders: the names of the orders to try.
      columns: the colours of a colouring that is already known, or None.

    Returns:
      "star" or "acyclic"; and the colour of each column. These are ``columns`` if no other colouring has fewer.
    """
    neighbours = symmetric.neighbours_of(rows)
    order = active = np.flatnonzero(np.diff(rows.indptr))
    count = None if columns is None else int(columns.max()) + 1
    best = columns
    for name in orders[:1] if rows.nnz > greedy.MOST_EDGES else orders:
        turns = greedy.ORDERS[name](neighbours)
        turns = turns[np.isin(turns, active)] if len(active) < len(turns) else turns
        with waiting(f"colouring, {name}"):
            found = (symmetric.acyclic if method == "acyclic" else symmetric.star)(neighbours, turns.tolist())
        if count is None or found.max(initial=-1) + 1 < count:
            best, order, count = found, turns, int(found.max(initial=-1)) + 1
    if method == "auto" and count is not None and count >= 2 * WORTH_SUBSTITUTION:
        with waiting("colouring, acyclic"):
            found = symmetric.acyclic(neighbours, order.tolist())
        if int(found.max()) + 1 <= min(count // 2, count - WORTH_SUBSTITUTION):
            return "acyclic", found
    return "acyclic" if method == "acyclic" else "star", best


def _hessian_colouring(pattern: Pattern, method: str, columns: Any) -> Colouring:
    """Make the :class:`Colouring` of a Hessian from the colours of its columns.

    With the method "star", element (i, j) is read from the product of column j, unless row i has another element in a
    column of the same colour: then its mirror image (j, i) is read, from the product of column i. With the method
    "acyclic", elements are computed from trees of entries of products.
    """
    size = pattern.shape[0]
    rows = _uncoloured(size)
    i, j = pattern.rows, pattern.columns
    if method == "acyclic":
        return Colouring(pattern, method, columns, rows, *_forest(i, j, columns))
    at = columns[j].astype(np.int64) * size + i
    _, where, times = np.unique(at, return_inverse=True, return_counts=True)
    alone = times[where] == 1
    return Colouring(pattern, method, columns, rows, np.where(alone, at, columns[i].astype(np.int64) * size + j))


def _forest(i: Any, j: Any, columns: Any) -> tuple[Any, Forest]:
    """Return for each edge of an acyclic colouring the position of its entry in the products; and the :class:`Forest`.

    Each element is an edge from its row to its column; an element on the diagonal is a separate edge. A vertex belongs
    to one tree for each colour of its neighbours. While the trees are searched, an extra vertex joins them, so that one
    search visits all.

    Args:
      i, j: the row and the column of each element.
      columns: the colour of each column.
    """
    size, count = len(columns), int(columns.max(initial=-1)) + 1
    diagonal = i == j
    low, high = np.minimum(columns[i], columns[j]), np.maximum(columns[i], columns[j])
    pair = low.astype(np.int64) * count + high
    keys, node = np.unique(pair * size + i, return_inverse=True)  # a vertex in the trees of a pair of colours
    other = np.searchsorted(keys, pair * size + j)
    off = ~diagonal
    total = len(keys)
    graph = sp.coo_array((np.ones(int(off.sum()), np.int8), (node[off], other[off])), shape=(total + 1, total + 1))
    _, label = csgraph.connected_components(graph, directed=False)
    roots = np.unique(label[:total], return_index=True)[1] if total else np.zeros(0, np.int64)
    joined = sp.coo_array(
        (
            np.ones(graph.nnz + len(roots), np.int8),
            (np.append(graph.row, np.full(len(roots), total)), np.append(graph.col, roots)),
        ),
        shape=graph.shape,
    )
    _, parent = csgraph.breadth_first_order(joined.tocsr(), total, directed=True)
    parent = np.where(parent == total, -1, parent)[:total]
    depth = _depths(parent)
    # The edge of a node leads to its parent; a root has none, except if it represents the diagonal.
    vertex = keys % size
    colour = columns[vertex[np.maximum(parent, 0)]].astype(np.int64)
    positions = np.where(parent >= 0, colour * size + vertex, 0)
    on_diagonal = np.zeros(total, bool)
    on_diagonal[node[diagonal]] = True
    positions = np.where(on_diagonal, columns[vertex].astype(np.int64) * size + vertex, positions)
    above = np.where((parent >= 0) & (parent[np.maximum(parent, 0)] >= 0), parent, -1)
    elements = np.where(diagonal | (parent[node] == other), node, other)
    return positions, Forest(above, np.where(depth % 2, -1, 1), elements)


def _depths(parent: Any) -> Any:
    """Return the depth of each node of a forest; ``parent`` has the parent of each node, -1 for a root.

    The method is pointer doubling, whose number of steps is the logarithm of the greatest depth.
    """
    depth = (parent >= 0).astype(np.int64)
    at = parent
    while (at >= 0).any():
        depth = depth + np.where(at >= 0, depth[np.maximum(at, 0)], 0)
        at = np.where(at >= 0, at[np.maximum(at, 0)], -1)
    return depth
