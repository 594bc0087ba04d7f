"""Lowering of a jaxpr to StableHLO text, each equation by the lowering rule of its primitive."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.backends.compiler import equal_parts, made
from pullback.backends.compiler.small_loops import ATTRIBUTES, halves, is_for_one_thread, is_small_loop
from pullback.backends.devices.devices import DeviceAssignment, Devices
from pullback.backends.devices.memories import MemoryKinds, annotated_as_requested
from pullback.backends.devices.meshes import Mesh
from pullback.backends.devices.shardings import NamedSharding, PartitionSpec
from pullback.backends.devices.storage import stored_dtype
from pullback.backends.hlo import frontend
from pullback.backends.hlo.builder import _NONE, Aliases, Builder, Value
from pullback.backends.hlo.module import Function, Module, axis_names
from pullback.core.array import SCALARS, Array, ArrayImpl, as_array, number_dtype
from pullback.core.config import config
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, aval_of, holds_programs, infer
from pullback.core.trace import Primitive, Trace, Tracer, leaked, missing_rule, state
from pullback.core.types import Shape, ShapedArray


def emit_module(
    closed: ClosedJaxpr,
    name: str,
    platform: str,
    aliases: Aliases = _NONE,
    devices: Devices | None = None,
    in_placements: Sequence[Any] = (),
    out_placements: Sequence[Any] = (),
    mesh: Mesh | None = None,
    outline: bool = True,
    memories: MemoryKinds | None = None,
) -> tuple[Module, Function]:
    """Lower a program to a module with the function ``main``.

    Args:
      closed: the program.
      name: the name of the module.
      platform: the platform of the device on which the program is to run.
      aliases: the index of each donated input, and the index of the result that reuses its memory.
      devices: the devices on which the program must run; None if the caller chose none.
      in_placements: for each input the sharding over several devices; None where the compiler may decide.
      out_placements: the sharding of each result, in the same form.
      mesh: the mesh that expresses shardings chosen by the compiler; by default the first mesh that the program names.
      outline: whether equal regions may become functions.
      memories: the kind of memory of each input and result; None if all are the devices' own. CPUs ignore it.

    Returns:
      The module and its main function, whose arguments are the inputs and then the captured arrays. The attribute
      ``devices`` of the module has the devices that the caller, operations or captured arrays require, or None.

    Raises:
      IncompatibleDevicesError: different devices are required (a RuntimeError and ValueError).
    """
    module = _module_for(name, platform, devices, memories)
    module.equal_parts = outline and platform == "cpu" and config.equal_parts
    if module.equal_parts:
        closed = equal_parts.with_inlined_calls(closed)
    if platform == "cpu" and devices is None and not in_placements:
        closed = made.read(closed)
    _add_meshes(module, mesh, (*in_placements, *out_placements))
    hlo = Builder(module)
    outs = annotated_as_requested(hlo, _emit_main(hlo, closed, in_placements, out_placements), out_placements)
    module.choose_devices()
    if module.assumed_one_device and module.size > 1:  # an operation or a captured array names a mesh
        found = mesh or next(iter(module.meshes), None)
        placements = module.devices, in_placements, out_placements
        return emit_module(closed, name, platform, aliases, *placements, found, memories=memories)
    several = isinstance(module.devices, DeviceAssignment)
    if several and any(equal_parts.ATTRIBUTES in f.attributes for f in module.functions):  # before a mesh was named
        return emit_module(closed, name, platform, aliases, devices, in_placements, out_placements, mesh, False)
    if isinstance(module.devices, DeviceAssignment) and not module.meshes:
        module.mesh(Mesh(module.devices.devices, ("devices",)))
    if platform == "cpu" and not several and (is_small_loop(hlo.written()) or _is_for_one_thread(hlo, closed)):
        module.equal_parts = False
        hlo = Builder(module)
        outs = _emit_halves(hlo, closed)
    if not several:
        return module, hlo.finish_main(outs, aliases)
    inputs = in_placements or [None] * len(closed.in_avals)
    return module, hlo.finish_main(outs, aliases, [*inputs, *hlo.captured_shardings()], out_placements)


def _is_for_one_thread(hlo: Builder, closed: ClosedJaxpr) -> bool:
    """Whether a program, which ``hlo`` has written to ``main``, runs fastest on one thread, as one function."""
    avals = itertools.chain(closed.in_avals, closed.out_avals)
    return not hlo.module.functions and is_for_one_thread([*hlo.head, *hlo.lines], avals)


def _module_for(name: str, platform: str, devices: Devices | None, memories: MemoryKinds | None) -> Module:
    """Make an empty module; the arguments are those of :func:`emit_module`."""
    module = Module(name, platform, inline)
    module.devices = devices
    module.memories = None if platform == "cpu" else memories
    return module


def _add_meshes(module: Module, mesh: Mesh | None, placements: Sequence[Any]) -> None:
    """Add a mesh, and those of shardings among ``placements``, to a module."""
    for found in (mesh, *[p.mesh for p in placements if isinstance(p, NamedSharding)]):
        if found is not None:
            module.mesh(found)


def _emit_main(
    hlo: Builder, closed: ClosedJaxpr, in_placements: Sequence[Any], out_placements: Sequence[Any]
) -> list[Value]:
    """Lower a program to the body of ``main``; return its results."""
    if not any(isinstance(p, NamedSharding) and p.spec.unreduced for p in (*in_placements, *out_placements)):
        return _emit_body(hlo, closed)
    args = []
    for a, at in itertools.zip_longest(closed.in_avals, in_placements):
        is_sum = isinstance(at, NamedSharding) and at.spec.unreduced
        x = hlo.argument(a.shape, stored_dtype(a.dtype) if is_sum else a.dtype)
        args.append(_unreduced_as_stored(hlo, x, at, a.dtype))
    outs = emit_jaxpr(hlo, closed.jaxpr, closed.consts, args)
    pairs = itertools.zip_longest(outs, out_placements)
    return [_unreduced_as_stored(hlo, x, at, stored_dtype(x.dtype)) for x, at in pairs]


def _emit_halves(hlo: Builder, closed: ClosedJaxpr) -> list[Value]:
    """Lower a small program to one outlined function, or a larger one to two, which the compiler compiles in parallel.

    Returns:
      The results of the program, from calls of these functions.
    """
    jaxpr = closed.jaxpr
    env: dict[Any, Value] = {v: hlo.argument(v.aval.shape, v.aval.dtype) for v in jaxpr.invars}
    consts = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    for half in halves(jaxpr):
        inner = Builder(hlo.module, called=True)
        known = [v for v in half.invars if v not in consts]
        values = {v: inner.argument(v.aval.shape, v.aval.dtype) for v in known}
        values.update({v: inner.captured(consts[v]) for v in half.invars if v in consts})
        outs = emit_jaxpr(inner, half, [], [values[v] for v in half.invars])
        # The compiler fails if such a function uses no argument: so it returns an element of the first one, unless that
        # has none. Other arguments may be unused, since they are in a tuple.
        outs += [_first_element(inner, x) for x in inner.arguments()[:1]]
        function = inner.finish_packed(hlo.module.unique("part"), outs, ATTRIBUTES)
        found = hlo.call(function, [env[v] for v in known])
        env.update(zip(half.outvars, found[: len(half.outvars)], strict=True))
    env.update({v: hlo.captured(consts[v]) for v in jaxpr.outvars if v in consts})
    return [_value(hlo, env, a) for a in jaxpr.outvars]


def _first_element(hlo: Builder, x: Value) -> Value:
    """The first element of an array along each axis; ``x`` itself if there is no other element, or none."""
    return x if math.prod(x.shape) < 2 else hlo.slice(x, [0] * x.ndim, [1] * x.ndim)


def shared_function(module: Module, closed: ClosedJaxpr, name: str) -> Function:
    """Return the module's function for a program, which all calls of the program share. The first call lowers it."""
    found: tuple[ClosedJaxpr, Function] | None = module.shared.get(id(closed))
    if found is None:
        hlo = Builder(module, called=True)
        outs = _emit_body(hlo, closed)
        function = hlo.finish(module.unique(name), outs)
        found = module.shared[id(closed)] = (closed, function)
    return found[1]


def own_function(module: Module, closed: ClosedJaxpr, name: str) -> Function:
    """Lower a program to a new function of the module, and return the function."""
    hlo = Builder(module, called=True)
    return hlo.finish(module.unique(name), _emit_body(hlo, closed))


def _emit_body(hlo: Builder, closed: ClosedJaxpr) -> list[Value]:
    args = [hlo.argument(a.shape, a.dtype) for a in closed.in_avals]
    return emit_jaxpr(hlo, closed.jaxpr, closed.consts, args)


def emit_jaxpr(hlo: Builder, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Value]) -> list[Value]:
    """Lower the equations of a program in the current function.

    Args:
      hlo: the builder of the function.
      jaxpr: the program.
      consts: the arrays that the program captured.
      args: the arguments of the program.

    Returns:
      The results of the program.
    """
    env: dict[Any, Value] = dict(zip(jaxpr.invars, args, strict=True))
    for var, const in zip(jaxpr.constvars, consts, strict=True):
        env[var] = hlo.captured(const)
    for var in jaxpr.invars:
        if var.aval.explicit is not None and var.aval.explicit.spec.unreduced:  # the compiler may have summed the terms
            env[var] = _constrained(hlo, env[var], var.aval.explicit)
    outer = hlo.source_loc
    start = 0
    for region in _outlined_regions(hlo.module, jaxpr):
        _emit_equations(hlo, jaxpr.eqns[start : region.start], env)
        function = _region_function(hlo.module, region)
        found = hlo.call(function, [_value(hlo, env, a) for a in region.operands])
        env.update(zip(region.results, found, strict=True))
        start = region.stop
    _emit_equations(hlo, jaxpr.eqns[start:] if start else jaxpr.eqns, env)
    hlo.source_loc = outer
    return [_value(hlo, env, a) for a in jaxpr.outvars]


def _outlined_regions(module: Module, jaxpr: Jaxpr) -> Sequence[equal_parts.Repeat]:
    """The equal regions of a program that become functions; none if outlining is off, or within ``shard_map``."""
    return equal_parts.find(jaxpr, module.kinds) if module.equal_parts and module.manual is None else ()


def _region_function(module: Module, region: equal_parts.Repeat) -> Function:
    """Return the function of an outlined region, which all copies of the region share. The first copy lowers it."""
    found: Function | None = module.shared.get(region.key)
    if found is None:
        hlo = Builder(module, called=True)
        args = [hlo.argument(v.aval.shape, v.aval.dtype) for v in region.function.invars]
        env: dict[Any, Value] = dict(zip(region.function.invars, args, strict=True))
        _emit_equations(hlo, region.function.eqns, env)
        found = hlo.finish(module.unique("part"), [env[v] for v in region.function.outvars])
        found.attributes = f" {{{equal_parts.ATTRIBUTES}}}"
        module.shared[region.key] = found
    return found


def _emit_equations(hlo: Builder, eqns: Sequence[Eqn], env: dict[Any, Value]) -> None:
    """Lower equations in the current function: read the values of operands from ``env``, and add the results to it."""
    for eqn in eqns:
        primitive = eqn.primitive
        rule = primitive.lowering_rule
        if rule is None:
            raise missing_rule(primitive, "lowering", "compilation")
        values = []
        for a in eqn.invars:
            values.append(env[a] if type(a) is Var else _value(hlo, env, a))
        outvars = eqn.outvars
        hlo.results = list(map(aval_of, outvars))
        if hlo.module.manual is not None:
            hlo.operands = list(map(aval_of, eqn.invars))
        name = f"{primitive.name}({eqn.params['name']})" if "name" in eqn.params else primitive.name
        hlo.source_loc = hlo.module.source_loc(eqn.made_at, name if eqn.scope is None else eqn.scope.label(name))
        sums = None
        if outvars and outvars[0].aval.explicit is not None and outvars[0].aval.explicit.spec.unreduced:
            sums = _terms_of(hlo, eqn)
        out = rule(hlo, *values, **eqn.params) if sums is None else _by_terms(hlo, eqn, values, sums)
        if primitive.multiple_results:
            env.update(zip(outvars, out, strict=True))
        else:
            env[outvars[0]] = out
        if eqn.scope is not None and eqn.scope.metadata:
            frontend.mark(hlo, [env[v] for v in outvars], eqn.scope.metadata)
        for v in outvars:
            if v.aval.explicit is not None:
                env[v] = _constrained(hlo, env[v], v.aval.explicit)


def _constrained(hlo: Builder, x: Value, sharding: NamedSharding) -> Value:
    """Constrain a value to the sharding of its type. Within a region of terms each device has its own."""
    if not sharding.mesh.explicit_axes:  # within shard_map, where the value is a shard
        return x
    manual = sharding.spec.unreduced & hlo.module.manual_axes
    if manual:
        kept = sharding.spec.unreduced - manual
        sharding = NamedSharding(sharding.mesh, sharding.spec.update(unreduced=kept))
    return hlo.constrained(x, sharding, bool(sharding.mesh.auto_axes or manual))


def _terms_of(hlo: Builder, eqn: Eqn) -> NamedSharding | None:
    """Return the sharding of the terms of sums on which an equation works; None if it has no such operands."""
    explicit = [a.aval.explicit for a in eqn.invars if a.aval.explicit is not None]
    found = next((s for s in explicit if s.spec.unreduced), None)
    if found is None or found.spec.unreduced <= hlo.module.manual_axes or holds_programs(eqn.params):
        return None
    return None if "sharding" in eqn.params or "placement" in eqn.params else found  # which move whole values


def _by_terms(hlo: Builder, eqn: Eqn, values: Sequence[Value], sums: NamedSharding) -> Any:
    """Lower an equation whose operands are unreduced: each device works on the terms that it has.

    Its lowering rule may write several operations, which are not all linear: the compiler must not sum between them.
    """
    operands = {v: x for v, x in zip(eqn.invars, values, strict=True) if type(v) is Var}

    def write(inner: Builder, terms: Sequence[Value]) -> list[Value]:
        env = dict(zip(operands, terms, strict=True))
        _emit_equations(inner, [eqn], env)
        return [env[v] for v in eqn.outvars]

    unreduced = [v.aval.explicit is not None and bool(v.aval.explicit.spec.unreduced) for v in operands]
    outs = _region_of_terms(hlo, sums, list(operands.values()), unreduced, list(map(aval_of, eqn.outvars)), write)
    return outs if eqn.primitive.multiple_results else outs[0]


def _region_of_terms(
    hlo: Builder, sums: NamedSharding, values: Sequence[Value], unreduced: Sequence[bool], results: Sequence[Any],
    write: Callable[[Builder, Sequence[Value]], list[Value]],
) -> list[Value]:  # fmt: skip
    """Write operations on the terms of sums that each device has; return the results, which are unreduced too.

    Args:
      hlo: the builder of the function.
      sums: a sharding that is unreduced over the axes along which devices have terms.
      values: the operands.
      unreduced: for each operand whether it is unreduced.
      results: the types of the results.
      write: takes the builder of the operations, and a value for each operand; returns the results.
    """
    module, outer, axes = hlo.module, hlo.module.manual_axes, sums.spec.unreduced
    names = [shown for n, shown in zip(sums.mesh.axis_names, axis_names(sums.mesh), strict=True) if n in axes]
    module.manual_axes = outer | axes
    try:
        inner = Builder(module, called=True)
        args = [inner.argument(x.shape, x.dtype) for x in values]
        function = inner.finish(module.unique("terms"), write(inner, args))
    finally:
        module.manual_axes = outer

    def shown(flags: Sequence[bool], types: Sequence[Any]) -> str:
        specs = [PartitionSpec(unreduced=axes if flag else frozenset()) for flag in flags]
        shardings = [NamedSharding(sums.mesh, spec) for spec in specs]
        return ", ".join([module.sharding(s, len(a.shape), True) for s, a in zip(shardings, types, strict=True)])

    region = hlo.region(
        [(x.shape, x.dtype) for x in values], lambda *terms: hlo.raw_call(function, terms), "sdy.return"
    )
    attributes = (
        f"in_shardings = #sdy.sharding_per_value<[{shown(unreduced, values)}]>, out_shardings = "
        f"#sdy.sharding_per_value<[{shown([True] * len(results), results)}]>, "
        f"manual_axes = #sdy<manual_axes{{{', '.join(names)}}}>"
    )
    kinds = [(a.shape, a.dtype) for a in results]
    return hlo.multi_result("sdy.manual_computation", values, kinds, attributes, [region])


def on_terms(
    hlo: Builder, aval: Any, terms: Sequence[Value], others: Sequence[Value], shape: Shape, write: Callable[..., Value]
) -> Value:
    """Return ``write(builder, *terms, *others)``; where ``terms`` are unreduced, each device works on those it has.

    Args:
      hlo: the builder of the function.
      aval: a type that is unreduced as ``terms`` and the result are.
      terms: values of any shapes, whose dtype is that of the result.
      others: further values, which are not unreduced.
      shape: the shape of the result.
      write: writes the operations.
    """
    sums = getattr(aval, "explicit", None)
    if sums is None or sums.spec.unreduced <= hlo.module.manual_axes:
        return write(hlo, *terms, *others)
    flags, result = [True] * len(terms) + [False] * len(others), ShapedArray(shape, aval.dtype)
    region = lambda inner, values: [write(inner, *values)]
    out = _region_of_terms(hlo, sums, [*terms, *others], flags, [result], region)[0]
    return hlo.constrained(out, NamedSharding(sums.mesh, PartitionSpec(unreduced=sums.spec.unreduced)), True)


def _unreduced_as_stored(hlo: Builder, x: Value, sharding: Any, dtype: Any) -> Value:
    """Convert an argument or a result of ``main`` between its dtype and the one in which devices store elements.

    If it is unreduced, each device converts the terms that it has. Others are converted where ``main`` is finished.
    """
    if not (isinstance(sharding, NamedSharding) and sharding.spec.unreduced) or x.dtype == dtype:
        return x
    to = lambda inner, terms: [inner.bitcast(terms[0], x.shape, dtype)]
    return _region_of_terms(hlo, sharding, [x], [True], [ShapedArray(x.shape, dtype)], to)[0]


def _value(hlo: Builder, env: dict[Any, Value], atom: Var | Literal) -> Value:
    if isinstance(atom, Var):
        return env[atom]
    number = atom.val
    return hlo.number(number._value if isinstance(number, ArrayImpl) else number, atom.aval.dtype)


# Rules written in terms of other primitives --------------------------------------------------------------------------


class EmitTracer(Tracer):
    """A tracer that stands for a value of the StableHLO function that is being written."""

    __slots__ = ("_aval", "value")

    def __init__(self, trace: Trace, value: Value, aval: ShapedArray) -> None:
        self._trace = trace
        self.value = value
        self._aval = aval
        self.made_at = None

    @property
    def aval(self) -> ShapedArray:
        return self._aval


class EmitTrace(Trace):
    """A trace that lowers each operation, by its lowering rule, into the builder ``hlo``."""

    __slots__ = ("hlo",)
    transformation = "compilation"

    def __init__(self, parent: Trace, hlo: Builder) -> None:
        super().__init__(parent)
        self.eager = self.quick = False
        self.hlo = hlo

    def adopt(self, x: ArrayImpl) -> ArrayImpl:
        return x

    def value(self, x: Any, args: Sequence[Any]) -> Value:
        if type(x) is EmitTracer:
            return x.value
        if type(x) in SCALARS:
            return self.hlo.number(x, number_dtype(args))
        array = x if isinstance(x, Array) else as_array(x)
        if not isinstance(array, ArrayImpl):
            raise leaked(array)  # type: ignore[arg-type]
        return self.hlo.captured(array)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        rule = primitive.lowering_rule
        if rule is None:
            if primitive.decomposition_rule is not None:
                return primitive.decomposition_rule(*args, **params)
            raise missing_rule(primitive, "lowering", "compilation")
        values = [self.value(x, args) for x in args]
        avals = [
            x.aval if type(x) is EmitTracer else ShapedArray(v.shape, v.dtype)
            for x, v in zip(args, values, strict=True)
        ]
        out = infer(primitive, avals, params)
        hlo = self.hlo
        outer = hlo.results, hlo.operands
        hlo.results, hlo.operands = out if primitive.multiple_results else [out], avals
        try:
            result = rule(hlo, *values, **params)
        finally:
            hlo.results, hlo.operands = outer
        if primitive.multiple_results:
            return [EmitTracer(self, v, _as_written(v, a)) for v, a in zip(result, out, strict=True)]
        return EmitTracer(self, result, _as_written(result, out))


def _as_written(value: Value, aval: ShapedArray) -> ShapedArray:
    """The type of a lowered result: the shape and dtype of ``value``, and the mesh axes along which ``aval`` varies."""
    return ShapedArray(value.shape, value.dtype, False, aval.varying)


def inline(hlo: Builder, function: Callable[..., Any], values: Sequence[Value]) -> Any:
    """Trace a Python function on ``values``, and lower its operations into the builder: see :meth:`Builder.inline`."""
    trace = EmitTrace(state.trace, hlo)
    outer, state.trace = state.trace, trace
    try:
        out = function(*[EmitTracer(trace, v, a) for v, a in zip(values, hlo.avals(values), strict=True)])
    finally:
        state.trace = outer
        trace.live = False
    if isinstance(out, (list, tuple)):
        return [trace.value(x, [x]) for x in out]
    return trace.value(out, [out])
