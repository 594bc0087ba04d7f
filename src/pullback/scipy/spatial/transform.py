"""Rotations of space, and paths between them: ``pullback.scipy.spatial.transform``.

Rotations are unit quaternions (x, y, z, w). All conversions can be differentiated, also where angles are zero.

Source: Shuster 1993, *A survey of attitude representations*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback import random
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.array import Array, ArrayLike, Index, KeyArray
from pullback.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from pullback.core.faces import face
from pullback.numpy.promotion import known_int, operand, promote_all, quote, sequence
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.scipy.arguments import inexact, known

__all__ = ["Rotation", "Slerp"]
face(globals())


def _vectors(name: str, x: Any, size: int, last: int = 1) -> Any:
    """Convert ``x`` to real vectors of ``size`` elements, or if ``last`` is 2, to square matrices of this size.

    The vectors are along the last axis, and the matrices along the last two axes.
    """
    x = inexact(name, x)
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"{name} takes real numbers, got {dtypes.short_name(x.dtype)}")
    if len(x.shape) < last or x.shape[len(x.shape) - last :] != (size,) * last:
        wanted = ", ".join(["..."] + [str(size)] * last)
        raise ShapeError(f"{name} takes an array of shape ({wanted}), got {x.shape}")
    return x if x.dtype.itemsize >= 4 else ops.convert_element_type(x, np.dtype(np.float32))


def _last(x: Any) -> Any:
    """Append an axis of size one to ``x``, so that its numbers multiply vectors along the last axis."""
    return shapes.expand_dims(x, (len(x.shape),))


def _square(x: Any) -> Any:
    return pnp.sum(ops.square(x), axis=-1)


def _series(x: Any, coefficients: Sequence[float]) -> Any:
    """Evaluate the polynomial ``coefficients[0] + coefficients[1] * x + ...``."""
    out: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        out = ops.add(c, ops.mul(x, out))
    return out


class Rotation(NamedTuple):
    """One rotation of space, or an array of them.

    Rotations are made by ``from_quat``, ``from_matrix``, ``from_rotvec``, ``from_mrp``, ``from_euler``, ``identity``,
    ``random`` and ``concatenate``; a rotation is a tree of its quaternions.

    Attributes:
      quat: unit quaternions, (..., 4), in the order (x, y, z, w).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.spatial.transform import Rotation
    >>> quarter = Rotation.from_rotvec(jnp.array([0.0, 0.0, jnp.pi / 2]))
    >>> print(quarter.apply(jnp.array([1.0, 0.0, 0.0])).round(3) + 0)
    [0. 1. 0.]
    >>> print((quarter * quarter).as_euler("xyz", degrees=True).round(2) + 0)
    [  0.   0. 180.]
    """

    quat: Array

    @classmethod
    def from_quat(cls, quat: ArrayLike, *, scalar_first: bool = False) -> Rotation:
        """Make rotations from quaternions, which are divided by their norms.

        Args:
          quat: an array (..., 4) of real numbers.
          scalar_first: whether the order is (w, x, y, z).

        Returns:
          A :class:`Rotation`, or an array of them, of the leading axes.

        Raises:
          ShapeError: another shape (a TypeError and a ValueError).
          ArgumentError: a quaternion is zero (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(Rotation.from_quat(jnp.array([0.0, 0.0, 3.0, 4.0])).quat)
        [0.  0.  0.6 0.8]
        """
        q = _vectors("Rotation.from_quat", quat, 4)
        values = known(q)
        if values is not None and not np.any(values, axis=-1).all():
            raise ArgumentError("Rotation.from_quat: a zero quaternion is not a rotation")
        if scalar_first:
            q = pnp.roll(q, -1, axis=-1)
        return cls(ops.div(q, _last(ops.sqrt(_square(q)))))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """Make rotations from rotation matrices; from other matrices, rotations near them.

        Args:
          matrix: an array (..., 3, 3) of real numbers.

        Returns:
          A :class:`Rotation`, or an array of them, of the leading axes.

        Raises:
          ShapeError: another shape (a TypeError and a ValueError).

        Source: Shepperd 1978.

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(Rotation.from_matrix(jnp.eye(3)).quat)
        [0. 0. 0. 1.]
        """
        m = _vectors("Rotation.from_matrix", matrix, 3, 2)
        trace = pnp.trace(m, axis1=-2, axis2=-1)
        diagonal = [m[..., i, i] for i in range(3)]
        candidates = []
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            q: list[Any] = [None] * 4
            q[i] = ops.add(ops.sub(1.0, trace), ops.mul(2.0, diagonal[i]))
            q[j] = ops.add(m[..., j, i], m[..., i, j])
            q[k] = ops.add(m[..., k, i], m[..., i, k])
            q[3] = ops.sub(m[..., k, j], m[..., j, k])
            candidates.append(pnp.stack(q, axis=-1))
        vector = [ops.sub(m[..., (i + 2) % 3, (i + 1) % 3], m[..., (i + 1) % 3, (i + 2) % 3]) for i in range(3)]
        candidates.append(pnp.stack([*vector, ops.add(1.0, trace)], axis=-1))
        largest = _last(pnp.argmax(pnp.stack([*diagonal, trace]), axis=0))
        selected = candidates[3]
        for i in range(3):
            selected = ops.where(ops.eq(largest, i), candidates[i], selected)
        return cls(ops.div(selected, _last(ops.sqrt(_square(selected)))))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """Make rotations from vectors along their axes, whose norms are their angles.

        Args:
          rotvec: an array (..., 3) of real numbers.
          degrees: whether the angles are in degrees.

        Returns:
          A :class:`Rotation`, or an array of them, of the leading axes.

        Raises:
          ShapeError: another shape (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(Rotation.from_rotvec(jnp.array([180.0, 0.0, 0.0]), degrees=True).quat.round(3))
        [ 1.  0.  0. -0.]
        """
        v = _vectors("Rotation.from_rotvec", rotvec, 3)
        v = ops.mul(v, math.pi / 180) if degrees else v
        square = _square(v)
        small = ops.lt(square, 1e-3)
        angle, tiny = ops.sqrt(ops.where(small, 1.0, square)), ops.where(small, square, 0.0)
        half = ops.mul(0.5, angle)
        scale = ops.where(small, _series(tiny, (1 / 2, -1 / 48, 1 / 3840, -1 / 645120)), ops.div(ops.sin(half), angle))
        real = ops.where(small, _series(tiny, (1, -1 / 8, 1 / 384, -1 / 46080, 1 / 10321920)), ops.cos(half))
        return cls(pnp.concatenate([ops.mul(_last(scale), v), _last(real)], axis=-1))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """Make rotations from modified Rodrigues parameters: vectors along the axes, of norms tan(angle / 4).

        Args:
          mrp: an array (..., 3) of real numbers.

        Returns:
          A :class:`Rotation`, or an array of them, of the leading axes.

        Raises:
          ShapeError: another shape (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(Rotation.from_mrp(jnp.array([0.0, 0.0, 1.0])).quat)
        [0. 0. 1. 0.]
        """
        v = _vectors("Rotation.from_mrp", mrp, 3)
        square = _last(_square(v))
        unscaled = pnp.concatenate([ops.mul(2.0, v), ops.sub(1.0, square)], axis=-1)
        return cls(ops.div(unscaled, ops.add(1.0, square)))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Make rotations from the angles of up to three rotations about coordinate axes.

        Args:
          seq: up to three letters, whose neighbours differ: of ``xyz`` for fixed axes (extrinsic rotations), of
            ``XYZ`` for axes that rotate too (intrinsic rotations).
          angles: an array (..., n) of real numbers for n letters; for one letter also without the last axis.
          degrees: whether the angles are in degrees.

        Returns:
          A :class:`Rotation`, or an array of them, of the leading axes.

        Raises:
          ArgumentError: letters that make no sense (a TypeError and a ValueError).
          ShapeError: another number of angles (a TypeError and a ValueError).

        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(Rotation.from_euler("z", 90.0, degrees=True).quat.round(4))
        [0.     0.     0.7071 0.7071]
        """
        axes, intrinsic = _axes("Rotation.from_euler", seq, 3)
        x = inexact("Rotation.from_euler", angles)
        if len(axes) == 1 and (not x.shape or x.shape[-1] != 1 or len(x.shape) == 1):
            x = _last(x)
        x = _vectors("Rotation.from_euler", x, len(axes))
        half = ops.mul(x, (math.pi / 180 if degrees else 1.0) / 2)
        sine, cosine = ops.sin(half), ops.cos(half)
        out: Any = None
        for n, axis in enumerate(axes):
            zero = shapes.full(x.shape[:-1], 0.0, x.dtype)
            elements = [zero, zero, zero, cosine[..., n]]
            elements[axis] = sine[..., n]
            turn = pnp.stack(elements, axis=-1)
            out = turn if out is None else _product(out, turn) if intrinsic else _product(turn, out)
        return cls(out)

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Rotation:
        """Make the identity rotation, or an array of it.

        Args:
          num: the number of rotations, an integer; None for one without an axis.
          dtype: the dtype of the quaternions.

        Returns:
          A :class:`Rotation`, or ``num`` of them.

        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(Rotation.identity().quat)
        [0. 0. 0. 1.]
        """
        shape = () if num is None else (known_int("Rotation.identity", "num", num),)
        return cls(
            shapes.broadcast_to(pnp.asarray([0.0, 0.0, 0.0, 1.0], dtypes.canonicalize_dtype(dtype)), (*shape, 4))
        )

    @classmethod
    def random(cls, random_key: KeyArray, num: int | None = None) -> Rotation:
        """Draw a random rotation, or several, all equally likely.

        Args:
          random_key: a random key.
          num: the number of rotations, an integer; None for one without an axis.

        Returns:
          A :class:`Rotation`, or ``num`` of them.

        >>> from pullback import random
        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(len(Rotation.random(random.key(0), 5)))
        5
        """
        shape = () if num is None else (known_int("Rotation.random", "num", num),)
        return cls.from_quat(random.normal(random_key, (*shape, 4)))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Join several rotations, or arrays of them, to one array.

        Args:
          rotations: a sequence of :class:`Rotation`.

        Returns:
          An array of rotations.

        Raises:
          OperandError: an element is no rotation (a TypeError).

        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(len(Rotation.concatenate([Rotation.identity(), Rotation.identity(2)])))
        3
        """
        items = sequence("Rotation.concatenate", rotations)
        if not items or not all(isinstance(r, Rotation) for r in items):
            raise OperandError(f"Rotation.concatenate takes a sequence of rotations, got {quote(rotations)}")
        return cls(pnp.concatenate([pnp.atleast_2d(q) for q in promote_all("concatenate", [r.quat for r in items])]))

    @property
    def single(self) -> bool:
        """Whether this is a single rotation, not an array."""
        return len(self.quat.shape) == 1

    def __len__(self) -> int:
        if self.single:
            raise OperandError("a single rotation has no len(); make an array of rotations with Rotation.concatenate")
        return int(self.quat.shape[0])

    def __getitem__(self, indexer: Index) -> Rotation:  # type: ignore[override]
        if self.single:
            raise OperandError(f"a single rotation has no elements, got the index {quote(indexer)}")
        return Rotation(self.quat[indexer])

    def __mul__(self, other: Rotation) -> Rotation:  # type: ignore[override]
        """The rotation by ``other``, and then by this one."""
        return Rotation(_product(self.quat, other.quat)) if isinstance(other, Rotation) else NotImplemented

    def __pow__(self, n: ArrayLike) -> Rotation:
        """The rotation about the same axis by ``n`` times the angle."""
        return Rotation.from_rotvec(pnp.multiply(self.as_rotvec(), operand("Rotation.__pow__", n)))

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Return the quaternions.

        Args:
          canonical: whether to return, of the two quaternions of a rotation, the one whose w, or whose first element
            if w is zero, is positive.
          scalar_first: whether the order is (w, x, y, z).

        Returns:
          An array (..., 4) of floats, of norm 1.

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(Rotation.from_quat(jnp.array([0.0, 0.6, 0.0, -0.8])).as_quat(canonical=True))
        [-0.  -0.6 -0.   0.8]
        """
        q = _canonical(self.quat) if canonical else self.quat
        return pnp.roll(q, 1, axis=-1) if scalar_first else q

    def as_matrix(self) -> Array:
        """Return the matrices by which vectors are multiplied.

        Returns:
          An array (..., 3, 3) of floats.

        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(Rotation.identity().as_matrix())
        [[1. 0. 0.]
         [0. 1. 0.]
         [0. 0. 1.]]
        """
        x, y, z, w = (self.quat[..., i] for i in range(4))
        xx, yy, zz, ww = (ops.square(v) for v in (x, y, z, w))
        xy, zw, xz, yw, yz, xw = (ops.mul(a, b) for a, b in ((x, y), (z, w), (x, z), (y, w), (y, z), (x, w)))
        rows = [
            [xx - yy - zz + ww, 2 * (xy - zw), 2 * (xz + yw)],
            [2 * (xy + zw), -xx + yy - zz + ww, 2 * (yz - xw)],
            [2 * (xz - yw), 2 * (yz + xw), -xx - yy + zz + ww],
        ]
        return pnp.stack([pnp.stack(row, axis=-1) for row in rows], axis=-2)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Return vectors along the axes of the rotations, whose norms are their angles, at most a half turn.

        Args:
          degrees: whether the angles are in degrees.

        Returns:
          An array (..., 3) of floats.

        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(Rotation.from_euler("y", 90.0, degrees=True).as_rotvec(degrees=True).round(3))
        [ 0. 90.  0.]
        """
        q = _canonical(self.quat)
        v, w = q[..., :3], q[..., 3]
        square = _square(v)
        small = ops.lt(square, 1e-4)
        norm = ops.sqrt(ops.where(small, 1.0, square))
        w_small = ops.where(small, w, 1.0)
        ratio = ops.div(ops.where(small, square, 0.0), ops.square(w_small))
        near = ops.div(_series(ratio, (2, -2 / 3, 2 / 5, -2 / 7, 2 / 9)), w_small)
        scale = ops.where(small, near, ops.div(ops.mul(2.0, pnp.arctan2(norm, w)), norm))
        out = ops.mul(_last(scale), v)
        return ops.mul(out, 180 / math.pi) if degrees else out

    def as_mrp(self) -> Array:
        """Return modified Rodrigues parameters: vectors along the axes, of norms tan(angle / 4) of at most 1.

        Returns:
          An array (..., 3) of floats.

        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(Rotation.from_euler("x", 180.0, degrees=True).as_mrp().round(3))
        [-1. -0. -0.]
        """
        v, w = self.quat[..., :3], self.quat[..., 3:]
        return ops.div(ops.where(ops.lt(w, 0.0), ops.neg(v), v), ops.add(1.0, ops.abs(w)))

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """The angles, (..., 3), of three rotations about coordinate axes.

        Args:
          seq: three letters, as for ``from_euler``.
          degrees: whether the angles are in degrees.

        Returns:
          The first and the third angle from -π to π, the second from 0 to π if the first axis is the third, else from
          -π/2 to π/2. At its ends, where the first and the third axis are parallel, the third angle is zero.

        Raises:
          ArgumentError: letters that make no sense (a TypeError and a ValueError).

        Source: Bernardes and Viollet 2022, *Quaternion to Euler angles conversion*.

        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(Rotation.from_euler("xyz", [10.0, 20.0, 30.0], degrees=True).as_euler("xyz", degrees=True).round(3))
        [10. 20. 30.]
        """
        axes, intrinsic = _axes("Rotation.as_euler", seq, 3)
        if len(axes) != 3:
            raise ArgumentError(f"Rotation.as_euler: seq must have three letters, got {seq!r}")
        i, j, k = reversed(axes) if intrinsic else axes
        symmetric = i == k
        k = 3 - i - j if symmetric else k
        sign = float((i - j) * (j - k) * (k - i) // 2)
        x, y, z, w = self.quat[..., i], self.quat[..., j], ops.mul(sign, self.quat[..., k]), self.quat[..., 3]
        a, b, c, d = (w, x, y, z) if symmetric else (ops.sub(w, y), ops.add(x, z), ops.add(y, w), ops.sub(z, x))
        second = ops.mul(2.0, pnp.arctan2(pnp.hypot(c, d), pnp.hypot(a, b)))
        flat, folded = (ops.le_p.bind(ops.abs(ops.sub(second, end)), 1e-7) for end in (0.0, math.pi))
        degenerate = ops.or_p.bind(flat, folded)
        # Where an angle is undetermined, so are its derivatives; both operands of arctan2 may be zero there.
        total = pnp.arctan2(ops.where(folded, 0.0, b), ops.where(folded, 1.0, a))
        rest = pnp.arctan2(ops.where(flat, 0.0, d), ops.where(flat, 1.0, c))
        lower, upper = ops.sub(total, rest), ops.add(total, rest)
        alone = ops.where(flat, ops.mul(2.0, total), ops.mul(2.0 if intrinsic else -2.0, rest))
        first, third = (upper, lower) if intrinsic else (lower, upper)
        first, third = ops.where(degenerate, alone, first), ops.where(degenerate, 0.0, third)
        if not symmetric:
            second = ops.sub(second, math.pi / 2)
            if intrinsic:
                first = ops.mul(sign, first)
            else:
                third = ops.mul(sign, third)
        turn = 2 * math.pi
        first, third = (v - turn * pnp.round(v / turn) for v in (first, third))
        out = pnp.stack([first, second, third], axis=-1)
        return ops.mul(out, 180 / math.pi) if degrees else out

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Return vectors, rotated.

        Args:
          vectors: an array (..., 3) of real numbers, whose leading axes broadcast against the rotations.
          inverse: whether to rotate back.

        Returns:
          An array (..., 3) of floats.

        Raises:
          ShapeError: another shape (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(Rotation.from_euler("z", 90.0, degrees=True).apply(jnp.array([1.0, 0.0, 0.0])).round(3) + 0)
        [0. 1. 0.]
        """
        v = _vectors("Rotation.apply", vectors, 3)
        m = self.as_matrix()
        return pnp.matvec(pnp.matrix_transpose(m) if inverse else m, v)

    def inv(self) -> Rotation:
        """Return the rotations back.

        Returns:
          Rotations of the same shape.

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(Rotation.from_quat(jnp.array([0.6, 0.0, 0.0, 0.8])).inv().quat)
        [-0.6 -0.  -0.   0.8]
        """
        return Rotation(ops.mul(self.quat, np.array([-1, -1, -1, 1], self.quat.dtype)))

    def magnitude(self) -> Array:
        """Return the angles, from 0 to π.

        Returns:
          An array of floats, of the shape of the rotations.

        >>> from pullback.scipy.spatial.transform import Rotation
        >>> print(Rotation.from_euler("z", 2.0).magnitude())
        2.0
        """
        norm = pnp.linalg.norm(self.quat[..., :3], axis=-1)
        return ops.mul(2.0, pnp.arctan2(norm, ops.abs(self.quat[..., 3])))

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """Return the mean of an array of rotations: the rotation with the least sum of squared distances (of matrices).

        Args:
          weights: a vector of the weights of the rotations, not negative; None for equal ones.

        Returns:
          A :class:`Rotation`.

        Raises:
          ShapeError: weights that do not fit (a TypeError and a ValueError).
          ArgumentError: negative weights (a TypeError and a ValueError).

        Source: Markley, Cheng, Crassidis and Oshman 2007.

        >>> from pullback.scipy.spatial.transform import Rotation
        >>> turns = Rotation.from_euler("z", [0.0, 1.0])
        >>> print(turns.mean().magnitude().round(3))
        0.5
        """
        q = shapes.reshape(self.quat, (self.quat.size // 4, 4))
        if not q.shape[0]:
            raise ShapeError("Rotation.mean takes at least one rotation, got none")
        scaled = q
        if weights is not None:
            w = inexact("Rotation.mean", weights)
            if w.shape != (q.shape[0],):
                raise ShapeError(
                    f"Rotation.mean: weights must be a vector of {q.shape[0]} numbers, got shape {w.shape}"
                )
            if known(w) is not None and (known(w) < 0).any():
                raise ArgumentError(f"Rotation.mean: weights must not be negative, got {quote(known(w))}")
            scaled = pnp.multiply(q, _last(w))
        _, vectors = pnp.linalg.eigh(pnp.matmul(scaled.T, q))
        return Rotation(vectors[:, -1])


def _product(p: Any, q: Any) -> Any:
    """Return the product of the quaternions ``p`` and ``q``: a rotation by ``q``, followed by a rotation by ``p``."""
    p, q = promote_all("Rotation", (p, q))
    v, w, a, b = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    vector = pnp.add(pnp.add(pnp.multiply(w, a), pnp.multiply(b, v)), pnp.cross(v, a))
    real = pnp.subtract(pnp.multiply(w, b), pnp.sum(pnp.multiply(v, a), axis=-1, keepdims=True))
    return pnp.concatenate([vector, real], axis=-1)


def _canonical(q: Any) -> Any:
    """Return ``q`` or ``-q``, which are the same rotation: the one whose first nonzero element is positive.

    The elements are taken in the order (w, x, y, z).
    """
    negative: Any = False
    for i in (2, 1, 0, 3):
        x = q[..., i]
        negative = ops.where(ops.eq(x, 0.0), negative, ops.lt(x, 0.0))
    return ops.where(_last(negative), ops.neg(q), q)


def _axes(name: str, seq: Any, most: int) -> tuple[list[int], bool]:
    """Return the indices of the axes that the letters of ``seq`` name, and whether they are intrinsic.

    Intrinsic axes are written in upper case. ``most`` is the largest number of letters.
    """
    if not isinstance(seq, str) or not 1 <= len(seq) <= most:
        raise ArgumentError(f"{name}: seq must have one to {most} letters, got {quote(seq)}")
    if not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
        raise ArgumentError(f"{name}: seq must have letters of 'xyz' only, or of 'XYZ' only, got {seq!r}")
    if any(a == b for a, b in pairwise(seq)):
        raise ArgumentError(f"{name}: adjacent letters in seq must differ, got {seq!r}")
    return ["xyz".index(letter) for letter in seq.lower()], seq.isupper()


class Slerp(NamedTuple):
    """A path through rotations at given times, with a fixed axis and a constant speed between each two.

    Attributes:
      times: the times of the rotations, (n,).
      timedelta: the time between them, (n - 1,).
      rotations: the rotations except the last.
      rotvecs: the vectors of the rotations from each to the next, (n - 1, 3).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.spatial.transform import Rotation, Slerp
    >>> path = Slerp.init(jnp.array([0.0, 1.0]), Rotation.from_euler("z", jnp.array([0.0, 90.0]), degrees=True))
    >>> print(path(0.5).as_euler("xyz", degrees=True).round(3) + 0)
    [ 0.  0. 45.]
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """Make the path through rotations.

        Args:
          times: a vector of n real numbers that increases.
          rotations: an array of n rotations, at least two.

        Returns:
          A :class:`Slerp`, a function from times to rotations.

        Raises:
          OperandError: something else than rotations (a TypeError).
          ShapeError: not as many times as rotations, or fewer than two (a TypeError and a ValueError).
          ArgumentError: times that do not increase (a TypeError and a ValueError).

        >>> from pullback.scipy.spatial.transform import Rotation, Slerp
        >>> path = Slerp.init([0.0, 1.0], Rotation.from_euler("z", [0.0, 1.0]))
        >>> print(path(0.25).magnitude().round(3))
        0.25
        """
        if not isinstance(rotations, Rotation):
            raise OperandError(f"Slerp.init takes rotations, got {quote(rotations)} of type {type(rotations).__name__}")
        t = inexact("Slerp.init", times)
        if rotations.single or len(rotations.quat.shape) != 2 or len(rotations) < 2:
            raise ShapeError(
                f"Slerp.init takes an array of at least 2 rotations, got quaternions {rotations.quat.shape}"
            )
        if t.shape != (len(rotations),):
            raise ShapeError(f"Slerp.init takes as many times as rotations, {len(rotations)}, got shape {t.shape}")
        if known(t) is not None and not (np.diff(known(t)) > 0).all():
            raise ArgumentError(f"Slerp.init: the times must increase strictly, got {quote(known(t))}")
        start = Rotation(rotations.quat[:-1])
        return cls(t, pnp.diff(t), start, (start.inv() * Rotation(rotations.quat[1:])).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at some times.

        Args:
          times: a number, or a vector.

        Returns:
          Rotations; NaN at traced times that are out of bounds.

        Raises:
          ArgumentError: times out of bounds (a TypeError and a ValueError).
        """
        t = inexact("Slerp", times)
        t, known_times = promote_all("Slerp", (t, self.times))
        outside = ops.or_p.bind(ops.lt(t, known_times[0]), ops.gt(t, known_times[-1]))
        if known(outside) is not None and known(outside).any():
            raise ArgumentError(
                f"Slerp: the times must be from {self.times[0]} to {self.times[-1]}, got "
                f"{quote(known(t)[known(outside)])}"
            )
        last = self.timedelta.shape[0] - 1
        found = ops.sub(pnp.searchsorted(known_times, t, side="right").astype(np.int32), 1)
        i = ops.clamp_p.bind(0, found, last)
        share = pnp.divide(ops.sub(t, known_times[i]), self.timedelta[i])
        share = ops.where(outside, math.nan, share)
        return Rotation(self.rotations.quat[i]) * Rotation.from_rotvec(pnp.multiply(self.rotvecs[i], _last(share)))
