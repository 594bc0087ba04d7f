"""``python -m pullback show``: the program of a function for arguments that are described by their types.

The arguments are read by :func:`parse_arguments`, in the short names of types that jaxprs print.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from pullback.core import dtypes, tree
from pullback.core.array import typeof
from pullback.core.errors import ArgumentError, BackendError, RendererError
from pullback.core.jaxpr import ClosedJaxpr
from pullback.drawing import Drawing, input_names, result_names
from pullback.transforms.autodiff.grad import linearize, vjp
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct, eval_shape, make_jaxpr
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.functions.api_boundary import Transformed
from pullback.transforms.functions.arguments import abstractify

FORMS = ("jaxpr", "hlo", "svg", "dot")

Function = Callable[..., Any]


# Arguments -----------------------------------------------------------------------------------------------------------


def parse_arguments(text: str) -> list[Any]:
    """Parse a list of arguments, given by types or values.

    Args:
      text: arguments separated by commas. Each is a type such as ``f32[2,3]``, a Python number, a string, ``True``,
        ``False`` or ``None``, or a tuple, list or dictionary of these.

    Returns:
      The arguments; a type becomes a ``ShapeDtypeStruct``.

    Raises:
      ArgumentError: the text cannot be parsed; the message quotes it, with a caret under the error (a ValueError).

    >>> from pullback.show import parse_arguments
    >>> parse_arguments('{"w": f32[3,4], "b": f32[]}, 2')[0]["w"], parse_arguments("i32[], (2, 0.5)")[1]
    (ShapeDtypeStruct(shape=(3, 4), dtype=float32), (2, 0.5))
    """
    return _Reader(text).arguments()


_NUMBER = re.compile(r"[+-]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)([eE][+-]?\d+)?j?")
_STRING = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"")
_WORD = re.compile(r"[A-Za-z_]\w*(<\w+>)?")
_SIZE = re.compile(r"\d+")
_SPACE = re.compile(r"\s*")
_VALUES = {"True": True, "False": False, "None": None}
_WHAT = "a type such as f32[2,3], a number, a string, or a tuple, list or dictionary of these"


class _Reader:
    """A parser of the text of ``--args``, the arguments of a function, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def arguments(self) -> list[Any]:
        values: list[Any] = []
        if self.next():
            values, _ = self.items(self.value, "")
        return values

    def fail(self, message: str, at: int | None = None) -> ArgumentError:
        shown = "".join(c if c.isprintable() else " " for c in self.text)
        return ArgumentError(f"--args: {message}\n  {shown}\n  {' ' * (self.at if at is None else at)}^")

    def found(self) -> str:
        """Describe the next character for an error message: in quotes, or "the end"."""
        return repr(self.next()) if self.next() else "the end"

    def next(self) -> str:
        """Move to the next character that is not blank, and return it; return "" at the end of the text."""
        space = _SPACE.match(self.text, self.at)
        assert space is not None
        self.at = space.end()
        return self.text[self.at : self.at + 1]

    def take(self, pattern: re.Pattern[str], expected: str) -> str:
        self.next()
        match = pattern.match(self.text, self.at)
        if match is None:
            raise self.fail(f"expected {expected}, got {self.found()}")
        self.at = match.end()
        return match.group()

    def items(self, one: Callable[[], Any], closing: str) -> tuple[list[Any], bool]:
        """Parse items separated by commas up to ``closing``, which is a bracket, or "" for the end of the text.

        ``one`` parses one item. Return the list of items, and whether there was a comma.
        """
        start = self.at - 1
        values: list[Any] = []
        comma = False
        while self.next() != closing:
            values.append(one())
            if self.next() == ",":
                comma = True
                self.at += 1
            elif self.next() != closing:
                if not self.next():
                    raise self.fail(f"this bracket is not closed: expected ',' or '{closing}', got the end", start)
                raise self.fail(f"expected ','{f' or {closing!r}' if closing else ' or the end'}, got {self.found()}")
        self.at += len(closing)
        return values, comma

    def value(self) -> Any:
        first = self.next()
        if first and first in "([{":
            self.at += 1
            if first == "{":
                return dict(self.items(self.entry, "}")[0])
            values, comma = self.items(self.value, ")" if first == "(" else "]")
            if first == "[":
                return values
            return values[0] if len(values) == 1 and not comma else tuple(values)
        if first and first in "'\"":
            return self.string()
        if first.isdigit() or (first and first in "+-."):
            return self.literal(_NUMBER, "a number")
        return self.word()

    def entry(self) -> tuple[Any, Any]:
        if self.next() and self.next() in "'\"":
            key: Any = self.string()
        else:
            key = int(self.take(_SIZE, "a key (a string or an integer)"))
        if self.next() != ":":
            raise self.fail(f"expected ':' after the key {key!r}, got {self.found()}")
        self.at += 1
        return key, self.value()

    def string(self) -> Any:
        return self.literal(_STRING, "a string with matching quotes")

    def literal(self, pattern: re.Pattern[str], expected: str) -> Any:
        start = self.at
        text = self.take(pattern, expected)
        try:
            return ast.literal_eval(text)
        except (SyntaxError, ValueError):
            raise self.fail(f"expected {expected}, got {text}", start) from None

    def word(self) -> Any:
        start = self.at
        name = self.take(_WORD, _WHAT)
        if name in _VALUES and self.next() != "[":
            return _VALUES[name]
        dtype = _types().get(name)
        if dtype is None:
            raise self.fail(f"unknown type {name!r}; the types are {', '.join(_types())}", start)
        if dtypes.canonicalize_dtype(dtype) != dtype:
            raise self.fail(f"{name} has 64 bits, which are off: set PULLBACK_ENABLE_X64=1 in the environment", start)
        if self.next() != "[":
            raise self.fail(f"expected '[' and the sizes of the axes, as in {name}[3] or {name}[], got {self.found()}")
        self.at += 1
        sizes, _ = self.items(lambda: int(self.take(_SIZE, "the size of an axis")), "]")
        return ShapeDtypeStruct(sizes, dtype)


_NUMBERS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bfloat16", "float16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
_NARROW = (
    "int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip


@cache
def _types() -> dict[str, dtypes.DType]:
    """Return a dict from the short names of dtypes that arguments may have to the dtypes, common ones first."""
    found = [np.dtype(getattr(dtypes, name) if name in ("bfloat16", *_NARROW) else name) for name in _NUMBERS + _NARROW]
    return {
        dtypes.short_name(d): d for d in [*found[: len(_NUMBERS)], *dtypes.KEY_DTYPES.values(), *found[len(_NUMBERS) :]]
    }


# The function --------------------------------------------------------------------------------------------------------


class TracingError(Exception):
    """The function could not be traced.

    Attributes:
      error: the error from tracing.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Subject(NamedTuple):
    """A function with the arguments to trace it at.

    Attributes:
      function: the function, transformed.
      args: its arguments, types or values.
      inputs: the name of each leaf of the arguments.
      title: the expression for the function, such as ``jit(grad(loss))``.
    """

    function: Function
    args: list[Any]
    inputs: list[str]
    title: str

    def text(self, form: str) -> str:
        """Return the program as text in one of the ``FORMS``.

        Raises:
          TracingError: the function cannot be traced.
          BackendError: ``form`` is StableHLO, and there is no compiler (a RuntimeError).
          RendererError: ``form`` is a drawing, and no renderer is installed (a RuntimeError).
        """
        try:
            closed, out = make_jaxpr(self.function, return_shape=True)(*self.args)
            if form == "jaxpr":
                return str(closed)
            if form == "hlo":
                return _stable_hlo(closed, self.title)
        except (BackendError, RendererError):
            raise
        except Exception as error:
            raise TracingError(error) from error
        drawing = Drawing(closed, self.title, self.inputs, result_names(out))
        return drawing.source if form == "dot" else drawing.svg()


def _stable_hlo(closed: ClosedJaxpr, title: str) -> str:
    from pullback.backends.compiler.programs import Lowered
    from pullback.backends.devices.devices import default_device

    return Lowered(closed, re.sub(r"\W+", "_", title).strip("_"), default_device()).module.text()


def subject(function: str, arguments: str = "", static: str = "", transform: str = "") -> Subject:
    """Return the function, arguments and transformations that the command line describes.

    Args:
      function: ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``; the function may be an attribute of an attribute.
      arguments: its arguments; see :func:`parse_arguments`.
      static: the positions of static arguments, separated by commas.
      transform: names of transformations, separated by commas, in the order of their application.

    Raises:
      ArgumentError: one of them is invalid (a ValueError).
      TracingError: a transformation needs the result of the function, which cannot be traced.

    >>> from pullback.show import subject
    >>> subject("pullback.numpy:sum", "f32[3]", transform="grad,jit").title
    'jit(grad(sum))'
    """
    fun = _function(function)
    values = parse_arguments(arguments)
    names = [name.strip() for name in transform.split(",")] if transform.strip() else []
    for name in names:
        if name not in transformations():
            raise ArgumentError(
                f"--transform: unknown transformation {name!r}; the transformations are {', '.join(transformations())}"
            )
    _check_call(fun, function, values)
    fixed = _positions(static, values)
    for i, value in enumerate(values):
        _check_argument(i, value, i in fixed)
    inputs = input_names(fun, [None if i in fixed else x for i, x in enumerate(values)])
    dynamic = [x for i, x in enumerate(values) if i not in fixed]
    found = Subject(_given(fun, values, fixed), dynamic, inputs, function.rpartition(":")[2])
    for i, name in enumerate(names):
        transform_by = _WITH_FURTHER_INPUTS.get(name, _plainly)
        try:
            found = transform_by(found, name, names[i + 1 :].count("vmap"))
        except Exception as error:
            raise TracingError(error) from error
    return found


def _function(text: str) -> Function:
    """Import and return the function that ``text`` names as MODULE:FUNCTION; raise ArgumentError if this fails."""
    module, _, path = text.rpartition(":")  # the path of a file may have a colon too, as C:\model.py
    if not (module and path):
        raise ArgumentError(f"expected MODULE:FUNCTION, such as model:loss or model.py:loss, got {text!r}")
    is_file = module.endswith(".py")
    if is_file and not os.path.isfile(module):
        raise ArgumentError(f"the file {module!r} does not exist in {os.getcwd()}")
    try:
        found: Any = _file_as_module(module) if is_file else importlib.import_module(module)
    except (Exception, SystemExit) as error:
        kind = "file" if is_file else "module"
        raise ArgumentError(f"the {kind} {module!r} cannot be imported: {_explained(error, module)}") from error
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            close = difflib.get_close_matches(name, dir(found), 1)
            owner = found.__name__ if isinstance(found, (type, ModuleType)) else type(found).__name__
            hint = f"; is it {close[0]!r}?" if close else ""
            raise ArgumentError(f"{text}: {owner} has no {name!r}{hint}") from None
    if not callable(found):
        raise ArgumentError(f"{text} is not a function, but of type {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def _file_as_module(path: str) -> ModuleType:
    """Import a Python file, whose folder comes first where modules are looked for, as under ``python``."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.basename(path).removesuffix(".py")
    while name in sys.modules:  # a file may be called random.py, and the module random stays
        name = f"_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _explained(error: BaseException, module: str) -> str:
    """Return an explanation of why the import of ``module`` failed.

    It names the line that raised, or says that the module was not found.
    """
    message = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        return f"{error}; modules are looked up in the current directory and in PYTHONPATH"
    steps = [
        step
        for step in traceback.extract_tb(error.__traceback__)
        if not step.filename.startswith("<frozen ") and step.filename not in (__file__, importlib.__file__)
    ]
    return f"{message} (line {steps[-1].lineno} of {steps[-1].filename})" if steps else message


def _check_call(fun: Function, name: str, values: Sequence[Any]) -> None:
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*values)
    except TypeError as error:
        count = "1 argument" if len(values) == 1 else f"{len(values)} arguments"
        raise ArgumentError(f"{name} takes {signature}, but --args has {count}: {error}") from None


def _positions(static: str, values: Sequence[Any]) -> set[int]:
    """Parse the positions of static arguments, such as "0,2", and check that each is an index into ``values``."""
    fixed = set()
    for text in static.split(",") if static.strip() else ():
        if not re.fullmatch(r"\s*\d+\s*", text) or int(text) >= len(values):
            raise ArgumentError(
                f"--static: expected positions of the {len(values)} arguments, counted from 0, got {static!r}"
            )
        fixed.add(int(text))
    return fixed


def _check_argument(i: int, value: Any, static: bool) -> None:
    for leaf in tree.leaves(value):
        if static and isinstance(leaf, ShapeDtypeStruct):
            raise ArgumentError(f"--static {i}: pass the value of argument {i} instead of the type {abstractify(leaf)}")
        if not static and isinstance(leaf, str):
            raise ArgumentError(
                f"--args: argument {i} has {leaf!r}, which is not an array; --static {i} passes it unchanged"
            )


def _given(fun: Function, values: Sequence[Any], fixed: set[int]) -> Function:
    """Return ``fun`` as a function of the arguments that are not static.

    The static arguments are those at the positions ``fixed``. Their values are the elements of ``values`` at these
    positions.
    """
    if not fixed:
        return fun

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        rest = iter(args)
        return fun(*[value if i in fixed else next(rest) for i, value in enumerate(values)], **kwargs)

    function = Transformed(fun, call)
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return function
    # Messages number the arguments that are not static.
    kept = [p for i, p in enumerate(signature.parameters.values()) if i not in fixed or p.kind is p.VAR_POSITIONAL]
    function.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return function


# Transformations -----------------------------------------------------------------------------------------------------

_PLAIN = ("grad", "value_and_grad", "jacfwd", "jacrev", "hessian", "vmap", "jit", "checkpoint")


def transformations() -> tuple[str, ...]:
    """Return the names of the supported transformations.

    >>> from pullback.show import transformations
    >>> "grad" in transformations()
    True
    """
    import pullback

    return tuple(name for name in (*_PLAIN, *_WITH_FURTHER_INPUTS) if hasattr(pullback, name))


def _plainly(subject: Subject, name: str, later_maps: int) -> Subject:
    """Return ``subject`` after the transformation ``name``, which keeps the arguments; ``later_maps`` is ignored.

    For ``vmap`` the transformed function maps over the first axis of all arguments.
    """
    import pullback

    function = getattr(pullback, name)(subject.function)
    return subject._replace(function=function, title=f"{name}({subject.title})")


def _pushed_forward(subject: Subject, name: str, later_maps: int) -> Subject:
    """Return ``subject`` after the transformation ``name``, "jvp" or "linearize".

    The tangents are an additional last argument. ``later_maps`` is ignored.
    """
    fun = subject.function

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        primals, tangents = args[:-1], _completed(args[-1], args[:-1])
        if name == "jvp":
            return jvp(fun, primals, tangents)
        out, linear = linearize(fun, *primals)
        return out, linear(*tangents)

    return _with_input(subject, name, call, tuple(subject.args), "tangent", subject.inputs)


def _pulled_back(subject: Subject, name: str, later_maps: int) -> Subject:
    """Return ``subject`` after the transformation ``vjp``.

    The cotangent is an additional last argument. ``later_maps`` is how often ``vmap`` is applied afterwards: the
    cotangent has one mapped axis for each.
    """
    fun = subject.function

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out, pullback = vjp(fun, *args[:-1])
        return out, pullback(_completed(args[-1], out))

    # The arguments are those of the outermost function, with all mapped axes, and so must the cotangent be.
    mapped = fun
    for _ in range(later_maps):
        mapped = vmap(mapped)
    out = eval_shape(mapped, *subject.args)
    return _with_input(subject, name, call, out, "cotangent", result_names(out))


_WITH_FURTHER_INPUTS = {"jvp": _pushed_forward, "linearize": _pushed_forward, "vjp": _pulled_back}


def _with_input(
    subject: Subject, transformation: str, call: Callable[..., Any], values: Any, what: str, names: Sequence[str]
) -> Subject:
    """Return ``subject`` with a new function, and with a last argument for tangents or cotangents.

    Args:
      subject: the function, with its arguments.
      transformation: the name of the transformation, for the title.
      call: the new function, as ``call(args, kwargs)``.
      values: the tree of values to which the tangents or cotangents belong; integer leaves get none.
      what: ``tangent`` or ``cotangent``.
      names: the name of each leaf of ``values``.
    """
    avals = [abstractify(x) for x in tree.leaves(values)]
    further = [f"{what} of {n}" for n, a in zip(names, avals, strict=True) if dtypes.is_inexact(a.dtype)]
    return Subject(
        Transformed(subject.function, call),
        [*subject.args, tree.tree_map(_tangent_type, values)],
        [*subject.inputs, *further],
        f"{transformation}({subject.title})",
    )


def _tangent_type(x: Any) -> ShapeDtypeStruct | None:
    aval = abstractify(x)
    return ShapeDtypeStruct(aval.shape, aval.dtype) if dtypes.is_inexact(aval.dtype) else None


def _completed(tangents: Any, values: Any) -> Any:
    """Complete ``tangents``, a tree of tangents or cotangents that has no leaves for the integer leaves of ``values``.

    Return a tree with the structure of ``values`` and float0 zeros for these leaves.
    """
    given = iter(tree.leaves(tangents))
    return tree.tree_map(
        lambda x: next(given) if dtypes.is_inexact(typeof(x).dtype) else np.zeros(x.shape, dtypes.float0), values
    )
