"""Programs as drawings: a jaxpr becomes a graph in the DOT language, and Graphviz makes a picture of it.

The names of variables are those of the printed jaxpr, so that the two can be read side by side. So that large programs
stay legible, numbers are written into the operations that they are operands of, long parameters are cut (the tooltip
has the whole equation and the text of its line), what no result needs is grey, and edges become straight when there
are many. The library ``graphviz`` and a renderer are imported or looked for when they are needed; see :func:`render`.
"""

from __future__ import annotations

import html
import importlib.util
import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core import source, tree
from pullback.core.array import ArrayImpl
from pullback.core.errors import ArgumentError, RendererError
from pullback.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Literal,
    Var,
    _Names,
    _show_literal,
    _show_param,
    _used_variables,
)
from pullback.transforms.arguments import check_callable, name_of, transformed
from pullback.transforms.stage import make_jaxpr

_WIDEST = 44  # characters of a line in a node
_MOST_RESULTS = 4  # lines of an operation that has more results
_LARGEST_SHOWN = 8  # elements of a constant
_MANY_NODES = 400  # from here on, routing curved edges around nodes takes longer than all the rest

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
    "anchor": {"shape": "point", "style": "invis"},
}
"""The look of a node, by what it stands for; a parameter is an input of a nested program."""
_UNUSED = {"color": "gray70", "fontcolor": "gray50"}


class Drawing:
    """A program that can be looked at: in a notebook, as a file, or as the text of a graph.

    Attributes:
      jaxpr: the program.
      title: what is written above it.
    """

    __slots__ = ("_inputs", "_results", "_source", "jaxpr", "title")

    def __init__(self, closed: ClosedJaxpr, title: str, inputs: Sequence[str] = (), results: Sequence[str] = ()) -> None:
        """Draw a program.

        Args:
          closed: the program.
          title: what is written above it.
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
            self._source = _Sketch(self.title).draw(self.jaxpr, self._inputs, self._results)
        return self._source

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing to a file.

        Args:
          path: its name, which ends in ``.svg``, ``.pdf`` or ``.png``, or for the text in ``.dot`` or ``.gv``.

        Raises:
          ArgumentError: the name ends otherwise (a ValueError).
          RendererError: the library ``graphviz``, or for pictures a renderer, is missing (a RuntimeError).

        >>> visualize(lambda x: x + 1.0)(2.0).save("program.txt")
        Traceback (most recent call last):
        pullback.core.errors.ArgumentError: a drawing is saved as .dot, .gv, .pdf, .png or .svg, got 'program.txt'
        """
        kind = os.path.splitext(path)[1].removeprefix(".").lower()
        if kind not in ("dot", "gv", *_FORMATS):
            kinds = sorted(f".{k}" for k in ("dot", "gv", *_FORMATS))
            raise ArgumentError(f"a drawing is saved as {', '.join(kinds[:-1])} or {kinds[-1]}, got {os.fspath(path)!r}")
        content = render(self.source, kind) if kind in _FORMATS else self.source.encode()
        with open(path, "wb") as file:
            file.write(content)

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return render(self.source).decode()

    def __repr__(self) -> str:
        return f"<drawing of {self.title}: {_counted(self.jaxpr.jaxpr)}>"


def visualize(fun: Callable[..., Any]) -> Callable[..., Drawing]:
    """A function that draws the program of ``fun`` instead of running it.

    Operations are named by what they do, the type of the result, and the line that they come from; inputs by the
    argument. Programs within the program are frames. The extra ``pullback[draw]`` brings what drawing needs.

    Args:
      fun: takes and returns trees of arrays. It may be a transformed function, such as ``grad(f)``.

    Returns:
      A function of the same arguments (arrays, numbers, or anything with ``shape`` and ``dtype``) that gives a
      :class:`Drawing`, which notebooks show, and which has ``source`` and ``save``.

    Raises:
      ArgumentError: ``fun`` cannot be called (a TypeError).

    >>> import pullback.numpy as pnp
    >>> from pullback import ShapeDtypeStruct, grad
    >>> visualize(grad(lambda x: pnp.sum(pnp.tanh(x))))(ShapeDtypeStruct((3,), "float32"))
    <drawing of <lambda>: 7 operations>
    """
    check_callable(fun, "visualize")

    def drawing_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Drawing:
        closed, shapes = make_jaxpr(fun, return_shape=True)(*args, **kwargs)
        title = getattr(fun, "__name__", None) or name_of(fun)
        return Drawing(closed, title, input_names(fun, args, kwargs), result_names(shapes))

    return transformed(fun, drawing_of)


def input_names(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> list[str]:
    """How a function calls each leaf of its arguments.

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
    """The name of each leaf of a result.

    >>> result_names((1.0, {"a": 2.0}))
    ['result[0]', "result[1]['a']"]
    """
    return ["result" + tree.keystr(path) for path, _ in tree.leaves_with_path(out)]


# The graph -----------------------------------------------------------------------------------------------------------


class _End(NamedTuple):
    """Where an edge begins or ends: a node, or the frame around it; ``label`` is the variable that leaves a frame."""

    node: str
    frame: str = ""
    label: str = ""


class _Sketch:
    """A graph that is being drawn. ``where`` is the graph or frame that a node is put into."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.names = _Names()
        self.graph = _graphviz().Digraph("program")
        self.edges: dict[tuple[_End, _End], bool] = {}
        self.count = 0

    def draw(self, closed: ClosedJaxpr, inputs: Sequence[str], results: Sequence[str]) -> str:
        """The text of the graph of a program."""
        jaxpr = closed.jaxpr
        self.graph.attr(**_GRAPH, **_FONT, label=f"<{_bold(self.title)}<br/>{_counted(jaxpr)}>")
        self.graph.attr("node", **_NODE)
        self.graph.attr("edge", **_EDGE)
        env: dict[Var, list[_End]] = {}
        self.constants(self.graph, closed, env)
        used = _live_variables(jaxpr)
        for i, v in enumerate(jaxpr.invars):
            lines = [_bold(inputs[i]) if i < len(inputs) else "", _text(f"{self.names(v)}:{v.aval}")]
            env[v] = [_End(self.node(self.graph, "input", lines, unused=v not in used))]
        for i, (atom, ends) in enumerate(zip(jaxpr.outvars, self.equations(self.graph, jaxpr, env), strict=True)):
            value = _show_literal(atom) if isinstance(atom, Literal) else str(atom.aval)
            node = self.node(self.graph, "result", [_bold(results[i] if i < len(results) else "result"), _text(value)])
            self.connect(ends, _End(node))
        if self.count > _MANY_NODES:
            self.graph.attr(splines="line")
        for (tail, head), unused in self.edges.items():
            options = _UNUSED if unused else {}
            if tail.label:
                options = {**options, "label": _escaped(tail.label)}
            self.graph.edge(tail.node, head.node, ltail=tail.frame or None, lhead=head.frame or None, **options)
        return str(self.graph.source)

    def node(self, where: Any, kind: str, lines: Sequence[str], tooltip: str = "", unused: bool = False) -> str:
        """A new node, from lines of HTML-like text; its name."""
        self.count += 1
        name = f"n{self.count}"
        look = dict(_KINDS[kind])
        if unused:
            look.update(_UNUSED, style=",".join(filter(None, [look.get("style", "filled"), "dashed"])), fillcolor="white")
        label = f"<{'<br/>'.join(filter(None, lines))}>" if any(lines) else ""
        classes = f"{kind} unused" if unused else kind
        where.node(name, label, tooltip=_escaped(tooltip) or None, **look, **{"class": classes})
        return name

    def connect(self, tails: Sequence[_End], head: _End, unused: bool = False) -> None:
        for tail in tails:
            self.edges.setdefault((tail, head), unused)

    def constants(self, where: Any, closed: ClosedJaxpr, env: dict[Var, list[_End]], unused: bool = False) -> None:
        used = _live_variables(closed.jaxpr)
        for v, const in zip(closed.jaxpr.constvars, closed.consts, strict=True):
            lines = [_text(f"{self.names(v)}:{v.aval}"), _text(_show_constant(const))]
            env[v] = [_End(self.node(where, "constant", lines, unused=unused or v not in used))]

    def equations(
        self, where: Any, jaxpr: Jaxpr, env: dict[Var, list[_End]], unused: bool = False
    ) -> list[list[_End]]:
        """Draw the equations of a program, and give where each of its results comes from.

        Args:
          where: the graph or frame.
          jaxpr: the program.
          env: where its constants and inputs come from.
          unused: whether nothing needs the program.
        """
        named, live = _used_variables(jaxpr), _live_variables(jaxpr)
        for eqn in jaxpr.eqns:
            binders = [self.names(v) if v in named else "_" for v in eqn.outvars]
            idle = unused or not _is_needed(eqn, live)
            nested = list(_nested(eqn))
            if nested:
                ends = self.frame(where, eqn, nested, env, binders, idle)
            else:
                node = self.operation(where, eqn, binders, idle)
                for atom in eqn.invars:
                    self.connect(self.ends_of(where, atom, env), _End(node), idle)
                ends = [[_End(node)]] * len(eqn.outvars)
            env.update(zip(eqn.outvars, ends, strict=True))
        return [self.ends_of(where, a, env, inlined=where is self.graph) for a in jaxpr.outvars]

    def ends_of(
        self, where: Any, atom: Atom, env: dict[Var, list[_End]], *, inlined: bool = True
    ) -> list[_End]:
        """Where a value comes from; from nowhere, if it is a number that is written into its user."""
        if isinstance(atom, Var):
            return env[atom]
        return [] if inlined else [_End(self.node(where, "literal", [_text(_show_literal(atom))]))]

    def operation(self, where: Any, eqn: Eqn, binders: Sequence[str], unused: bool) -> str:
        operands = " ".join(self.names(a) if isinstance(a, Var) else _number(a) for a in eqn.invars)
        params = " ".join(f"{k}={_show_param(v)}" for k, v in sorted(eqn.params.items()))
        results = [f"{name}:{v.aval}" for name, v in zip(binders, eqn.outvars, strict=True)]
        whole = f"{' '.join(results)} = {eqn.primitive.name}{f'[{params}]' if params else ''} {operands}"
        if len(results) > _MOST_RESULTS:
            results = [*results[: _MOST_RESULTS - 1], f"{len(results) - _MOST_RESULTS + 1} more"]
        head = f"{_bold(eqn.primitive.name)} {_text(operands, _WIDEST - len(eqn.primitive.name))}"
        lines = [head, _small(params), *map(_text, results), _small(_line_of(eqn))]
        tooltip = f"{whole}\n{source.format_location(eqn.made_at)}" if _line_of(eqn) else whole
        return self.node(where, "operation", lines, tooltip, unused)

    # Nested programs

    def frame(
        self,
        where: Any,
        eqn: Eqn,
        nested: Sequence[tuple[str, ClosedJaxpr]],
        env: dict[Var, list[_End]],
        binders: Sequence[str],
        unused: bool,
    ) -> list[list[_End]]:
        """Draw an equation that holds programs as a frame around them, and give where each result comes from."""
        held = {id(p) for _, p in nested}
        params = {k: v for k, v in eqn.params.items() if not _holds(v, held)}
        name = params.pop("name", "")
        shown = " ".join(f"{k}={_show_param(v)}" for k, v in sorted(params.items()))
        head = f"{_bold(eqn.primitive.name)} {_text(str(name))}"
        ends: list[list[_End]] = [[] for _ in eqn.outvars]
        with self.framed(where, [head, _small(shown), _small(_line_of(eqn))], unused) as (graph, frame):
            for label, closed in nested:
                if len(nested) == 1:
                    sources = self.nested(graph, frame, eqn, closed, env, unused)
                else:
                    with self.framed(graph, [_small(label)], unused) as (inner, inner_frame):
                        sources = self.nested(inner, inner_frame, eqn, closed, env, unused)
                for found, more in zip(ends, sources, strict=True):
                    found += more
        # Several programs of one equation may give one result: each is drawn as its source.
        return [
            [end._replace(label="" if name == "_" else name) for end in dict.fromkeys(found)]
            for found, name in zip(ends, binders, strict=True)
        ]

    def nested(
        self,
        where: Any,
        frame: str,
        eqn: Eqn,
        closed: ClosedJaxpr,
        env: dict[Var, list[_End]],
        unused: bool,
    ) -> list[list[_End]]:
        """Draw a program that an equation holds, and give where each result of the equation comes from.

        Operands are connected to the inputs, and results to the equation's, where there are as many of them; else to
        the frame, since only the primitive knows how they belong together.
        """
        jaxpr = closed.jaxpr
        inside: dict[Var, list[_End]] = {}
        self.constants(where, closed, inside, unused)
        live = _live_variables(jaxpr)
        matching = _takes_its_operands(jaxpr, eqn)
        for i, v in enumerate(jaxpr.invars):
            label = f"{self.names(v)}:{v.aval}"
            idle = unused or v not in live
            operand = eqn.invars[i] if matching else None
            if isinstance(operand, Literal):
                label += f" = {_number(operand)}"
            inside[v] = [_End(self.node(where, "parameter", [_text(label)], unused=idle))]
            if isinstance(operand, Var):
                self.connect(env[operand], inside[v][0], idle)
        results = self.equations(where, jaxpr, inside, unused)
        if matching and len(results) == len(eqn.outvars):
            return results
        border = _End(self.node(where, "anchor", []), frame)
        if not matching:
            for atom in eqn.invars:
                self.connect(self.ends_of(where, atom, env), border, unused)
        return results if len(results) == len(eqn.outvars) else [[border] for _ in eqn.outvars]

    def framed(self, where: Any, lines: Sequence[str], unused: bool) -> Any:
        return _Frame(self, where, lines, unused)


class _Frame:
    """A frame, as a block: nodes that are drawn in it are put into it."""

    def __init__(self, sketch: _Sketch, where: Any, lines: Sequence[str], unused: bool) -> None:
        sketch.count += 1
        self.name = f"cluster{sketch.count}"
        label = "".join(f'{line}<br align="left"/>' for line in lines if line)
        look = {**_CLUSTER, **_FONT, **(_UNUSED if unused else {})}
        self.block = where.subgraph(name=self.name, graph_attr={**look, "label": f"<{label}>"})

    def __enter__(self) -> tuple[Any, str]:
        return self.block.__enter__(), self.name

    def __exit__(self, *exception: Any) -> None:
        self.block.__exit__(*exception)


def _graphviz() -> Any:
    try:
        import graphviz
    except ImportError as error:
        raise RendererError(
            "drawing needs the Python library graphviz, which is not installed: pip install 'pullback[draw]'"
        ) from error
    return graphviz


def _nested(eqn: Eqn) -> Iterator[tuple[str, ClosedJaxpr]]:
    """The programs that an equation holds in its parameters, each with its place, in the order in which they print."""
    for key, value in sorted(eqn.params.items()):
        many = isinstance(value, (tuple, list))
        for i, item in enumerate(value if many else (value,)):
            if isinstance(item, Jaxpr):
                item = ClosedJaxpr(item, [None] * len(item.constvars))
            if isinstance(item, ClosedJaxpr):
                yield f"{key}[{i}]" if many else key, item


def _holds(value: Any, held: set[int]) -> bool:
    items = value if isinstance(value, (tuple, list)) else (value,)
    return any(isinstance(x, (Jaxpr, ClosedJaxpr)) for x in items)


def _is_needed(eqn: Eqn, live: set[Var]) -> bool:
    """Whether a result needs an equation; one without results is there for its effect."""
    return not eqn.outvars or any(v in live for v in eqn.outvars)


def _live_variables(jaxpr: Jaxpr) -> set[Var]:
    """The variables that the results of a program need."""
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


def _takes_its_operands(jaxpr: Jaxpr, eqn: Eqn) -> bool:
    """Whether each operand of an equation is an input of a program that it holds, as far as their number tells."""
    return len(jaxpr.invars) == len(eqn.invars)


# Text ----------------------------------------------------------------------------------------------------------------


def _counted(jaxpr: Jaxpr) -> str:
    count = _size(jaxpr)
    return "1 operation" if count == 1 else f"{count} operations"


def _size(jaxpr: Jaxpr) -> int:
    """How many operations a program has; those that hold programs count by what is in them."""
    count = 0
    for eqn in jaxpr.eqns:
        nested = list(_nested(eqn))
        count += sum(_size(closed.jaxpr) for _, closed in nested) if nested else 1
    return count


def _text(text: str, width: int = _WIDEST) -> str:
    """Text for an HTML-like label, cut to a width."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return html.escape(printable if len(printable) <= width else printable[: width - 1] + "…", quote=False)


def _bold(text: str) -> str:
    return f"<b>{_text(text)}</b>" if text else ""


def _small(text: str) -> str:
    return f'<font point-size="9" color="gray50">{_text(text)}</font>' if text else ""


def _escaped(text: str) -> str:
    """Text for an attribute in which a backslash means something."""
    return text.replace("\\", "\\\\")


def _number(literal: Literal) -> str:
    return _show_literal(literal).rpartition(":")[0]


def _show_constant(const: Any) -> str:
    if isinstance(const, ArrayImpl) and 0 < const.size <= _LARGEST_SHOWN:
        return " ".join(str(np.asarray(const)).split())
    return ""


def _line_of(eqn: Eqn) -> str:
    """The user's line that an equation was written in, as ``file:line``."""
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
    """The picture of a graph, drawn by Graphviz's program ``dot``, or by the copy of Graphviz in ``pygraphviz``.

    Args:
      text: the graph, in the DOT language.
      kind: the format: ``svg``, ``pdf`` or ``png``.

    Returns:
      The content of a file of that format.

    Raises:
      RendererError: there is neither a program ``dot`` nor the library ``pygraphviz``, or the renderer failed (a
        RuntimeError).
    """
    command = _renderer(kind)
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    if done.returncode or not done.stdout:
        said = done.stderr.decode(errors="replace").strip() or "it said nothing"
        raise RendererError(f"the renderer {command[0]} ended with status {done.returncode}: {said[-400:]}")
    return done.stdout


def _renderer(kind: str) -> list[str]:
    """The command that makes a picture of the graph on its standard input.

    ``pygraphviz`` gets a process of its own too: Graphviz keeps state of its own, and writes to standard error.
    """
    dot = shutil.which("dot")
    if dot:
        return [dot, f"-T{kind}"]
    if importlib.util.find_spec("pygraphviz") and sys.executable:
        return [sys.executable, "-P", "-c", _IN_A_PROCESS_OF_ITS_OWN, kind]
    raise RendererError(
        "a picture needs Graphviz, which is not installed: pip install 'pullback[draw]' brings a copy, and so do the "
        "packages of most systems (apt install graphviz, brew install graphviz). Without it there is the text of the "
        "graph: `.source`, or --as dot"
    )
