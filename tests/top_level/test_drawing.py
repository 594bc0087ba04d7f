"""``visualize``: the text of the drawing has every part of the program, and the picture is well-formed."""

from __future__ import annotations

import html
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import ShapeDtypeStruct, drawing, grad, jit, make_jaxpr, visualize
from pullback.core.array import as_array
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.jaxpr_text import VariableNames, show_jaxpr
from pullback.drawing import Drawing
from pullback.errors import ArgumentError, RendererError
from pullback.extend import Primitive

HERE = os.path.basename(__file__)
has_graphviz = pytest.mark.skipif(not importlib.util.find_spec("graphviz"), reason="the library graphviz is missing")
has_renderer = pytest.mark.skipif(
    not (importlib.util.find_spec("graphviz") and (shutil.which("dot") or importlib.util.find_spec("pygraphviz"))),
    reason="Graphviz is missing",
)
f32 = lambda *shape: ShapeDtypeStruct(shape, "float32")


def line_of(text: str) -> str:
    """Where in this file a text stands, as drawings say it."""
    (number,) = [i for i, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.strip() == text]
    return f"{HERE}:{number}"


# Reading DOT text ----------------------------------------------------------------------------------------------------


@dataclass
class Node:
    """A node, with the lines of its label and the frames that it is in, the outermost first."""

    name: str
    kind: str
    lines: list[str]
    frames: tuple[str, ...]
    options: dict[str, str]


@dataclass
class Graph:
    """What a text in the DOT language says."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    frames: dict[str, list[str]] = field(default_factory=dict)

    def of_kind(self, kind: str) -> list[Node]:
        return [node for node in self.nodes.values() if node.kind.split()[0] == kind]

    def the(self, operation: str) -> Node:
        (found,) = [n for n in self.of_kind("operation") if n.lines[0].split()[0] == operation]
        return found

    def sources(self, node: Node) -> list[Node]:
        return [self.nodes[tail] for tail, head, _ in self.edges if head == node.name]


_VALUE = r'(?:<(?:[^<>]|<[^<>]*>)*>|"(?:[^"\\]|\\.)*"|[^\s\]]+)'  # HTML-like text escapes what is no tag
_OPTIONS = rf"\[(?P<%s>(?:\w+={_VALUE} ?)*)\]"
_STATEMENT = re.compile(
    r"^\t+(?:(?P<open>subgraph (?P<frame>\w+) \{)|(?P<close>\})"
    rf"|(?P<tail>n\d+) -> (?P<head>n\d+)(?: {_OPTIONS % 'edge'})?"
    rf"|(?P<node>n\d+|graph) {_OPTIONS % 'options'})$",
    re.MULTILINE | re.DOTALL,
)


def lines_of(label: str) -> list[str]:
    text = re.sub(r"<br[^>]*/>", "\n", label[1:-1])
    return html.unescape(re.sub(r"</?(b|font)\b[^>]*>", "", text)).split("\n")


def read(text: str) -> Graph:
    """The nodes, edges and frames of a drawing's text."""
    graph = Graph()
    frames: list[str] = []
    for found in _STATEMENT.finditer(text):
        options = dict(re.findall(rf"(\w+)=({_VALUE})", found["options"] or found["edge"] or "", re.DOTALL))
        if found["open"]:
            frames.append(found["frame"])
        elif found["close"]:
            frames.pop()
        elif found["tail"]:
            graph.edges.append((found["tail"], found["head"], options))
        elif found["node"] == "graph":
            graph.frames[frames[-1]] = lines_of(options["label"])
        else:
            lines = lines_of(options["label"]) if options.get("label", '""') != '""' else []
            kind = options["class"].strip('"')
            graph.nodes[found["node"]] = Node(found["node"], kind, lines, tuple(frames), options)
    return graph


def drawn(fun: Any, *args: Any, **kwargs: Any) -> tuple[Graph, Drawing]:
    drawing = visualize(fun)(*args, **kwargs)
    return read(drawing.source), drawing


# Small programs ------------------------------------------------------------------------------------------------------


@has_graphviz
def test_operations_have_a_name_a_type_and_a_line() -> None:
    def f(x: Any, y: Any) -> Any:
        s = jnp.sin(x)
        return s * y

    graph, drawing = drawn(f, f32(3), f32())
    sin, mul = graph.the("sin"), graph.the("mul")
    assert sin.lines == ["sin a", "c:f32[3]", line_of("s = jnp.sin(x)")]
    assert mul.lines == ["mul c b", "d:f32[3]", line_of("return s * y")]
    x, y = graph.of_kind("input")
    assert (x.lines, y.lines) == (["x", "a:f32[3]"], ["y", "b:f32[]"])
    assert graph.sources(sin) == [x]
    assert graph.sources(mul) == [sin, y]
    (result,) = graph.of_kind("result")
    assert result.lines == ["result", "f32[3]"]
    assert graph.sources(result) == [mul]
    assert "s = jnp.sin(x)" in sin.options["tooltip"], "the tooltip has the text of the line"
    assert repr(drawing) == "<drawing of f: 2 operations>"


@has_graphviz
def test_inputs_and_results_are_named_by_their_place() -> None:
    def f(params: Any, *xs: Any, scale: Any) -> Any:
        return {"out": params["w"] * xs[0] + xs[1], "scaled": (params["b"] * scale, 2.5)}

    graph, _ = drawn(f, {"w": 1.0, "b": 2.0}, 3.0, 4.0, scale=5.0)
    names = [n.lines[0] for n in graph.of_kind("input")]
    assert names == ["params['b']", "params['w']", "xs[0]", "xs[1]", "scale"]
    results = {n.lines[0]: n for n in graph.of_kind("result")}
    assert set(results) == {"result['out']", "result['scaled'][0]", "result['scaled'][1]"}
    assert results["result['scaled'][1]"].lines[1] == "2.5:f32[]"
    assert graph.sources(results["result['scaled'][1]"]) == []


@has_graphviz
def test_numbers_are_written_into_operations_and_constants_are_nodes() -> None:
    small, large = as_array(np.array([1.0, 2.0, 3.0], np.float32)), jnp.zeros(1000)
    graph, _ = drawn(lambda x: (2.0 - x * small, x[0] + large), f32(3))
    sub = graph.the("sub")
    assert sub.lines[0].startswith("sub 2.0 ")
    assert graph.sources(sub) == [graph.the("mul")]
    shown, hidden = graph.of_kind("constant")
    assert shown.lines == ["a:f32[3]", "[1. 2. 3.]"]
    assert hidden.lines == ["b:f32[1000]"]
    assert shown in graph.sources(graph.the("mul"))
    assert len({n.options["fillcolor"] for n in (shown, graph.of_kind("input")[0], graph.of_kind("result")[0])}) == 3


@has_graphviz
def test_what_no_result_needs_is_grey() -> None:
    @jit
    def ignores(x: Any, y: Any) -> Any:
        return x + 1.0

    def f(x: Any, unused: Any, only_for_waste: Any, ignored: Any) -> Any:
        jnp.cos(jnp.exp(only_for_waste))
        return ignores(jnp.sin(x), ignored)

    graph, _ = drawn(f, f32(3), f32(3), f32(3), f32(3))
    grey = {n.lines[0].split()[0] for n in graph.nodes.values() if "unused" in n.kind.split()}
    assert {"unused", "only_for_waste", "ignored", "exp", "cos"} <= grey
    assert not {"x", "sin", "add", "result"} & grey
    assert all("dashed" in n.options["style"] for n in graph.nodes.values() if "unused" in n.kind.split())


@has_graphviz
def test_names_are_those_of_the_printed_program() -> None:
    @jit
    def layer(w: Any, x: Any) -> Any:
        return jnp.tanh(w * x)

    def f(w: Any, x: Any) -> Any:
        jnp.sin(x)
        return jnp.sum(layer(w, layer(w, x) + 1.0))

    for fun in (f, grad(f), jit(grad(f))):
        graph, drawing = drawn(fun, f32(3), f32(3))
        printed = "\n".join(show_jaxpr(drawing.jaxpr.jaxpr, VariableNames(), ""))
        for node in graph.of_kind("operation"):
            assert re.search(rf"{re.escape(node.lines[-2])} = {node.lines[0].split()[0]}\b", printed)
            operands = [re.escape(x) for x in node.lines[0].split()[1:]]
            assert re.search(rf"\b{node.lines[0].split()[0]}(\[.*\])? {'[^ ]* '.join(operands)}", printed)


@has_graphviz
@pytest.mark.parametrize("text", ["<b>", "a\\nb", 'say "x" & y', "]", "\n"])
def test_any_name_can_be_drawn(text: str) -> None:
    odd = Primitive(text)
    odd.abstract_eval(lambda x, **params: x)
    graph, _ = drawn(lambda x: {text: odd.bind(x["<k>"], note=text)}, {"<k>": f32(2)})
    (operation,) = graph.of_kind("operation")
    assert operation.lines[:2] == [f"{text.replace(chr(10), ' ')} a", f"note={text.replace(chr(10), ' ')}"]
    assert (
        graph.of_kind("input")[0].lines[0] == "argument[0]['<k>']" or graph.of_kind("input")[0].lines[0] == "x['<k>']"
    )


@has_graphviz
def test_long_lines_are_cut_and_many_results_counted() -> None:
    many = Primitive("many", multiple_results=True)
    many.abstract_eval(lambda x, **params: [x] * 7)
    graph, _ = drawn(lambda x: many.bind(x, table=tuple(range(100))), f32(2))
    name, params, *results, line = graph.the("many").lines
    assert name == "many a"
    assert params.endswith("…")
    assert len(params) <= 44
    assert results == ["b:f32[2]", "c:f32[2]", "d:f32[2]", "4 more"]
    assert line.startswith(HERE)
    assert "99)" in graph.the("many").options["tooltip"]


# Programs within programs --------------------------------------------------------------------------------------------


@has_graphviz
def test_nested_programs_are_frames_that_edges_go_into_and_out_of() -> None:
    @jit
    def inner(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y, 3.0

    def outer(x: Any) -> Any:
        a, b = inner(jnp.exp(x), 2.0)
        return jnp.log(a) + b

    graph, _ = drawn(outer, f32(3))
    ((frame, label),) = graph.frames.items()
    assert label[0] == "jit inner"
    assert label[1] == line_of("a, b = inner(jnp.exp(x), 2.0)")
    inside = [n for n in graph.nodes.values() if n.frames == (frame,)]
    assert {"sin", "mul"} == {n.lines[0].split()[0] for n in inside if n.kind == "operation"}
    x, y = graph.of_kind("parameter")
    assert {x.frames, y.frames} == {(frame,)}
    assert graph.sources(x) == [graph.the("exp")]
    assert graph.sources(y) == []
    assert y.lines[0].endswith(" = 2.0"), "a number among the operands is written into the input"
    assert graph.sources(graph.the("sin")) == [x]
    assert graph.sources(graph.the("log")) == [graph.the("mul")], "the edge comes out of the frame"
    (literal,) = graph.of_kind("literal")
    assert literal.frames == (frame,)
    assert literal in graph.sources(graph.the("add"))
    labels = {options.get("label") for tail, head, options in graph.edges if tail == graph.the("mul").name}
    assert labels == {graph.the("log").lines[0].split()[1]}, "it bears the name that the value has outside"


@has_graphviz
def test_frames_within_frames() -> None:
    deepest = jit(lambda x: jnp.sin(x))
    middle = jit(lambda x: deepest(x) * 2.0)
    graph, drawing = drawn(lambda x: middle(x) + 1.0, f32())
    assert len(graph.frames) == 2
    assert len(graph.the("sin").frames) == 2
    assert graph.the("sin").frames[:1] == graph.the("mul").frames
    assert graph.the("add").frames == ()
    assert repr(drawing).endswith("3 operations>"), "equations that hold programs count by what is in them"


branch = Primitive("branch", multiple_results=True)


@branch.abstract_eval
def _branch_shape(index: Any, *operands: Any, branches: Any, label: str) -> Any:
    return branches[0].out_avals


@has_graphviz
def test_several_programs_of_one_equation() -> None:
    branches = tuple(make_jaxpr(f)(f32(3)) for f in (jnp.sin, jnp.cos))

    def f(i: Any, x: Any) -> Any:
        return jnp.exp(branch.bind(i, x, branches=branches, label="choose")[0])

    graph, _ = drawn(f, ShapeDtypeStruct((), "int32"), f32(3))
    assert sorted(label[0] for label in graph.frames.values()) == ["branch ", "branches[0]", "branches[1]"]
    assert {"label=choose"} == {label[1] for label in graph.frames.values() if label[0] == "branch "}
    # An index stands before the operands, so that which of them is which input is not known here.
    heads = [options for _, head, options in graph.edges if "lhead" in options]
    assert {options["lhead"] for options in heads} == {graph.the("sin").frames[-1], graph.the("cos").frames[-1]}
    assert len(heads) == 4
    assert graph.sources(graph.the("exp")) == [graph.the("sin"), graph.the("cos")]


@has_graphviz
def test_results_that_do_not_match_come_from_the_frame() -> None:
    odd = Primitive("odd", multiple_results=True)
    odd.abstract_eval(lambda x, *, body: [x, x])
    body = make_jaxpr(lambda x, y: x + y)(f32(), f32())
    graph, _ = drawn(lambda x: odd.bind(x, body=body)[1] * 2.0, f32())
    ((frame, _),) = graph.frames.items()
    (edge,) = [options for _, head, options in graph.edges if head == graph.the("mul").name]
    assert edge["ltail"] == frame


@has_graphviz
def test_a_jaxpr_without_constants_values() -> None:
    held = Primitive("held", multiple_results=True)
    held.abstract_eval(lambda x, *, body: [x])
    big = jnp.arange(30.0)
    body = make_jaxpr(lambda x: x + big[:3])(f32(3)).jaxpr
    graph, _ = drawn(lambda x: held.bind(x, body=body)[0], f32(3))
    assert len(graph.of_kind("constant")) == len(body.constvars) == 1


# Large programs ------------------------------------------------------------------------------------------------------


def deep(params: Any, x: Any) -> Any:
    for w in params:
        x = jnp.tanh(x @ w)
    return jnp.sum(x)


@has_graphviz
def test_large_programs_name_what_comes_from_afar() -> None:
    few, many = ([f32(3, 3)] * n for n in (5, 60))
    graph, _ = drawn(grad(deep), few, f32(3))
    assert not graph.of_kind("reference")
    graph, drawing = drawn(grad(deep), many, f32(3))
    assert len(graph.of_kind("operation")) == len(drawing.jaxpr.eqns)
    assert len(graph.of_kind("input")) == len(graph.of_kind("result")) + 1 == 61
    references = graph.of_kind("reference")
    assert references
    ids = {node.options["id"].strip('"'): node for node in graph.nodes.values()}
    for node in references:
        target = ids[node.options["href"].strip('"').removeprefix("#")]
        assert any(line.startswith(f"{node.lines[0]}:") for line in target.lines), "it leads to where it was made"
        assert not graph.sources(node)
    # Every operand is still there, beside the operation that it is named by.
    for node in graph.of_kind("operation"):
        operands = {x for x in node.lines[0].split()[1:] if x.isalpha()}
        assert len(graph.sources(node)) == len(operands)


@has_renderer
def test_large_programs_are_drawn_soon() -> None:
    # Without the references the layout takes many minutes; a minute is far from both.
    text = visualize(grad(deep))([f32(3, 3)] * 100, f32(3)).source
    command = drawing._renderer("svg")
    subprocess.run(command, input=text.encode(), capture_output=True, check=True, timeout=60)


# Pictures ------------------------------------------------------------------------------------------------------------


@has_renderer
def test_the_picture_is_well_formed_and_complete(tmp_path: Path) -> None:
    inner = jit(lambda x: jnp.sin(x) * jnp.asarray(np.arange(3, dtype=np.float32)))
    picture = visualize(lambda x, unused: {"<é & ü>": inner(x) @ jnp.ones(3)})(f32(3), f32())
    text = picture._repr_svg_()
    assert text is not None
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    groups = [g for g in root.iter("{http://www.w3.org/2000/svg}g") if "class" in g.attrib]
    graph = read(picture.source)
    drawn_nodes = [g for g in groups if g.attrib["class"].startswith("node")]
    assert len(drawn_nodes) == len(graph.nodes)
    assert len([g for g in groups if g.attrib["class"].startswith("edge")]) == len(graph.edges)
    assert len([g for g in groups if g.attrib["class"].startswith("cluster")]) == len(graph.frames) == 1
    words = "".join("".join(root.itertext()).split())
    for node in graph.nodes.values():
        assert all("".join(line.split()) in words for line in node.lines)

    for suffix, start in ((".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF"), (".dot", b"digraph")):
        path = tmp_path / f"program{suffix}"
        picture.save(path)
        assert path.read_bytes().startswith(start)


@has_graphviz
def test_saving_text_needs_no_renderer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_renderer(monkeypatch)
    picture = visualize(jnp.sin)(1.0)
    picture.save(tmp_path / "program.gv")
    assert (tmp_path / "program.gv").read_text() == picture.source
    with pytest.raises(ArgumentError, match=r"saved as \.dot, \.gv, \.pdf, \.png or \.svg, got '.*x\.jpg'"):
        picture.save(tmp_path / "x.jpg")
    assert not (tmp_path / "x.jpg").exists()


def without_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pygraphviz" else found(name))


@has_graphviz
def test_a_missing_renderer_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_renderer(monkeypatch)
    picture = visualize(jnp.sin)(1.0)
    assert picture.source.startswith("digraph")
    with pytest.raises(RendererError, match=r"pip install 'pullback\[draw\]'.*apt install graphviz.*\.source"):
        picture.save(tmp_path / "x.svg")
    assert not (tmp_path / "x.svg").exists()


def test_a_notebook_without_a_renderer_shows_the_program_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback would hide both."""
    without_renderer(monkeypatch)
    for graphviz in (True, False):
        if not graphviz:
            monkeypatch.setitem(sys.modules, "graphviz", None)
        picture = visualize(jnp.sin)(1.0)
        assert picture._repr_svg_() is None
        (text,) = picture._repr_mimebundle_().values()
        assert text.startswith(picture.text())
        assert "This cannot be drawn: " in text
        assert "pip install 'pullback[draw]'" in text.splitlines()[-1]


def test_a_missing_library_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", None)
    picture = visualize(jnp.sin)(1.0)
    assert "1 operation>" in repr(picture)
    with pytest.raises(RendererError, match=r"library graphviz.*pip install 'pullback\[draw\]'"):
        _ = picture.source


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for dot is a shell script")
def test_the_program_dot_goes_first_and_its_failure_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dot = tmp_path / "dot"
    dot.write_text('#!/bin/sh\nwhile read -r line; do text=$text$line; done\necho "$1 $text"\n')
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert drawing.render("digraph {}\n", "pdf") == b"-Tpdf digraph {}\n"
    dot.write_text("#!/bin/sh\necho 'syntax error in line 1' >&2\nexit 3\n")
    with pytest.raises(RendererError, match="ended with status 3: syntax error in line 1"):
        drawing.render("digraph {")


@has_renderer
def test_a_text_that_is_no_graph_is_reported() -> None:
    with pytest.raises(RendererError, match="ended with status"):
        drawing.render("this is no graph")


# The rest ------------------------------------------------------------------------------------------------------------


def test_errors_name_the_function_and_the_argument() -> None:
    def f(x: Any) -> Any:
        return x

    with pytest.raises(TypeError, match=r"visualize: fun must be a function, got 3"):
        visualize(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"visualize of .*f at .*, argument 0 \(x\): .*'a'"):
        visualize(f)("a")


def test_importing_pullback_imports_nothing_that_draws() -> None:
    program = (
        "import sys, pullback; assert 'visualize' in dir(pullback);"
        "assert not {'graphviz', 'pygraphviz', 'pullback.drawing'} & set(sys.modules);"
        "print(pullback.visualize(lambda x: x + 1.0)(2.0));"
        "assert not {'graphviz', 'pygraphviz', 'jaxlib'} & set(sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout == "<drawing of <lambda>: 1 operation>\n"
    assert pullback.visualize is visualize


@has_graphviz
def test_a_drawing_of_a_program_that_is_at_hand() -> None:
    closed: ClosedJaxpr = make_jaxpr(lambda x, y: (x + y, y))(1.0, 2.0)
    graph = read(Drawing(closed, "sum", ["left"]).source)
    assert [n.lines[0] for n in graph.of_kind("input")] == ["left", "b:f32[]"]
    assert [n.lines[0] for n in graph.of_kind("result")] == ["result", "result"]
