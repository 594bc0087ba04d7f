"""Linear systems as objects: trees of their polynomials, of their zeros, poles and gain, or of their matrices.

A system in continuous time is an ``lti``, one in discrete time a ``dlti``. Each is of one of three forms.
"""

from __future__ import annotations

import math
from typing import Any

import pullback.numpy as pnp
from pullback.core import tree
from pullback.core.array import Array, ArrayLike, as_array
from pullback.core.errors import ArgumentError, PullbackError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import quote
from pullback.scipy.arguments import known
from pullback.scipy.signal.arguments import promoted
from pullback.scipy.signal.representations import tf2zpk, zpk2tf
from pullback.scipy.signal.state_space import (
    added,
    cont2discrete,
    joined,
    matrices,
    normalize,
    ss2tf,
    ss2zpk,
    tf2ss,
    zpk2ss,
)

__all__ = ["StateSpace", "TransferFunction", "ZerosPolesGain", "dlti", "lti"]


def _step(name: str, dt: Any) -> Any:
    """Return a time step, which is None for continuous time, and True for steps of an unknown length."""
    if dt is None or dt is True:
        return dt
    if dt is False:
        raise ArgumentError(f"{name}: dt must be a positive number, or True for an unknown one, got False")
    (x,) = promoted(name, dt)
    found = known(x)
    if x.shape or (found is not None and not 0 < found < math.inf):
        raise ArgumentError(f"{name}: dt must be a positive number, or True for an unknown one, got {quote(dt)}")
    return float(dt) if isinstance(dt, (int, float)) else x


class LinearSystem:
    """A linear system: its arrays, and its time step. It is made by :class:`lti`, :class:`dlti` and their forms."""

    _arrays: tuple[Any, ...]
    _dt: Any
    _form = ""

    @property
    def dt(self) -> Any:
        """The time step: None in continuous time, True for steps of an unknown length."""
        return self._dt

    @property
    def zeros(self) -> Any:
        """The zeros, a vector of complex numbers."""
        return self.to_zpk()._arrays[0]

    @property
    def poles(self) -> Any:
        """The poles, a vector of complex numbers."""
        return self.to_zpk()._arrays[1]

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return 1

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return 1

    def to_tf(self) -> TransferFunction:
        """Return the system as polynomials.

        Returns:
          A :class:`TransferFunction` of the same time step.

        >>> from pullback.scipy import signal
        >>> print(signal.ZerosPolesGain([], [-2.0], 3.0).to_tf().den)
        [1. 2.]
        """
        return _made("to_tf", "tf", _CONVERSIONS[self._form, "tf"](*self._arrays), self._dt)

    def to_zpk(self) -> ZerosPolesGain:
        """Return the system as zeros, poles and gain.

        Returns:
          A :class:`ZerosPolesGain` of the same time step.

        >>> from pullback.scipy import signal
        >>> print(signal.TransferFunction([3.0], [1.0, 2.0]).to_zpk().poles)
        [-2.+0.j]
        """
        return _made("to_zpk", "zpk", _CONVERSIONS[self._form, "zpk"](*self._arrays), self._dt)

    def to_ss(self) -> StateSpace:
        """Return the system as matrices.

        Returns:
          A :class:`StateSpace` of the same time step.

        >>> from pullback.scipy import signal
        >>> print(signal.TransferFunction([3.0], [1.0, 2.0]).to_ss().A)
        [[-2.]]
        """
        return _made("to_ss", "ss", _CONVERSIONS[self._form, "ss"](*self._arrays), self._dt)

    def __repr__(self) -> str:
        parts = "".join(f"{x!r},\n" for x in self._arrays)
        return f"{type(self).__name__}(\n{parts}dt: {self._dt!r}\n)"


class lti(LinearSystem):
    """A linear system in continuous time, a tree of its arrays, by which results have derivatives.

    Args:
      system: two polynomials, the zeros, the poles and the gain, or four matrices A, B, C and D.

    The result is a :class:`TransferFunction`, a :class:`ZerosPolesGain` or a :class:`StateSpace`.

    Raises:
      ArgumentError: another number of arguments (a TypeError and a ValueError).
      ShapeError: arrays that do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy import signal
    >>> late = lambda system: signal.step(system, T=jnp.linspace(0, 1, 5))[1][-1]
    >>> system = signal.lti([3.0], [1.0, 2.0])
    >>> print(late(system).round(3), grad(late)(system).num.round(3))
    1.297 [0.432]
    """

    def __new__(cls, *system: Any) -> Any:
        """Return the system of its form."""
        return _of_parts(cls, "lti", system, None)

    def impulse(
        self, X0: ArrayLike | None = None, T: ArrayLike | None = None, N: int | None = None
    ) -> tuple[Array, Array]:
        """Return the response to an impulse.

        Args:
          X0, T, N: as for the function :func:`impulse`.

        Returns:
          The times and the outputs.

        >>> from pullback.scipy import signal
        >>> print(signal.lti([1.0], [1.0, 1.0]).impulse(T=[0.0, 1.0])[1].round(3))
        [1.    0.368]
        """
        return _simulations().impulse(self, X0, T, N)  # type: ignore[no-any-return]

    def step(
        self, X0: ArrayLike | None = None, T: ArrayLike | None = None, N: int | None = None
    ) -> tuple[Array, Array]:
        """Return the response to a step.

        Args:
          X0, T, N: as for the function :func:`step`.

        Returns:
          The times and the outputs.

        >>> from pullback.scipy import signal
        >>> print(signal.lti([1.0], [1.0, 1.0]).step(T=[0.0, 1.0])[1].round(3))
        [0.    0.632]
        """
        return _simulations().step(self, X0, T, N)  # type: ignore[no-any-return]

    def output(self, U: ArrayLike | None, T: ArrayLike, X0: ArrayLike | None = None) -> tuple[Array, Array, Array]:
        """Return the outputs for some inputs.

        Args:
          U, T, X0: as for the function :func:`lsim`.

        Returns:
          The times, the outputs and the states.

        >>> from pullback.scipy import signal
        >>> print(signal.lti([1.0], [1.0, 1.0]).output([1.0, 1.0], [0.0, 1.0])[1].round(3))
        [0.    0.632]
        """
        return _simulations().lsim(self, U, T, X0)  # type: ignore[no-any-return]

    def freqresp(self, w: ArrayLike | None = None, n: int = 10000) -> tuple[Array, Array]:
        """Return the response at angular frequencies.

        Args:
          w, n: as for the function :func:`freqresp`.

        Returns:
          The frequencies and the responses, complex numbers.

        >>> from pullback.scipy import signal
        >>> print(signal.lti([1.0], [1.0, 1.0]).freqresp([0.0, 1.0])[1])
        [1. +0.j  0.5-0.5j]
        """
        return _responses().freqresp(self, w, n)  # type: ignore[no-any-return]

    def bode(self, w: ArrayLike | None = None, n: int = 100) -> tuple[Array, Array, Array]:
        """Return the magnitude and the phase at angular frequencies.

        Args:
          w, n: as for the function :func:`bode`.

        Returns:
          The frequencies, the magnitudes in decibels and the phases in degrees.

        >>> from pullback.scipy import signal
        >>> print(signal.lti([1.0], [1.0, 1.0]).bode([1.0])[2])
        [-45.]
        """
        return _responses().bode(self, w, n)  # type: ignore[no-any-return]

    def to_discrete(self, dt: ArrayLike, method: str = "zoh", alpha: ArrayLike | None = None) -> dlti:
        """Return a system in discrete time that stands for this one.

        Args:
          dt, method, alpha: as for :func:`cont2discrete`.

        Returns:
          A :class:`dlti` of the same form.

        >>> from pullback.scipy import signal
        >>> print(signal.lti([1.0], [1.0, 1.0]).to_discrete(1.0).den.round(3))
        [ 1.    -0.368]
        """
        parts = cont2discrete(self._arrays, dt, method, alpha)[:-1]
        return _made("to_discrete", self._form, parts, _step("to_discrete", dt))


class dlti(LinearSystem):
    """A linear system in discrete time, a tree of its arrays and its time step.

    Args:
      system: two polynomials, the zeros, the poles and the gain, or four matrices A, B, C and D.
      dt: the time step, a positive number; True for steps of an unknown length.

    The result is a :class:`TransferFunction`, a :class:`ZerosPolesGain` or a :class:`StateSpace`.

    Raises:
      ArgumentError: another number of arguments, or a step that is not positive (a TypeError and a ValueError).
      ShapeError: arrays that do not fit (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> system = signal.dlti([1.0], [1.0, -0.5], dt=0.1)
    >>> print(system.poles, system.dt)
    [0.5+0.j] 0.1
    """

    def __new__(cls, *system: Any, dt: ArrayLike = True) -> Any:
        """Return the system of its form."""
        return _of_parts(cls, "dlti", system, dt)

    def impulse(
        self, x0: ArrayLike | None = None, t: ArrayLike | None = None, n: int | None = None
    ) -> tuple[Array, tuple[Array, ...]]:
        """Return the responses to impulses.

        Args:
          x0, t, n: as for the function :func:`dimpulse`.

        Returns:
          The times, and the outputs for each input.

        >>> from pullback.scipy import signal
        >>> print(signal.dlti([1.0], [1.0, -0.5]).impulse(n=3)[1][0].ravel())
        [0.  1.  0.5]
        """
        return _simulations().dimpulse(self, x0, t, n)  # type: ignore[no-any-return]

    def step(
        self, x0: ArrayLike | None = None, t: ArrayLike | None = None, n: int | None = None
    ) -> tuple[Array, tuple[Array, ...]]:
        """Return the responses to steps.

        Args:
          x0, t, n: as for the function :func:`dstep`.

        Returns:
          The times, and the outputs for each input.

        >>> from pullback.scipy import signal
        >>> print(signal.dlti([1.0], [1.0, -0.5]).step(n=3)[1][0].ravel())
        [0.  1.  1.5]
        """
        return _simulations().dstep(self, x0, t, n)  # type: ignore[no-any-return]

    def output(self, u: ArrayLike, t: ArrayLike | None, x0: ArrayLike | None = None) -> tuple[Array, ...]:
        """Return the outputs for some inputs.

        Args:
          u, t, x0: as for the function :func:`dlsim`.

        Returns:
          The times and the outputs; of a :class:`StateSpace` also the states.

        >>> from pullback.scipy import signal
        >>> print(signal.dlti([1.0], [1.0, -0.5]).output([1.0, 0.0, 0.0], None)[1].ravel())
        [0.  1.  0.5]
        """
        return _simulations().dlsim(self, u, t, x0)  # type: ignore[no-any-return]

    def freqresp(self, w: ArrayLike | None = None, n: int = 10000, whole: bool = False) -> tuple[Array, Array]:
        """Return the response at frequencies, in radians for each element.

        Args:
          w, n, whole: as for the function :func:`dfreqresp`.

        Returns:
          The frequencies and the responses, complex numbers.

        >>> from pullback.scipy import signal
        >>> print(signal.dlti([1.0], [1.0, -0.5]).freqresp([0.0])[1])
        [2.+0.j]
        """
        return _responses().dfreqresp(self, w, n, whole)  # type: ignore[no-any-return]

    def bode(self, w: ArrayLike | None = None, n: int = 100) -> tuple[Array, Array, Array]:
        """Return the magnitude and the phase at frequencies.

        Args:
          w, n: as for the function :func:`dbode`.

        Returns:
          The frequencies in radians for each unit of time, the magnitudes in decibels and the phases in degrees.

        >>> from pullback.scipy import signal
        >>> print(signal.dlti([1.0], [1.0, -0.5]).bode([0.0])[1].round(2))
        [6.02]
        """
        return _responses().dbode(self, w, n)  # type: ignore[no-any-return]


class TransferFunction(LinearSystem):
    """A linear system of polynomials, a tree of them.

    Args:
      system: the numerator, a vector, or a matrix of a row for each output, and the denominator, a vector, the highest
        power first; or another system.
      dt: the time step in discrete time, as for :class:`dlti`; None in continuous time.

    The polynomials are those of :func:`normalize`.

    Raises:
      ArgumentError, ShapeError: as for :func:`normalize`.

    >>> from pullback.scipy import signal
    >>> system = signal.TransferFunction([2.0, 4.0], [2.0, 1.0])
    >>> print(system.num, system.den)
    [1. 2.] [1.  0.5]
    """

    _form = "tf"

    def __new__(cls, *system: Any, dt: ArrayLike | None = None) -> Any:
        """Return the system, in continuous or discrete time."""
        return _of_form(cls, system, dt)

    @property
    def num(self) -> Any:
        """The numerator, a vector, or a matrix of a row for each output."""
        return self._arrays[0]

    @property
    def den(self) -> Any:
        """The denominator, a vector."""
        return self._arrays[1]

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return int(self.num.shape[1]) if len(self.num.shape) > 1 else 1

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return int(self.num.shape[0]) if len(self.num.shape) > 1 else 1


class ZerosPolesGain(LinearSystem):
    """A linear system of zeros, poles and gain, a tree of them.

    Args:
      system: the zeros and the poles, vectors, and the gain, a number; or another system.
      dt: the time step in discrete time, as for :class:`dlti`; None in continuous time.

    Raises:
      ArgumentError, ShapeError: arguments that do not fit (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.ZerosPolesGain([], [-2.0], 3.0).to_tf().num)
    [3.]
    """

    _form = "zpk"

    def __new__(cls, *system: Any, dt: ArrayLike | None = None) -> Any:
        """Return the system, in continuous or discrete time."""
        return _of_form(cls, system, dt)

    @property
    def zeros(self) -> Any:
        """The zeros, a vector."""
        return self._arrays[0]

    @property
    def poles(self) -> Any:
        """The poles, a vector."""
        return self._arrays[1]

    @property
    def gain(self) -> Any:
        """The gain, a number."""
        return self._arrays[2]


class StateSpace(LinearSystem):
    """A linear system of matrices, a tree of them: ``x' = A x + B u`` and ``y = C x + D u``.

    In discrete time the next state is ``A x + B u``. Systems of one kind can be added, and multiplied: the outputs of
    the right one are the inputs of the left one. Numbers and matrices can be added to ``D``, and multiply it.

    Args:
      system: the matrices (n, n), (n, inputs), (outputs, n) and (outputs, inputs), as for :func:`abcd_normalize`; or
        another system.
      dt: the time step in discrete time, as for :class:`dlti`; None in continuous time.

    Raises:
      ArgumentError, ShapeError: as for :func:`abcd_normalize`.

    >>> from pullback.scipy import signal
    >>> system = signal.StateSpace(-2.0, 1.0, 3.0, 0.0)
    >>> print((system * system + 1.0).D, (2.0 * system).C)
    [[1.]] [[6.]]
    """

    _form = "ss"
    __array_ufunc__ = None

    def __new__(cls, *system: Any, dt: ArrayLike | None = None) -> Any:
        """Return the system, in continuous or discrete time."""
        return _of_form(cls, system, dt)

    @property
    def A(self) -> Any:
        """The matrix (n, n) from states to states."""
        return self._arrays[0]

    @property
    def B(self) -> Any:
        """The matrix (n, inputs) from inputs to states."""
        return self._arrays[1]

    @property
    def C(self) -> Any:
        """The matrix (outputs, n) from states to outputs."""
        return self._arrays[2]

    @property
    def D(self) -> Any:
        """The matrix (outputs, inputs) from inputs to outputs."""
        return self._arrays[3]

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return int(self.B.shape[1])

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return int(self.C.shape[0])

    def _with(self, what: str, arrays: Any) -> StateSpace:
        return _made(f"StateSpace {what}", "ss", matrices(f"StateSpace {what}", *arrays), self._dt)

    def _same_time(self, what: str, other: StateSpace) -> None:
        if type(other) is not type(self) or not _equal_steps(self._dt, other._dt):
            raise ArgumentError(
                f"StateSpace {what}: both systems must have the same time step, got dt {self._dt} and {other._dt}"
            )

    def __neg__(self) -> StateSpace:
        return self._with("-", (self.A, self.B, -self.C, -self.D))

    def __mul__(self, other: Any) -> StateSpace:
        if isinstance(other, LinearSystem):
            if not isinstance(other, StateSpace):
                return NotImplemented
            self._same_time("*", other)
            if self.inputs != other.outputs:
                raise ShapeError(f"StateSpace *: got {other.outputs} outputs for {self.inputs} inputs")
            return self._with("*", joined(self._arrays, other._arrays))
        factor = _factor("*", other)
        return self._with("*", (self.A, pnp.dot(self.B, factor), self.C, pnp.dot(self.D, factor)))

    def __rmul__(self, other: Any) -> StateSpace:
        factor = _factor("*", other)
        return self._with("*", (self.A, self.B, pnp.dot(factor, self.C), pnp.dot(factor, self.D)))

    def __truediv__(self, other: Any) -> StateSpace:
        if isinstance(other, LinearSystem):
            return NotImplemented
        factor = _factor("/", other)
        if factor.shape:
            raise ShapeError(f"StateSpace /: a system can be divided by a number, got shape {factor.shape}")
        return self * (1 / factor)

    def __add__(self, other: Any) -> StateSpace:
        if isinstance(other, LinearSystem):
            if not isinstance(other, StateSpace):
                return NotImplemented
            self._same_time("+", other)
            sizes = (self.inputs, self.outputs), (other.inputs, other.outputs)
            if sizes[0] != sizes[1]:
                raise ShapeError(f"StateSpace +: the numbers of inputs and outputs must be equal, got {sizes}")
            return self._with("+", added(self._arrays, other._arrays))
        more = pnp.atleast_2d(_factor("+", other))
        if more.shape != self.D.shape:
            raise ShapeError(f"StateSpace +: a matrix must have the shape {self.D.shape} of D, got {more.shape}")
        return self._with("+", (self.A, self.B, self.C, self.D + more))

    __radd__ = __add__

    def __sub__(self, other: Any) -> StateSpace:
        return self + (-other if isinstance(other, StateSpace) else -_factor("-", other))

    def __rsub__(self, other: Any) -> StateSpace:
        return -self + other


def _factor(what: str, x: Any) -> Any:
    return promoted(f"StateSpace {what}", x)[0]


def _equal_steps(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if a is None or b is None or a is True or b is True:
        return False
    values = known(as_array(a)), known(as_array(b))
    return any(v is None for v in values) or bool(values[0] == values[1])


# How systems are made ------------------------------------------------------------------------------------------------


class _ContinuousTransferFunction(TransferFunction, lti):
    pass


class _DiscreteTransferFunction(TransferFunction, dlti):
    pass


class _ContinuousZerosPolesGain(ZerosPolesGain, lti):
    pass


class _DiscreteZerosPolesGain(ZerosPolesGain, dlti):
    pass


class _ContinuousStateSpace(StateSpace, lti):
    pass


class _DiscreteStateSpace(StateSpace, dlti):
    pass


_CLASSES: dict[str, tuple[type[Any], type[Any]]] = {
    "tf": (_ContinuousTransferFunction, _DiscreteTransferFunction),
    "zpk": (_ContinuousZerosPolesGain, _DiscreteZerosPolesGain),
    "ss": (_ContinuousStateSpace, _DiscreteStateSpace),
}
_FORMS = {2: "tf", 3: "zpk", 4: "ss"}
_CONVERSIONS: dict[tuple[str, str], Any] = {
    ("tf", "tf"): lambda *x: x, ("tf", "zpk"): tf2zpk, ("tf", "ss"): tf2ss,
    ("zpk", "zpk"): lambda *x: x, ("zpk", "tf"): zpk2tf, ("zpk", "ss"): zpk2ss,
    ("ss", "ss"): lambda *x: x, ("ss", "tf"): ss2tf, ("ss", "zpk"): ss2zpk,
}  # fmt: skip
"""From the arrays of each form to those of each other."""


def _zeros_poles_gain(name: str, z: Any, p: Any, k: Any) -> tuple[Any, Any, Any]:
    none = lambda x: isinstance(x, (list, tuple)) and not x
    z, p = (pnp.zeros(0) if none(x) else x for x in (z, p))
    k = promoted(name, k)[0]
    z, p = (pnp.atleast_1d(promoted(name, x, k)[0] if x.shape != (0,) else x) for x in map(pnp.asarray, (z, p)))
    if len(z.shape) != 1 or len(p.shape) != 1 or k.shape:
        raise ShapeError(
            f"{name}: the zeros and poles must be vectors and the gain a number, got shapes {z.shape}, {p.shape} and "
            f"{k.shape}"
        )
    return z, p, k


_CHECKED: dict[str, Any] = {
    "tf": lambda name, b, a: normalize(b, a), "zpk": _zeros_poles_gain, "ss": matrices,
}  # fmt: skip


def _made(name: str, form: str, arrays: Any, dt: Any) -> Any:
    """Return the system of some arrays, which are converted and checked."""
    system = object.__new__(_CLASSES[form][dt is not None])
    system._arrays, system._dt = tuple(_CHECKED[form](name, *arrays)), dt
    return system


def _of_parts(cls: Any, name: str, system: Any, dt: Any) -> Any:
    form = _FORMS.get(len(system))
    if form is None:
        raise ArgumentError(
            f"{name} takes 2 polynomials, zeros, poles and gain, or 4 matrices; got {len(system)} arguments"
        )
    return _made(name, form, system, _step(name, dt))


_CONVERTED = {"tf": "to_tf", "zpk": "to_zpk", "ss": "to_ss"}


def _of_form(cls: Any, system: Any, dt: Any) -> Any:
    form, name = cls._form, cls.__name__.removeprefix("_")
    if len(system) == 1 and isinstance(system[0], LinearSystem):
        return getattr(system[0], _CONVERTED[form])()
    count = next(n for n, known_form in _FORMS.items() if known_form == form)
    if len(system) != count:
        raise ArgumentError(f"{name} takes {count} arguments or a system, got {len(system)}")
    discrete = issubclass(cls, dlti)
    return _made(name, form, system, _step(name, True if discrete and dt is None else dt))


def system_of(name: str, system: Any, discrete: bool) -> Any:
    """Return the system that an argument stands for, which is one already or a tuple of its arrays."""
    kind, other = (dlti, lti) if discrete else (lti, dlti)
    if isinstance(system, kind):
        return system
    times = ("discrete", "continuous") if discrete else ("continuous", "discrete")
    if isinstance(system, other):
        raise ArgumentError(f"{name} takes a system in {times[0]} time, got one in {times[1]} time")
    arrays = "2, 3 or 4 arrays" + (" and the time step" if discrete else "")
    if not isinstance(system, (tuple, list)) or len(system) - discrete not in _FORMS:
        raise ArgumentError(f"{name}: system must be a system, or a tuple of {arrays}; got {quote(system)}")
    try:
        return dlti(*system[:-1], dt=system[-1]) if discrete else lti(*system)
    except PullbackError as error:
        raise ArgumentError(f"{name}: {error}") from None


def _simulations() -> Any:
    return imported("pullback.scipy.signal.simulations")


def _responses() -> Any:
    return imported("pullback.scipy.signal.system_responses")


def _flatten(system: LinearSystem) -> tuple[Any, Any]:
    known_step = system._dt is None or system._dt is True
    return (system._arrays, None if known_step else system._dt), system._dt if known_step else False


def _register(kind: type[Any]) -> None:
    def unflatten(step: Any, children: Any) -> Any:
        system = object.__new__(kind)
        system._arrays, system._dt = tuple(children[0]), children[1] if step is False else step
        return system

    tree.register_pytree_node(kind, _flatten, unflatten)


for _kinds in _CLASSES.values():
    for _kind in _kinds:
        _register(_kind)
