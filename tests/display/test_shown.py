"""Displays for notebooks: what they say, what they leave alone, and that they are HTML that any text fits into."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import P, config, debug, grad, jit, lax, make_jaxpr, make_mesh, vmap
from pullback.core.array import Absent
from pullback.display import arrays, pictures, programs, shown, trees
from pullback.experimental import sparse
from pullback.extend import Primitive
from pullback.sharding import AbstractMesh, NamedSharding
from tests.helpers import ROOT

VOID = {"br", "img"}


class Page(HTMLParser):
    """HTML that was read: its texts, its tags with their attributes, and whether all tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]

    @property
    def text(self) -> str:
        return "".join(self.texts)


def read(x: Any) -> Page:
    page = Page(debug.show(x).html())
    assert not page.of("script")
    return page


@pytest.fixture
def rich() -> Iterator[None]:
    config.update("rich_arrays", True)
    yield
    config.update("rich_arrays", False)


# Arrays --------------------------------------------------------------------------------------------------------------


def test_an_array_says_its_type_and_place_and_is_drawn() -> None:
    page = read(jnp.arange(6.0).reshape(2, 3))
    assert "shape(2, 3)" in page.text
    assert "dtypefloat32" in page.text
    assert "memory24 bytes, 6 elements" in page.text
    assert "CpuDevice(id=0)" in page.text
    assert "from 0 to 5" in page.text
    (image,) = page.of("img")
    assert image["alt"] == "heat map of 2 by 3 elements, from 0 to 5"


def test_without_the_switch_notebooks_show_the_text() -> None:
    assert jnp.ones(3)._repr_mimebundle_() is None
    assert sparse.BCOO.fromdense(jnp.eye(2))._repr_html_() is None


@pytest.mark.usefixtures("rich")
def test_with_the_switch_notebooks_show_arrays_with_pictures() -> None:
    bundle: Any = jnp.ones(3)._repr_mimebundle_()
    assert bundle["text/plain"] == "Array of type f32[3]"
    assert "<svg" in bundle["text/html"]
    assert "<rect" in str(sparse.BCOO.fromdense(jnp.eye(2))._repr_html_())


@pytest.mark.usefixtures("rich")
def test_pending_elements_stay_pending() -> None:
    x: Any = jnp.ones(1 << 20) * 2.0 + 1.0
    for text in (str(x._repr_mimebundle_()), debug.show(x).html(), repr(debug.show(x))):
        assert "pending: they are computed when they are read" in text
        assert "more than 65,536 elements" in text
    assert type(x._host_value) is Absent
    assert x._host_value.pending.known is None
    assert float(x[0]) == 3.0
    assert "pending" not in repr(debug.show(jnp.ones(1 << 20)))


def test_elements_on_a_device_stay_there() -> None:
    x: Any = jit(lambda: jnp.ones(arrays.MOST + 1))()
    debug.show(x).html()
    assert type(x._host_value) is Absent


@pytest.mark.usefixtures("rich")
def test_a_deleted_array_says_so() -> None:
    x = jnp.ones(3)
    x.delete()
    for text in (str(x._repr_mimebundle_()), repr(debug.show(x))):
        assert "none: the array was donated to a compiled function, or deleted" in text
    assert "f32[3]" in repr(debug.show({"w": x}))


@pytest.mark.usefixtures("rich")
@pytest.mark.parametrize("transform", [jit, vmap, lambda f: grad(lambda x: jnp.sum(f(x))), make_jaxpr])
def test_tracers_are_displayed(transform: Any) -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append((str(x._repr_mimebundle_()), repr(debug.show(x)), read({"x": x}).text))
        return x * 2.0

    transform(f)(jnp.ones(4))
    for text, shown_text, in_tree in seen:
        assert "the array is traced" in text
        assert "the array is traced" in shown_text
        assert "f32[" in in_tree
    assert seen


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (jnp.float32(2.5), "2.5"),
        (jnp.zeros((0, 3)), "0 elements"),
        (jnp.array([3 + 4j, 0j]), "absolute values from 0 to 5"),
        (jnp.array([True, False]), "from 0 to 1"),
        (jnp.array([jnp.nan, jnp.inf]), "2 not finite"),
        (jnp.array([jnp.nan, 1.0]), "from 1 to 1; 1 not finite"),
        (jnp.ones((4, 2, 2), "bfloat16"), "the first of 4 matrices"),
        (pullback.random.key(0), "key<fry>"),
        (jnp.arange(3, dtype="int8"), "from 0 to 2"),
    ],
)
def test_arrays_of_every_kind(x: Any, said: str) -> None:
    assert said in read(x).text
    assert said in repr(debug.show(x))


def test_weak_types_are_explained() -> None:
    assert "weakly typed" in read(jnp.asarray(2.0)).text


# Pictures ------------------------------------------------------------------------------------------------------------


def image_of(values: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The indices of a heat map's elements and its palette, read from the bytes of the image."""
    source = re.search(r'base64,([^"]+)"', pictures.heat_map(np.asarray(values, float)))
    assert source is not None
    data = base64.b64decode(source[1])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, at = {}, 8
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert int.from_bytes(data[at + 8 + length : at + 12 + length], "big") == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + length
    columns, rows = (int.from_bytes(chunks[b"IHDR"][i : i + 4], "big") for i in (0, 4))
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(rows, columns + 1)
    return lines[:, 1:], np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)


def test_a_heat_map_is_an_image_with_an_index_for_each_element() -> None:
    levels, palette = image_of([[0, 1, 2], [np.nan, 4, np.inf]])
    assert levels.tolist() == [[0, 64, 127], [255, 254, 255]]
    assert len(palette) == 256


def test_numbers_of_both_signs_have_white_between() -> None:
    levels, palette = image_of([[-1, 0, 3]])
    assert levels[0, 1] == 127
    assert palette[127].min() > 235
    blue, red = palette[levels[0, 0]].astype(int), palette[levels[0, 2]].astype(int)
    assert blue[2] > blue[0]
    assert red[0] > red[2]


def test_a_heat_map_is_read_by_a_library_of_images() -> None:
    image: Any = pytest.importorskip("PIL.Image")
    import io

    source = re.search(r'base64,([^"]+)"', pictures.heat_map(np.arange(12.0).reshape(3, 4)))
    assert source is not None
    read = image.open(io.BytesIO(base64.b64decode(source[1])))
    assert read.size == (4, 3)
    assert read.convert("RGBA").getpixel((3, 2)) == (243, 231, 92, 255)


@pytest.mark.parametrize("largest", [1e-300, 1.0, 1.7e308])
def test_the_scale_of_numbers_does_not_matter(largest: float) -> None:
    levels, _ = image_of([[-largest, 0, largest]])
    assert levels.tolist() == [[0, 127, 254]]


def test_equal_elements_are_one_colour() -> None:
    assert len(set(image_of(np.full((2, 2), 7.0))[0].ravel().tolist())) == 1


def test_a_line_has_gaps_where_elements_are_not_finite() -> None:
    path = re.search(r'd="(M[^"]*)" stroke-width', pictures.curve(np.array([0, 1, np.nan, 3, 3])))
    assert path is not None
    assert re.sub(r"[\d.,]+", "", path[1]) == "MLML"


def test_a_long_line_keeps_its_peaks() -> None:
    values = np.zeros(50_000)
    values[12_345] = 1.0
    assert re.search(r"[ML][\d.]+,0\.0", pictures.curve(values))
    assert len(pictures.curve(values)) < 20_000


def test_pictures_of_characters() -> None:
    assert pictures.text_curve(np.array([0, 1, np.nan, 8.0])) == "▁▂?█"
    assert pictures.text_map(np.array([[0, 1], [2, 4.0]])) == " ░\n▒█"
    lines = pictures.text_map(np.arange(10_000.0).reshape(100, 100)).splitlines()
    assert len(lines) == 16
    assert {len(line) for line in lines} == {64}


# Programs ------------------------------------------------------------------------------------------------------------


def program() -> Any:
    @jit
    def inner(y: Any) -> Any:
        return jnp.cos(y) * 2.0

    return make_jaxpr(lambda x: lax.cond(jnp.sum(x) > 0, inner, jnp.sin, inner(x)))(jnp.ones(3))


def test_a_program_is_displayed_as_it_is_printed() -> None:
    closed = program()
    page = read(closed)
    printed = re.sub(r"\s+", "", str(closed)).replace("jaxpr=", "jaxpr")
    shown_text = re.sub(r"\s+", "", page.text)
    for equation in ("a:f32[3]", "reduce_sum[axes=(0,)]", "cos", "mul", "2.0:f32[]"):
        assert equation in printed
        assert equation in shown_text
    assert len(page.of("details")) == sum(len(e.params.keys() & {"jaxpr", "branches"}) for e in closed.eqns) + 1


def test_links_lead_to_definitions() -> None:
    page = read(program())
    targets = [attrs["id"] for attrs in page.of("span") if attrs.get("id")]
    assert len(set(targets)) == len(targets)
    links = [str(attrs["href"]) for attrs in page.of("a")]
    assert len(links) > 5
    assert {link.removeprefix("#") for link in links} <= set(targets)
    assert not {attrs["id"] for attrs in read(program()).of("span") if attrs.get("id")} & set(targets)


def test_a_program_that_two_equations_share_has_one_definition_of_each_variable() -> None:
    inner = jit(lambda y: jnp.cos(y) * 2.0)
    closed = make_jaxpr(lambda x: inner(inner(x)))(1.0)
    assert closed.eqns[0].params["jaxpr"].jaxpr is closed.eqns[1].params["jaxpr"].jaxpr
    page = read(closed)
    targets = [attrs["id"] for attrs in page.of("span") if attrs.get("id")]
    assert len(set(targets)) == len(targets) == 6
    assert page.text.count("cos") == 2


def test_small_programs_are_open_and_large_ones_cut() -> None:
    def many(x: Any) -> Any:
        for _ in range(programs.MOST_EQUATIONS + 7):
            x = jnp.sin(x)
        return jit(jnp.cos)(x)

    assert all("open" in attrs for attrs in read(program()).of("details"))
    closed = make_jaxpr(many)(1.0)
    page = read(closed)
    assert page.text.count("sin") == programs.MOST_EQUATIONS
    assert "9 more equations" in page.text
    assert "├─ 9 more operations" in programs.box(closed, "f")


def test_any_text_is_escaped() -> None:
    odd = Primitive("<script>alert(1)</script>")
    odd.abstract_eval(lambda x, **params: x)
    closed = make_jaxpr(lambda x: odd.bind(x, note='"><img src=x onerror=y>'))(1.0)
    page = read(closed)
    assert "<script>alert(1)</script>" in page.text
    assert not page.of("img")
    tree = read({"<b>": "</div>", '"': jnp.ones(2)})
    assert "['<b>'] '</div>'" in tree.text
    assert not tree.of("b")


def test_a_program_has_a_display_in_notebooks() -> None:
    closed = program()
    for x in (closed, closed.jaxpr):
        assert Page(x._repr_html_()).of("details")


def test_a_program_in_characters_has_frames() -> None:
    text = programs.box(program(), "f", ["x"], ["y"])
    assert text.startswith("f\n├─ a:f32[3] ← x\n")
    assert "jit inner a    # test_shown.py:" in text
    assert "│  ┌ branches[1] " in text
    assert text.count("┌") == text.count("└") - 1
    assert re.search(r"\n└─ y: \w+$", text)
    assert repr(debug.show(program())).startswith("program\n├─ a:f32[3], an input\n")


def test_a_compiled_program_says_cost_and_memory() -> None:
    compiled = jit(lambda x: jnp.sin(x) @ x).lower(jnp.ones((50, 50))).compile()
    page = Page(str(compiled._repr_html_()))
    rows = dict(re.findall(r"<th>(.*?)</th><td>(.*?)</td>", str(compiled._repr_html_())))
    assert rows["arguments"] == rows["results"] == "f32[50,50]"
    assert int(rows["operations on numbers"].replace(",", "")) >= 2 * 50**3 - 50**2
    assert rows["memory of arguments"] == "10 kB"
    assert "CpuDevice" in page.text
    assert "memory of arguments: 10 kB" in repr(debug.show(compiled))


def test_an_analysis_that_a_device_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any) -> Any:
        raise RuntimeError("unimplemented")

    compiled = jit(jnp.sin).lower(1.0).compile()
    monkeypatch.setattr(type(compiled), "cost_analysis", fail)
    monkeypatch.setattr(type(compiled), "memory_analysis", fail)
    assert [name for name, _ in programs.compiled_facts(compiled)] == ["function", "device", "arguments", "results"]


# Devices, trees and others -------------------------------------------------------------------------------------------


def test_a_mesh_is_a_table_of_devices() -> None:
    page = Page(str(make_mesh((1, 1), ("x", "y"))._repr_html_()))
    assert "x: 1, y: 1" in page.text
    assert "x=0CPU 0" in page.text
    assert len(Page(str(AbstractMesh((4, 2), ("x", "y"))._repr_html_())).of("tr")) == 1 + 1 + 4


def test_devices_with_the_same_shard_have_one_colour() -> None:
    sharding = NamedSharding(AbstractMesh((4, 2), ("x", "y")), P(None, "x"))  # type: ignore[arg-type]
    html = str(sharding._repr_html_())
    page = Page(html)
    assert "axis 1 of an arrayin 4 along x" in page.text
    cells = re.findall(r'rgba\(([\d,]+),\.3\)">a device<br><span class="soft">shard (\d)<', html)
    assert [number for _, number in cells] == list("00112233")
    assert len({colour for colour, _ in cells}) == 4
    both = str(NamedSharding(AbstractMesh((2, 2), ("x", "y")), P(("y", "x")))._repr_html_())  # type: ignore[arg-type]
    assert re.findall(r"shard (\d)", both) == ["0", "1", "2", "3"]


def test_large_meshes_are_counted() -> None:
    page = Page(str(AbstractMesh((64, 64), ("x", "y"))._repr_html_()))
    assert "4,096 devices" in page.text
    assert not page.of("td")[3:]


def test_a_sharded_array_says_its_sharding() -> None:
    mesh = make_mesh((1,), ("x",))
    x = pullback.device_put(jnp.ones(4), NamedSharding(mesh, P("x")))
    assert "P('x',) over the mesh {'x': 1}" in read(x).text
    assert "CpuDevice(id=0)" in Page(str(jnp.ones(2).sharding._repr_html_())).text


def test_trees_have_the_types_of_their_leaves() -> None:
    value = {"w": jnp.ones((2, 3)), "b": [np.ones(4), None, 1.5]}
    page = read(value)
    assert "3 leaves, 56 bytes" in page.text
    for text in ("['w'] f32[2,3]", "[0] NumPy's float64[4]", "[1] None", "[2] 1.5", "['b'] list"):
        assert text in page.text
    assert repr(debug.show(value)) == "['b'][0]: NumPy's float64[4]\n['b'][2]: 1.5\n['w']: f32[2,3]"


def test_structures_are_displayed_without_running_users_code() -> None:
    class Node:
        pass

    def refuse(aux: Any, children: Any) -> Any:
        raise AssertionError("not for a display")

    pullback.tree_util.register_pytree_node(Node, lambda x: ((1.0, 2.0), None), refuse)
    page = read(pullback.tree.structure({"n": Node()}))
    assert "['n'] Node" in page.text
    assert page.text.count("*") == 2


def test_large_trees_are_cut() -> None:
    value = [1.0] * (trees.MOST_LEAVES + 3)
    for x in (value, pullback.tree.structure(value)):
        assert "3 more" in read(x).text
    assert repr(debug.show(value)).endswith("\n3 more leaves")
    assert all("open" not in attrs for attrs in read(value).of("details"))


def test_sparse_arrays_say_what_they_store() -> None:
    for kind in (sparse.BCOO, sparse.BCSR, sparse.CSR, sparse.COO):
        page = read(kind.fromdense(jnp.eye(4)))
        assert "stored4 elements, 0.25 of all" in page.text
        assert len(page.of("rect")) == 5, kind
    assert not read(sparse.BCOO.fromdense(jnp.ones((2, 3, 3)), n_batch=1)).of("rect")


def test_patterns_keep_their_own_display() -> None:
    pattern = pullback.derivatives.Pattern(np.eye(3))
    assert debug.show(pattern).html() == pattern._repr_svg_()
    assert shown.html_of({"a": 1}) is None


def test_nothing_is_imported_until_something_is_displayed() -> None:
    code = """
import sys, pullback
assert not [m for m in sys.modules if m.startswith("pullback.display.") and m != "pullback.display.hooks"]
pullback.make_jaxpr(lambda x: x)(1.0)._repr_html_()
assert "pullback.display.programs" in sys.modules
assert not {"IPython", "matplotlib", "tqdm"} & {*sys.modules}
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_notebook_shows_trees() -> None:
    """Their class is optree's, so that IPython is told, and the class has no new method."""
    code = """
import sys, types
asked = []
text = types.SimpleNamespace(for_type_by_name=lambda module, name, f: asked.append((module, name, f)))
shell = types.SimpleNamespace(display_formatter=types.SimpleNamespace(formatters={"text/html": text}), kernel=None)
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
import pullback
((module, name, f),) = asked
assert (module, name) == ("optree", "PyTreeSpec")
assert "1 leaf" in f(pullback.tree.structure({"a": 1}))
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
