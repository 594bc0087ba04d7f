"""``python -m pullback show``: what it prints, and what it refuses, through its main function and as a process."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from pullback import ShapeDtypeStruct, enable_x64, show, tree
from pullback.__main__ import main
from pullback.core import dtypes
from pullback.errors import ArgumentError

MODULE = '''\
"""Functions to look at."""

import pullback.numpy as jnp
from pullback import jit

table = {"a": 1}


def loss(params, x):
    return jnp.sum(jnp.tanh(x @ params["w"] + params["b"]))


def scaled(x, n, mode="sine"):
    return (jnp.sin(x) if mode == "sine" else x) * n


def repeated(x, n):
    for _ in range(n):
        x = jnp.sin(x)
    return x


def mixed(x, i):
    return {"sum": x[i] + x.sum(), "index": i}


def pick(x, i):
    return x.sum() * i


def fails(x):
    return 1 / 0 + x


def branches(x):
    return x if x > 0 else -x


class Net:
    @staticmethod
    def apply(x):
        return jit(jnp.sin)(x)
'''
PARAMS = '{"w": f32[3,2], "b": f32[2]}, f32[4,3]'
has_renderer = pytest.mark.skipif(
    not (importlib.util.find_spec("graphviz") and (shutil.which("dot") or importlib.util.find_spec("pygraphviz"))),
    reason="Graphviz is missing",
)
has_graphviz = pytest.mark.skipif(not importlib.util.find_spec("graphviz"), reason="the library graphviz is missing")


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "looked_at.py"
    path.write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "looked_at", raising=False)
    return path


def shown(capsys: pytest.CaptureFixture[str], function: str, args: str = "", *options: str) -> str:
    """What is printed for a function of the module."""
    assert main(["show", f"looked_at:{function}", "--args", args, *options]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The message with which something is refused."""
    assert main(["show", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert err.startswith("python -m pullback show: ")
    return err.removeprefix("python -m pullback show: ").rstrip("\n")


def process(*argv: str) -> subprocess.CompletedProcess[str]:
    """The command, run in a process of its own in the current directory."""
    environment = {name: value for name, value in os.environ.items() if name != "PULLBACK_ENABLE_X64"}
    command = [sys.executable, "-m", "pullback", *argv]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)


# What it shows -------------------------------------------------------------------------------------------------------


def test_a_jaxpr_is_what_is_shown_first(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "loss", PARAMS)
    assert text.startswith("{ lambda ; a:f32[2] b:f32[3,2] c:f32[4,3]. let\n")
    assert [line.split("=")[1].split()[0].split("[")[0] for line in text.splitlines()[1:-1]] == [
        "dot_general",
        "add",
        "tanh",
        "reduce_sum",
    ]
    assert text == shown(capsys, "loss", PARAMS, "--as", "jaxpr")


def test_transformations_are_applied_from_left_to_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert show.subject("looked_at:loss", PARAMS, transform="grad,jit").title == "jit(grad(loss))"
    text = shown(capsys, "loss", PARAMS, "--transform", "grad,jit")
    assert len(re.findall(r"\bjit\[", text)) == 1, "all of the gradient is within one program"
    text = shown(capsys, "loss", PARAMS, "--transform", "jit, grad")
    assert len(re.findall(r"\bjit\[", text)) == 2, "a forward and a backward program"


@pytest.mark.parametrize("name", show.transformations())
def test_every_transformation_and_jit_of_it(capsys: pytest.CaptureFixture[str], name: str) -> None:
    args = "f32[3], f32[]"
    if name == "vmap":
        args = "f32[5,3], f32[5]"
    plain = shown(capsys, "pick", args, "--transform", name)
    compiled = shown(capsys, "pick", args, "--transform", f"{name},jit")
    inputs = lambda text: re.findall(r"\w:(\S+)", text.split("; ", 1)[1].split(". let")[0])
    assert inputs(plain)[:2] == inputs(compiled)[:2] == args.split(", ")
    hlo = shown(capsys, "pick", args, "--transform", f"{name},jit", "--as", "hlo")
    assert f"module @jit_{name}_pick" in hlo
    assert "func.func public @main(" in hlo


TWICE = "x, i, tangent of x, tangent of i, tangent of x, tangent of i, tangent of tangent of x, tangent of tangent of i"


@pytest.mark.parametrize(
    ("transform", "args", "inputs"),
    [
        ("jvp", "f32[3], f32[]", "x, i, tangent of x, tangent of i"),
        ("linearize", "f32[3], i32[]", "x, i, tangent of x"),
        ("vjp", "f32[3], f32[]", "x, i, cotangent of result"),
        ("vjp,vmap", "f32[7,3], f32[7]", "x, i, cotangent of result"),
        ("vmap,vjp", "f32[7,3], f32[7]", "x, i, cotangent of result"),
        ("vjp,vmap,vmap", "f32[2,7,3], f32[2,7]", "x, i, cotangent of result"),
        ("jvp,jvp", "f32[3], f32[]", TWICE),
    ],
)
def test_tangents_and_cotangents_become_inputs(transform: str, args: str, inputs: str) -> None:
    subject = show.subject("looked_at:pick", args, transform=transform)
    assert subject.inputs == inputs.split(", ")
    types = {"x": subject.args[0], "i": subject.args[1], "result": subject.args[1]}
    for name, leaf in zip(subject.inputs, tree.leaves(subject.args), strict=True):
        assert leaf == types[name.split()[-1]], "the result is of the type of i"
    subject.text("jaxpr")


def test_integers_have_no_tangents_and_cotangents(capsys: pytest.CaptureFixture[str]) -> None:
    for transform, further in [
        ("vjp", "cotangent of result['sum']"),
        ("jvp", "tangent of x"),
        ("linearize", "tangent of x"),
    ]:
        subject = show.subject("looked_at:mixed", "f32[3], i32[]", transform=transform)
        assert subject.inputs == ["x", "i", further]
        text = shown(capsys, "mixed", "f32[3], i32[]", "--transform", transform)
        assert text.splitlines()[0].count("i32") == 1
        assert "float0[]" in text.splitlines()[-1], "their zeros are among the results"


def test_given_and_static_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "scaled", "f32[3], 2").splitlines()[0] == "{ lambda ; a:f32[3] b:i32[]. let"
    text = shown(capsys, "scaled", "f32[3], 2, 'none'", "--static", "1, 2")
    assert "sin" not in text
    assert "mul a 2.0:f32[]" in text
    text = shown(capsys, "repeated", "f32[], 3", "--static", "1", "--transform", "grad,jit")
    assert text.count("= cos ") == 3
    subject = show.subject("looked_at:scaled", "2, f32[3]", static="0")
    assert subject.inputs == ["n"]
    assert str(show.inspect.signature(subject.function)) == "(n, mode='sine')"


def test_a_function_in_a_class(capsys: pytest.CaptureFixture[str]) -> None:
    assert "jit[" in shown(capsys, "Net.apply", "f32[3]")


@has_graphviz
def test_the_text_of_a_drawing(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "loss", PARAMS, "--transform", "jit", "--as", "dot")
    assert text.startswith("digraph")
    assert "<b>jit(loss)</b>" in text
    assert "<b>params['w']</b>" in text
    assert "looked_at.py:10" in text
    assert "subgraph cluster" in text


@has_renderer
def test_a_drawing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = shown(capsys, "loss", PARAMS, "--transform", "grad", "--as", "svg")
    assert "tanh" in "".join(ElementTree.fromstring(text).itertext())
    assert shown(capsys, "loss", PARAMS, "--transform", "grad", "--as", "svg", "--output", "loss.svg") == ""
    assert (tmp_path / "loss.svg").read_text() == text


def test_a_process_of_its_own(tmp_path: Path) -> None:
    done = process("show", "looked_at:loss", "--args", PARAMS, "--transform", "grad,jit", "--as", "hlo")
    assert (done.returncode, done.stderr) == (0, "")
    assert "stablehlo.tanh" in done.stdout
    done = process("show", "looked_at:repeated", "--args", "f32[], 2", "--static", "1", "--output", "out.txt")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "out.txt").read_text().count("sin") == 2
    done = process("show", "looked_at:loss", "--args", "f32[3")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    done = process("show", "looked_at:fails", "--args", "f32[3]")
    assert (done.returncode, done.stdout) == (1, "")


def test_the_help() -> None:
    done = process("show", "--help")
    assert done.returncode == 0
    assert "grad,jit shows jit(grad(FUNCTION))" in done.stdout
    assert all(name in done.stdout for name in show.transformations())
    assert process().returncode == 0


def test_a_reader_that_has_seen_enough() -> None:
    command = f"{sys.executable} -m pullback show looked_at:repeated --args 'f32[], 3000' --static 1 | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.startswith("{ lambda")
    assert done.stderr == ""


# What it refuses -----------------------------------------------------------------------------------------------------


def test_functions_that_are_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert refused(capsys, "loss") == "expected MODULE:FUNCTION, such as model:loss or model.py:loss, got 'loss'"
    assert "the file 'looked_for.py' does not exist" in refused(capsys, "looked_for.py:loss")
    message = refused(capsys, "lookd_at:loss")
    assert message.startswith(
        "the module 'lookd_at' cannot be imported: No module named 'lookd_at'; modules are looked"
    )
    assert refused(capsys, "looked_at:los") == "looked_at:los: looked_at has no 'los'; is it 'loss'?"
    assert refused(capsys, "looked_at:Net.aply") == "looked_at:Net.aply: Net has no 'aply'; is it 'apply'?"
    assert refused(capsys, "looked_at:table") == "looked_at:table is not a function, but of type dict"


def test_modules_that_fail(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name, text, expected in [
        ("raises", "x = 1\n\ny = x / 0\n", r"ZeroDivisionError: division by zero \(line 3 of .*raises\.py\)"),
        (
            "needs",
            "import not_installed_anywhere\n",
            r"No module named 'not_installed_anywhere' \(line 1 of .*needs\.py\)",
        ),
        ("ends", "raise SystemExit(3)\n", r"SystemExit: 3 \(line 1 of .*ends\.py\)"),
        ("wrong", "def f(:\n", r'File ".*wrong\.py", line 1'),
    ]:
        (tmp_path / f"{name}.py").write_text(text)
        message = refused(capsys, f"{name}:f")
        assert message.startswith(f"the module '{name}' cannot be imported: ")
        assert re.search(expected, message), message


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("f32[3", 3, "this bracket is not closed: expected ',' or ']', got the end"),
        ("(f32[3], 2", 0, "this bracket is not closed"),
        ("f32[3,x]", 6, "expected the size of an axis, got 'x'"),
        ("f32[-1]", 4, "expected the size of an axis, got '-'"),
        ("f32[3.5]", 5, "expected ',' or ']', got '.'"),
        ("f32", 3, "expected '[' and the sizes of the axes, as in f32[3] or f32[], got the end"),
        ("f32, f32[]", 3, "expected '['"),
        ("f33[3]", 0, "unknown type 'f33'; the types are bool, i8,"),
        ("f32[3] f32[]", 7, "expected ',' or the end, got 'f'"),
        ("f32[3])", 6, "expected ',' or the end, got ')'"),
        (",", 0, "expected a type such as f32[2,3], a number,"),
        ("f32[],,", 6, "expected a type such as f32[2,3], a number,"),
        ("[f32[], )", 8, "expected a type such as f32[2,3], a number,"),
        ("(f32[]]", 6, "expected ',' or ')', got ']'"),
        ('{"w": f32[3], "b"}', 17, "expected ':' after the key 'b', got '}'"),
        ("{w: f32[3]}", 1, "expected a key (a string or an integer), got 'w'"),
        ("'open", 0, 'expected a string with matching quotes, got "\'"'),
        (r"'\x'", 0, "expected a string"),
        ("2 3", 2, "expected ',' or the end, got '3'"),
        ("-", 0, "expected a number, got '-'"),
        ("007", 0, "expected a number, got 007"),
        ("f64[3]", 0, "f64 has 64 bits, which are off: set PULLBACK_ENABLE_X64=1"),
        ("f32[3], {1: i64[]}", 12, "i64 has 64 bits"),
        ("🙂", 0, "expected a type"),
    ],
)
def test_arguments_that_cannot_be_read(capsys: pytest.CaptureFixture[str], text: str, at: int, expected: str) -> None:
    message, shown_text, caret = refused(capsys, "looked_at:loss", "--args", text).split("\n")
    assert message.startswith("--args: " + expected)
    assert shown_text == "  " + text
    assert caret == "  " + " " * at + "^"


def test_the_text_is_shown_in_one_line() -> None:
    with pytest.raises(ArgumentError, match=r"\n  f32\[3\], x\n          \^$"):
        show.parse_arguments("f32[3],\nx")


def test_calls_that_do_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, "looked_at:loss", "--args", "f32[3]")
    assert message == "looked_at:loss takes (params, x), but --args has 1 argument: missing a required argument: 'x'"
    assert "has 0 arguments" in refused(capsys, "looked_at:loss")
    assert "has 3 arguments: too many" in refused(capsys, "looked_at:loss", "--args", "1,2,3")
    message = refused(capsys, "looked_at:scaled", "--args", "f32[3], 2, 'sine'")
    assert message == "--args: argument 2 has 'sine', which is not an array; --static 2 passes it unchanged"
    message = refused(capsys, "looked_at:repeated", "--args", "f32[3], i32[]", "--static", "1")
    assert message == "--static 1: pass the value of argument 1 instead of the type i32[]"
    for static in ("2", "-1", "x", "0,,1", "1.0"):
        message = refused(capsys, "looked_at:repeated", "--args", "f32[3], 2", f"--static={static}")
        assert message == f"--static: expected positions of the 2 arguments, counted from 0, got '{static}'"


def test_transformations_that_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    for text, wrong in [("gard", "gard"), ("grad, gard", "gard"), ("eval_shape", "eval_shape"), ("grad,,jit", "")]:
        message = refused(capsys, "looked_at:loss", "--args", PARAMS, "--transform", text)
        known = ", ".join(show.transformations())
        assert message == f"--transform: unknown transformation '{wrong}'; the transformations are {known}"


def test_a_form_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["show", "looked_at:loss", "--as", "png"])
    assert "choose from" in capsys.readouterr().err


def test_a_file_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--args", PARAMS, "--output", "no/such/folder.txt"]
    assert "no/such/folder.txt" in refused(capsys, "looked_at:loss", *options)


def test_nothing_to_draw_with(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", None)
    message = refused(capsys, "looked_at:loss", "--args", PARAMS, "--as", "svg")
    assert "pip install 'pullback[draw]'" in message


@pytest.mark.parametrize(
    ("function", "transform", "line", "message"),
    [
        ("fails", "", "    return 1 / 0 + x", "ZeroDivisionError: division by zero"),
        ("fails", "vjp", "    return 1 / 0 + x", "ZeroDivisionError: division by zero"),
        ("branches", "", "    return x if x > 0 else -x", "TracerBoolConversionError: a condition in Python"),
        ("Net.apply", "grad", "", "NotDifferentiableError: gradients need scalar outputs"),
    ],
)
def test_functions_that_cannot_be_traced(
    capsys: pytest.CaptureFixture[str], function: str, transform: str, line: str, message: str
) -> None:
    assert main(["show", f"looked_at:{function}", "--args", "f32[3]", "--transform", transform]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert line in err
    assert os.path.dirname(show.__file__) not in err, "Pullback's own frames are left out"


# Reading arguments ---------------------------------------------------------------------------------------------------


def test_reading_arguments() -> None:
    f32 = lambda *shape: ShapeDtypeStruct(shape, "float32")
    for text, expected in [
        ("", []),
        ("  ", []),
        ("f32[3]", [f32(3)]),
        ("f32[3],", [f32(3)]),
        (" f32[ 2 , 3 ] ,f32 []", [f32(2, 3), f32()]),
        ("f32[0]", [f32(0)]),
        ("(f32[3], f32[2])", [(f32(3), f32(2))]),
        ("(f32[3],)", [(f32(3),)]),
        ("(f32[3])", [f32(3)]),
        ("()", [()]),
        ("[f32[3], [f32[2]], []]", [[f32(3), [f32(2)], []]]),
        ("""{"w": f32[3], 'b': {1: f32[]}}, {}""", [{"w": f32(3), "b": {1: f32()}}, {}]),
        ("2, -3, +4, 0.5, .5, 1., 1e3, -2.5E-3, 2j, 1_000", [2, -3, 4, 0.5, 0.5, 1.0, 1e3, -2.5e-3, 2j, 1000]),
        ("True, False, None", [True, False, None]),
        (r"""'relu', "it's", 'a\'b', "é, [f32]" """, ["relu", "it's", "a'b", "é, [f32]"]),
    ]:
        found = show.parse_arguments(text)
        assert found == expected
        assert [type(x) for x in tree.leaves(found)] == [type(x) for x in tree.leaves(expected)]


def test_every_type_that_programs_print() -> None:
    for name in ("bool", "i8", "u16", "i32", "bf16", "f16", "f32", "c64", "key<fry>", "f8_e4m3fn", "i4"):
        (struct,) = show.parse_arguments(f"{name}[2]")
        assert dtypes.short_name(struct.dtype) == name
        assert struct.shape == (2,)
    with enable_x64():
        for name in ("i64", "u64", "f64", "c128"):
            (struct,) = show.parse_arguments(f"{name}[]")
            assert dtypes.short_name(struct.dtype) == name


def test_types_in_programs(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("f16", "bf16", "c64", "f32"):
        assert f"d:{kind}[2] = sin c" in shown(capsys, "Net.apply", f"{kind}[2]")
    assert main(["show", "pullback.random:split", "--args", "key<fry>[]"]) == 0
    assert "a:key<fry>[]" in capsys.readouterr().out
    assert main(["show", "pullback.numpy:logical_not", "--args", "bool[3]"]) == 0
    assert "a:bool[3]" in capsys.readouterr().out
