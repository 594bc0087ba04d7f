"""Drawings of programs: a jaxpr is converted to a graph in the DOT language, which Graphviz renders.

Variables have their names in the printed jaxpr, so that the two can be read side by side. To keep large programs
legible, numbers are written into the operations that use them; long parameters are cut (the tooltip has the whole
equation and the text of its line); unused operations are grey; and, in large programs, a value that is used far from
its equation is named next to its user, with a link, instead of by an edge across the page (with edges, the layout of
400 operations takes many minutes instead of half a second).

The library ``graphviz`` is imported, and a renderer is searched for, at their first use; see :func:`render`.
"""

from __future__ import annotations

import html
import importlib.util
import inspect
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from pullback.core import source, tree
from pullback.core.arguments import require_function
from pullback.core.array import ArrayImpl
from pullback.core.errors import ArgumentError, RendererError
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from pullback.core.jaxpr_text import VariableNames, show_literal, show_param, used_variables
from pullback.display.programs import box
from pullback.transforms.autodiff.tracing import stage_tree
from pullback.transforms.functions.api_boundary import Transformed
from pullback.transforms.functions.arguments import name_of

_WIDEST = 44  # characters of a line in a node
_MOST_RESULTS = 4  # lines of an operation that has more results
_LARGEST_SHOWN = 8  # elements of a constant
_LARGE = 120  # number of operations from which far values are named instead of drawn by edges
_FAR = 40  # number of nodes in between

_GRAPH = {"rankdir": "TB", "compound": "true", "labelloc": "t", "bgcolor": "white", "ranksep": "0.35", "nodesep": "0.2"}
_FONT = {"fontname": "Helvetica,Arial,sans-serif", "fontsize": "11"}
_NODE = {**_FONT, "shape": "box", "style": "filled", "fillcolor": "white", "color": "gray30", "margin": "0.08,0.04"}
_EDGE = {**_FONT, "fontsize": "9", "color": "gray30", "arrowsize": "0.6"}
_CLUSTER = {"style": "rounded,filled", "color": "gray50", "fillcolor": "#00000008", "labeljust": "l"}
_KINDS: dict[str, dict[str, str]] = {
    "operation": {},
    "input": {"style": "rounded,filled", "fillcolor": "#d5e5f5"},
    "parameter": {"style": "rounded,filled", "fillcolor": "#eaf1f8"},
    "constant": {"shape": "note", "fillcolor": "#f7edcd"},
    "literal": {"shape": "plaintext", "style": "", "fillcolor": ""},
    "result": {"style": "rounded,filled", "fillcolor": "#d8ecd3", "peripheries": "2"},
    "reference": {"shape": "plaintext", "style": "", "fillcolor": "", "fontcolor": "#2060a0", "height": "0.2"},
    "anchor": {"shape": "point", "style": "invis"},
}
"""The style of each kind of node; a parameter is an input of a nested program."""
_UNUSED = {"color": "gray70", "fontcolor": "gray50"}


class Drawing:
    """A drawn program: shown in notebooks, saved to files, or read as text.

    Attributes:
      jaxpr: the program.
      title: the text above it.
    """

    __slots__ = ("_inputs", "_results", "_source", "jaxpr", "title")

    def __init__(
        self, closed: ClosedJaxpr, title: str, inputs: Sequence[str] = (), results: Sequence[str] = ()
    ) -> None:
        """Draw a program.

        Args:
          closed: the program.
          title: the text above it.
          inputs: the names of its first inputs; the others have none.
          results: the names of its first results; the others are called ``result``.
        """
        self.jaxpr = closed
        self.title = title
        self._inputs = list(inputs)
        self._results = list(results)
        self._source: str | None = None

    @property
    def source(self) -> str:
        """The graph as text in the DOT language.

        Raises:
          RendererError: the library ``graphviz`` is not installed (a RuntimeError).
        """
        if self._source is None:
            self._source = _Sketch(self.title, self.jaxpr).draw(self._inputs, self._results)
        return self._source

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing to a file.

        Args:
          path: its name, which ends in ``.svg``, ``.pdf`` or ``.png``, or for the text in ``.dot`` or ``.gv``.

        Raises:
          ArgumentError: the name ends otherwise (a ValueError).
          RendererError: the library ``graphviz``, or for pictures a renderer, is missing (a RuntimeError).

        >>> from pullback import visualize
        >>> visualize(lambda x: x + 1.0)(2.0).save("program.txt")
        Traceback (most recent call last):
        pullback.core.errors.ArgumentError: a drawing can be saved as .dot, .gv, .pdf, .png or .svg, got 'program.txt'
        """
        kind = os.path.splitext(path)[1].removeprefix(".").lower()
        if kind not in ("dot", "gv", *_FORMATS):
            kinds = sorted(f".{k}" for k in ("dot", "gv", *_FORMATS))
            raise ArgumentError(
                f"a drawing can be saved as {', '.join(kinds[:-1])} or {kinds[-1]}, got {os.fspath(path)!r}"
            )
        content = render(self.source, kind) if kind in _FORMATS else self.source.encode()
        with open(path, "wb") as file:
            file.write(content)

    def svg(self) -> str:
        """Return the picture as the text of an SVG file.

        Raises:
          RendererError: the library ``graphviz``, or a renderer, is missing (a RuntimeError).
        """
        return render(self.source).decode()

    def text(self) -> str:
        """Return the program as a picture of characters, for which no library is needed.

        >>> from pullback import visualize
        >>> print(visualize(lambda x: x + 1.0)(2.0).text())
        <lambda>
        ├─ a:f32[] ← x
        ├─ b:f32[] = add a 1.0:f32[] ...
        └─ result: b
        """
        return box(self.jaxpr, self.title, self._inputs, self._results)

    def _repr_svg_(self) -> str | None:
        """Return the picture for a notebook, as SVG text; None if drawing needs a package that is not installed."""
        return self._repr_mimebundle_().get("image/svg+xml")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the picture for a notebook, as texts by MIME type.

        If a package for drawing is missing, return the program as a picture of characters instead, and name the
        package. Jupyter passes ``include`` and ``exclude``, which are not used.
        """
        try:
            return {"image/svg+xml": self.svg(), "text/plain": repr(self)}
        except RendererError as error:
            return {"text/plain": f"{self.text()}\n\nThis cannot be drawn: {error}"}

    def __repr__(self) -> str:
        return f"<drawing of {self.title}: {_counted(self.jaxpr.jaxpr)}>"


def visualize(fun: Callable[..., Any]) -> Callable[..., Drawing]:
    """Return a function that draws the program of ``fun`` instead of running it.

    Operations are labelled with their name, the type of the result, and their source line; inputs with the name of the
    argument. Nested programs are frames. The extra ``pullback[draw]`` installs the libraries for drawing.

    Args:
      fun: takes and returns trees of arrays. It may be a transformed function, such as ``grad(f)``.

    Returns:
      A function of the same arguments (arrays, numbers, or anything with ``shape`` and ``dtype``) that returns a
      :class:`Drawing`, which notebooks show, and which has ``source`` and ``save``.

    Raises:
      ArgumentError: ``fun`` cannot be called (a TypeError).
      RendererError: by ``source`` and ``save`` of the drawing, if Graphviz is not installed (a RuntimeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import ShapeDtypeStruct, visualize
    >>> visualize(lambda x: jnp.sum(jnp.tanh(x)))(ShapeDtypeStruct((3,), "float32"))
    <drawing of <lambda>: 2 operations>
    """
    require_function("visualize", "fun", fun)

    def drawing_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Drawing:
        closed, out_tree = stage_tree(fun, "visualize", args, kwargs)
        out = tree.unflatten(out_tree, closed.out_avals)
        title = getattr(fun, "__name__", None) or name_of(fun)
        return Drawing(closed, title, input_names(fun, args, kwargs), result_names(out))

    return Transformed(fun, drawing_of, visualize)


def input_names(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> list[str]:
    """Return a name for each leaf of a function's arguments, such as ``params['w']``.

    Args:
      fun: the function.
      args: its positional arguments, each a tree.
      kwargs: its keyword arguments.

    >>> from pullback.drawing import input_names
    >>> input_names(lambda w, *xs: 0, ({"a": 1.0}, 2.0, 3.0), {"k": 4.0})
    ["w['a']", 'xs[0]', 'xs[1]', 'k']
    """
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "argument")
    names = []
    for i, arg in enumerate(args):
        own = positional[i] if i < len(positional) else f"{rest}[{i - len(positional)}]"
        names += [own + tree.keystr(path) for path, _ in tree.leaves_with_path(arg)]
    by_keyword = tree.leaves_with_path(kwargs or {})
    return names + [f"{path[0].key}{tree.keystr(path[1:])}" for path, _ in by_keyword]


def result_names(out: Any) -> list[str]:
    """Return a name for each leaf of a result.

    >>> from pullback.drawing import result_names
    >>> result_names((1.0, {"a": 2.0}))
    ['result[0]', "result[1]['a']"]
    """
    return ["result" + tree.keystr(path) for path, _ in tree.leaves_with_path(out)]


# The graph -----------------------------------------------------------------------------------------------------------


class _End(NamedTuple):
    """One end of an edge in the drawing.

    Attributes:
      node: the name of the node.
      frame: the name of the frame at whose border the edge ends; empty if it ends at the node.
      label: the name of the variable whose value the edge carries; empty for no label.
    """

    node: str
    frame: str = ""
    label: str = ""


class _Scope(NamedTuple):
    """A program that is being drawn.

    Attributes:
      graph: the graph or subgraph to draw in.
      env: for each variable the ends from which the edges to its users start.
      frame: the name of the frame around the program; empty for the outermost program.
      unused: whether the results of the program are unused.
    """

    graph: Any
    env: dict[Var, list[_End]]
    frame: str = ""
    unused: bool = False


class _Sketch:
    """A graph that is being drawn.

    Attributes:
      edges: for each edge drawn so far whether its value is unused.
      count: the number of nodes and frames drawn so far.
      numbers: for each node the ``count`` when its operation was drawn or, for other nodes, when its value was first
        used.
      links: the prefix of the names of link targets; empty if the drawing has no links.
    """

    def __init__(self, title: str, closed: ClosedJaxpr) -> None:
        self.closed = closed
        self.names = VariableNames()
        self.graph = _graphviz().Digraph("program")
        label = f"<{_bold(title)}<br/>{_counted(closed.jaxpr)}>"
        self.graph.attr(**_GRAPH, **_FONT, label=label)
        self.graph.attr("node", **_NODE)
        self.graph.attr("edge", **_EDGE)
        self.edges: dict[tuple[_End, _End], bool] = {}
        self.count = 0
        self.numbers: dict[str, int] = {}
        self.links = ""
        if _size(closed.jaxpr) > _LARGE:
            # A page may show several drawings, whose link targets must differ.
            self.links = f"p{zlib.crc32(str(closed).encode()):08x}"

    def draw(self, inputs: Sequence[str], results: Sequence[str]) -> str:
        """Draw the whole program, and return the graph as text in the DOT language.

        Args:
          inputs: the names of the first inputs.
          results: the names of the first results.
        """
        jaxpr = self.closed.jaxpr
        scope = _Scope(self.graph, {})
        self.constants(scope, self.closed)
        live = _live_variables(jaxpr)
        for i, v in enumerate(jaxpr.invars):
            lines = [_bold(inputs[i]) if i < len(inputs) else "", _text(f"{self.names(v)}:{v.aval}")]
            scope.env[v] = [_End(self.node(self.graph, "input", lines, unused=v not in live))]
        for i, (atom, ends) in enumerate(zip(jaxpr.outvars, self.equations(scope, jaxpr), strict=True)):
            value = show_literal(atom) if isinstance(atom, Literal) else format(atom.aval)
            lines = [_bold(results[i] if i < len(results) else "result"), _text(value)]
            head = _End(self.node(self.graph, "result", lines))
            self.edges.update(((tail, head), False) for tail in ends)
        for (tail, head), unused in self.edges.items():
            label = {"label": tail.label} if tail.label else {}
            ends_at = {"ltail": tail.frame or None, "lhead": head.frame or None}
            self.graph.edge(tail.node, head.node, **label, **ends_at, **(_UNUSED if unused else {}))
        return str(self.graph.source)

    # Nodes and edges

    def node(self, graph: Any, kind: str, lines: Sequence[str], unused: bool = False, **options: str) -> str:
        """Add a node to a graph, and return the node's name.

        Args:
          graph: the graph.
          kind: the kind of node, such as "input", which determines how the node looks.
          lines: the lines of its label, as HTML-like text.
          unused: whether its value is unused; it is drawn dashed then.
          options: further Graphviz attributes.
        """
        self.count += 1
        name = f"n{self.count}"
        look = {**_KINDS[kind], "class": kind, **options}
        if unused:
            style = ",".join(filter(None, [look.get("style", "filled"), "dashed"]))
            look.update(_UNUSED, style=style, fillcolor="white")
            look["class"] += " unused"
        if self.links:
            look["id"] = f"{self.links}{name}"
        label = f"<{'<br/>'.join(filter(None, lines))}>" if any(lines) else ""
        graph.node(name, label, **look)
        return name

    def connect(self, scope: _Scope, atom: Atom, head: _End, unused: bool) -> None:
        """Draw the edge from an operand to the node that uses it; draw nothing for a number.

        In a large program, a value that was drawn far away is not connected. Instead a node with the variable's name is
        drawn next to the user, with a link to the value's node.

        Args:
          scope: the program that binds the operand.
          atom: the operand.
          head: the end of the edge at the user.
          unused: whether the edge's value is unused.
        """
        for tail in scope.env[atom] if isinstance(atom, Var) else ():
            made = self.numbers.setdefault(tail.node, self.count)
            if self.links and self.count - made > _FAR:
                link = f"#{self.links}{tail.node}"
                lines = [_text(self.names(atom))]  # type: ignore[arg-type]
                tail = _End(self.node(scope.graph, "reference", lines, unused, href=link))
            self.edges.setdefault((tail, head), unused)

    def constants(self, scope: _Scope, closed: ClosedJaxpr) -> None:
        live = _live_variables(closed.jaxpr)
        for v, const in zip(closed.jaxpr.constvars, closed.consts, strict=True):
            lines = [_text(f"{self.names(v)}:{v.aval}"), _text(_show_constant(const))]
            scope.env[v] = [_End(self.node(scope.graph, "constant", lines, scope.unused or v not in live))]

    # Equations

    def equations(self, scope: _Scope, jaxpr: Jaxpr) -> list[list[_End]]:
        """Draw the equations of a program.

        Return for each result of the program the ends at which the result's edges start.
        """
        named, live = used_variables(jaxpr), _live_variables(jaxpr)
        for eqn in jaxpr.eqns:
            binders = [self.names(v) if v in named else "_" for v in eqn.outvars]
            unused = scope.unused or not _is_needed(eqn, live)
            if any(True for _ in _nested(eqn)):
                ends = self.framed(scope, eqn, binders, unused)
            else:
                ends = [[self.operation(scope, eqn, binders, unused)]] * len(eqn.outvars)
            scope.env.update(zip(eqn.outvars, ends, strict=True))
        return [self.result(scope, atom) for atom in jaxpr.outvars]

    def result(self, scope: _Scope, atom: Atom) -> list[_End]:
        """Return the ends at which edges from a result of a program start.

        A literal gets a node of its own; in the outermost program it gets none, and the list is empty.
        """
        if isinstance(atom, Var):
            return scope.env[atom]
        lines = [_text(show_literal(atom))]
        return [_End(self.node(scope.graph, "literal", lines, scope.unused))] if scope.frame else []

    def operation(self, scope: _Scope, eqn: Eqn, binders: Sequence[str], unused: bool) -> _End:
        name, params, line = eqn.primitive.name, _show_params(eqn.params), _line_of(eqn)
        operands = " ".join(self.names(a) if isinstance(a, Var) else _number(a) for a in eqn.invars)
        results = [f"{binder}:{v.aval}" for binder, v in zip(binders, eqn.outvars, strict=True)]
        tooltip = f"{' '.join(results)} = {name}{f'[{params}]' if params else ''} {operands}"
        if line:
            tooltip += "\n" + source.format_location(eqn.made_at)
        if len(results) > _MOST_RESULTS:
            results = [*results[: _MOST_RESULTS - 1], f"{len(results) - _MOST_RESULTS + 1} more"]
        lines = [f"{_bold(name)} {_text(operands)}", _small(params), *map(_text, results), _small(line)]
        end = _End(self.node(scope.graph, "operation", lines, unused, tooltip=_escaped(tooltip)))
        self.numbers[end.node] = self.count
        for atom in eqn.invars:
            self.connect(scope, atom, end, unused)
        return end

    # Nested programs

    def framed(self, scope: _Scope, eqn: Eqn, binders: Sequence[str], unused: bool) -> list[list[_End]]:
        """Draw an equation that holds programs as a frame around these.

        Args:
          scope: the program that contains the equation.
          eqn: the equation.
          binders: the names of the equation's results; "_" for a result without a name.
          unused: whether the equation's results are unused.

        Returns:
          For each result of the equation the ends at which the result's edges start.
        """
        nested = list(_nested(eqn))
        held = {path.partition("[")[0] for path, _ in nested}
        params = {name: value for name, value in eqn.params.items() if name not in held}
        head = f"{_bold(eqn.primitive.name)} {_text(str(params.pop('name', '')))}"
        ends: list[list[_End]] = [[] for _ in eqn.outvars]
        with self.frame(scope, [head, _small(_show_params(params)), _small(_line_of(eqn))], unused) as frame:
            for path, closed in nested:
                if len(nested) == 1:
                    sources = self.nested(scope, frame, eqn, closed)
                else:
                    with self.frame(frame, [_small(path)], unused) as inner:
                        sources = self.nested(scope, inner, eqn, closed)
                for found, more in zip(ends, sources, strict=True):
                    found += more
        labels = ["" if binder == "_" else binder for binder in binders]
        return [[end._replace(label=label) for end in found] for found, label in zip(ends, labels, strict=True)]

    @contextmanager
    def frame(self, scope: _Scope, lines: Sequence[str], unused: bool) -> Iterator[_Scope]:
        """Add a frame to the drawing of ``scope``, and yield a scope for a program to draw in the frame.

        ``lines`` are the lines of the frame's label. ``unused`` says whether the results of the program are unused.
        """
        self.count += 1
        name = f"cluster{self.count}"
        label = "".join(f'{line}<br align="left"/>' for line in lines if line)
        look = {**_CLUSTER, **_FONT, **(_UNUSED if unused else {}), "label": f"<{label}>"}
        with scope.graph.subgraph(name=name, graph_attr=look) as graph:
            yield _Scope(graph, {}, name, unused)

    def nested(self, around: _Scope, scope: _Scope, eqn: Eqn, closed: ClosedJaxpr) -> list[list[_End]]:
        """Draw a program that an equation holds, and connect the program with the equation's operands.

        If the program has as many inputs as the equation has operands, each operand is connected to an input. Otherwise
        all operands are connected to the frame, since only the primitive knows how they correspond to inputs.

        Args:
          around: the scope of the equation.
          scope: the scope to draw the program in.
          eqn: the equation.
          closed: the program.

        Returns:
          For each result of the equation the ends at which the result's edges start.
        """
        jaxpr = closed.jaxpr
        self.constants(scope, closed)
        live = _live_variables(jaxpr)
        operands: Sequence[Atom | None] = eqn.invars if _takes_its_operands(jaxpr, eqn) else [None] * len(jaxpr.invars)
        for v, operand in zip(jaxpr.invars, operands, strict=True):
            value = f" = {_number(operand)}" if isinstance(operand, Literal) else ""
            unused = scope.unused or v not in live
            end = _End(self.node(scope.graph, "parameter", [_text(f"{self.names(v)}:{v.aval}{value}")], unused))
            scope.env[v] = [end]
            if operand is not None:
                self.connect(around, operand, end, unused)
        results = self.equations(scope, jaxpr)
        if len(results) == len(eqn.outvars) and operands is eqn.invars:
            return results
        border = _End(self.node(scope.graph, "anchor", []), scope.frame)
        for atom in eqn.invars if operands is not eqn.invars else ():
            self.connect(around, atom, border, scope.unused)
        return results if len(results) == len(eqn.outvars) else [[border] for _ in eqn.outvars]


def _graphviz() -> Any:
    try:
        import graphviz
    except ImportError as error:
        raise RendererError(
            "drawing needs the Python library graphviz, which is not installed: pip install 'pullback[draw]'"
        ) from error
    return graphviz


def _nested(eqn: Eqn) -> Iterator[tuple[str, ClosedJaxpr]]:
    """Yield the name and the program of each parameter of an equation that is a program, in the order of printing.

    A list of programs is yielded one by one, with names such as ``branches[0]``.
    """
    for key, value in sorted(eqn.params.items()):
        many = isinstance(value, (tuple, list))
        for i, item in enumerate(value if many else (value,)):
            if isinstance(item, Jaxpr):
                item = ClosedJaxpr(item, [None] * len(item.constvars))
            if isinstance(item, ClosedJaxpr):
                yield f"{key}[{i}]" if many else key, item


def _takes_its_operands(jaxpr: Jaxpr, eqn: Eqn) -> bool:
    """Return whether the program ``jaxpr``, which ``eqn`` holds, has as many inputs as ``eqn`` has operands."""
    return len(jaxpr.invars) == len(eqn.invars)


def _is_needed(eqn: Eqn, live: set[Var]) -> bool:
    """Return whether an equation must be run: it binds a variable in ``live``, or it has an effect and no results."""
    return not eqn.outvars or any(v in live for v in eqn.outvars)


def _live_variables(jaxpr: Jaxpr) -> set[Var]:
    """Return the variables that the results of a program depend on."""
    live = {a for a in jaxpr.outvars if isinstance(a, Var)}
    for eqn in reversed(jaxpr.eqns):
        if not _is_needed(eqn, live):
            continue
        read = eqn.invars
        nested = list(_nested(eqn))
        if len(nested) == 1 and _takes_its_operands(nested[0][1].jaxpr, eqn):
            inner = nested[0][1].jaxpr
            inner_live = _live_variables(inner)
            read = [a for a, v in zip(eqn.invars, inner.invars, strict=True) if v in inner_live]
        live.update(a for a in read if isinstance(a, Var))
    return live


# Text ----------------------------------------------------------------------------------------------------------------


def _counted(jaxpr: Jaxpr) -> str:
    count = _size(jaxpr)
    return "1 operation" if count == 1 else f"{count} operations"


def _size(jaxpr: Jaxpr) -> int:
    """Count the operations of a program; an operation that holds programs counts as the operations of these."""
    count = 0
    for eqn in jaxpr.eqns:
        nested = list(_nested(eqn))
        count += sum(_size(closed.jaxpr) for _, closed in nested) if nested else 1
    return count


def _text(text: str, width: int = _WIDEST) -> str:
    """Shorten text to ``width`` characters, and escape it for an HTML-like label."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return html.escape(printable if len(printable) <= width else printable[: width - 1] + "…", quote=False)


def _bold(text: str) -> str:
    return f"<b>{_text(text)}</b>" if text else ""


def _small(text: str) -> str:
    return f'<font point-size="9" color="gray50">{_text(text)}</font>' if text else ""


def _show_params(params: dict[str, Any]) -> str:
    return " ".join(f"{name}={show_param(value)}" for name, value in sorted(params.items()))


def _escaped(text: str) -> str:
    """Double the backslashes of text for a Graphviz attribute, in which a backslash is special."""
    return text.replace("\\", "\\\\")


def _number(literal: Literal) -> str:
    return show_literal(literal).rpartition(":")[0]


def _show_constant(const: Any) -> str:
    if isinstance(const, ArrayImpl) and 0 < const.size <= _LARGEST_SHOWN:
        return " ".join(str(np.asarray(const)).split())
    return ""


def _line_of(eqn: Eqn) -> str:
    """Return the source line of an equation as ``file:line``."""
    if eqn.made_at is None or eqn.made_at[0].co_filename.startswith("<frozen "):
        return ""
    return f"{os.path.basename(eqn.made_at[0].co_filename)}:{source.line_number(eqn.made_at)}"


# The picture ---------------------------------------------------------------------------------------------------------

_FORMATS = ("svg", "pdf", "png")
_IN_A_PROCESS_OF_ITS_OWN = (
    "import sys, pygraphviz;"
    "graph = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode());"
    "sys.stdout.buffer.write(graph.draw(format=sys.argv[1], prog='dot'))"
)


def render(text: str, kind: str = "svg") -> bytes:
    """Render a graph by Graphviz's program ``dot``, or by the copy of Graphviz in ``pygraphviz``.

    Args:
      text: the graph, in the DOT language.
      kind: the format: ``svg``, ``pdf`` or ``png``.

    Returns:
      The content of a file of that format.

    Raises:
      RendererError: the program ``dot`` and the library ``pygraphviz`` are both missing, or the renderer failed (a
        RuntimeError).
    """
    command = _renderer(kind)
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    if done.returncode or not done.stdout:
        said = done.stderr.decode(errors="replace").strip() or "it said nothing"
        raise RendererError(f"the renderer {command[0]} ended with status {done.returncode}: {said[-400:]}")
    return done.stdout


def _renderer(kind: str) -> list[str]:
    """Return the command that renders a graph in the format ``kind``, such as "svg".

    The command reads the graph from standard input. ``pygraphviz`` runs in a separate process too: Graphviz has global
    state, and writes to standard error.
    """
    dot = shutil.which("dot")
    if dot:
        return [dot, f"-T{kind}"]
    if importlib.util.find_spec("pygraphviz") and sys.executable:
        return [sys.executable, "-P", "-c", _IN_A_PROCESS_OF_ITS_OWN, kind]
    raise RendererError(
        "a picture needs Graphviz, which is not installed: pip install 'pullback[draw]' brings a copy, and so do the "
        "packages of most systems (apt install graphviz, brew install graphviz). Without it there is a picture of "
        "characters, `.text()`, and the text of the graph: `.source`, or --as dot"
    )
