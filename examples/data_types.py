"""Dual quaternions: a data type of one's own, whose tangents are twists, in derivatives of all kinds.

A rigid motion turns and shifts points. As a dual quaternion it has eight components, of which two are determined by the
others: tangents are twists, of six components, in the Lie algebra of rigid motions. The number of the frame to which a
motion leads is an integer, and has no tangent. The program checks the type and a rule of it, compares derivatives, and
finds the motion between two clouds of points by Gauss and Newton's method on the group.

    python examples/data_types.py
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as jnp
from pullback import custom_jvp, grad, jacfwd, jit, random
from pullback.derivatives import check_data_type, gauss_newton, in_coordinates, local_rule, move, register_data_type
from pullback.scipy.sparse.linalg import cg
from pullback.test_util import check_rule


class Twist(NamedTuple):
    """A tangent of rigid motions, as seen from the moved frame: angular and linear velocity, of shape (3,)."""

    angular: Any
    linear: Any


class RigidMotion(NamedTuple):
    """The dual quaternion q + epsilon t q / 2, of a rotation q and a shift t; quaternions have the scalar first.

    Attributes:
      real, dual: its quaternions, of shape (4,).
      frame: the number of the frame to which it leads.
    """

    real: Any
    dual: Any
    frame: Any


def product(p: Any, q: Any) -> Any:
    """The product of quaternions."""
    scalar = p[0] * q[0] - p[1:] @ q[1:]
    return jnp.concatenate([scalar[None], p[0] * q[1:] + q[0] * p[1:] + jnp.cross(p[1:], q[1:])])


def conjugate(q: Any) -> Any:
    return q * jnp.array([1.0, -1.0, -1.0, -1.0])


def turned(q: Any, v: Any) -> Any:
    """A vector turned by a quaternion, whose length does not matter."""
    pure = jnp.concatenate([jnp.zeros_like(v[:1]), v])
    return product(product(q, pure), conjugate(q))[1:] / (q @ q)


def shift(x: RigidMotion) -> Any:
    return 2 * product(x.dual, conjugate(x.real))[1:] / (x.real @ x.real)


def rigid_motion(real: Any, t: Any, frame: Any) -> RigidMotion:
    real = real / jnp.linalg.norm(real)
    return RigidMotion(real, product(jnp.concatenate([jnp.zeros_like(t[:1]), t]), real) / 2, frame)


def along_twist(x: RigidMotion, t: Twist) -> RigidMotion:
    """The motion after a twist: by Rodrigues' vector, which is smooth at zero and easily inverted."""
    step = jnp.concatenate([jnp.ones_like(t.angular[:1]), t.angular / 2])
    return rigid_motion(product(x.real, step), shift(x) + turned(x.real, t.linear), x.frame)


def twist_between(x: RigidMotion, y: RigidMotion) -> Twist:
    between = product(conjugate(x.real), y.real)
    return Twist(2 * between[1:] / between[0], turned(conjugate(x.real), shift(y) - shift(x)))


register_data_type(
    RigidMotion,
    zero=lambda x: Twist(jnp.zeros(3, x.real.dtype), jnp.zeros(3, x.real.dtype)),
    move=along_twist,
    difference=twist_between,
)


@custom_jvp
def transform(x: RigidMotion, point: Any) -> Any:
    """A point after a rigid motion."""
    return turned(x.real, point) + shift(x)


@transform.defjvp
@local_rule
def transform_jvp(primals: Any, tangents: Any) -> Any:
    """The velocity of the point is that of the moved frame, and its own, both turned: six numbers, not eight."""
    (x, point), (twist, velocity) = primals, tangents
    return transform(x, point), turned(x.real, jnp.cross(twist.angular, point) + twist.linear + velocity)


def residuals(x: RigidMotion, points: Any, seen: Any) -> Any:
    return jnp.stack([transform(x, p) for p in points]) - seen


@jit
def gauss_newton_step(x: RigidMotion, points: Any, seen: Any) -> tuple[RigidMotion, Any]:
    """One step on the group: the equation is one of twists, and the motion is moved along its solution."""
    local, (zero, *_) = in_coordinates(lambda x: residuals(x, points, seen), x)
    start = residuals(x, points, seen)
    half_square = lambda r: jnp.sum((r + start) ** 2) / 2
    slope = grad(lambda t: half_square(local(t)))(zero)
    twist, _ = cg(gauss_newton(local, half_square)(zero), slope, tol=1e-6)
    return move(x, Twist(-twist.angular, -twist.linear)), jnp.sqrt(jnp.mean(start**2))


def main() -> None:
    keys = random.split(random.key(0), 5)
    x = rigid_motion(random.normal(keys[0], (4,)), random.normal(keys[1], (3,)), jnp.array(7))
    point = random.normal(keys[2], (3,))

    check_data_type(x)
    check_rule(transform, x, point)
    print("the type and the rule of transform are right")

    local, (zero, _) = in_coordinates(transform, x, point)
    by_twists = jacfwd(local)(zero, jnp.zeros(3))
    r = np.stack([np.asarray(turned(x.real, e)) for e in jnp.eye(3)], 1)
    cross = np.cross(np.eye(3), np.asarray(point))  # row i: e_i x point
    np.testing.assert_allclose(by_twists.angular, r @ cross.T, atol=1e-5)
    np.testing.assert_allclose(by_twists.linear, r, atol=1e-5)
    print(f"derivative by the angular velocity:\n{np.asarray(by_twists.angular).round(3)}")

    points = random.normal(keys[3], (6, 3))
    seen = jnp.stack([transform(x, p) for p in points])
    guess = move(x, Twist(jnp.array([0.5, -0.4, 0.3]), random.normal(keys[4], (3,))))
    for step in range(6):
        guess, distance = gauss_newton_step(guess, points, seen)
        print(f"step {step}: root mean square distance {float(distance):.2e}")
    error = twist_between(x, guess)
    assert max(float(jnp.abs(e).max()) for e in error) < 1e-4, error
    assert int(guess.frame) == 7
    print("the motion between the clouds is found")


if __name__ == "__main__":
    main()
