"""The site has every page, every public name and no broken link, as far as can be seen without building it."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

import pullback.numpy as jnp
from docs.generate import contents, docstrings, error_page, facts, finish, gallery, names, pages, reference, signatures
from pullback import errors, explain, lax
from tests.public.documented_parameters import documented

TEXTS = pages.pages()
WRITTEN = [document for document in contents.written() if contents.source(document).exists()]
ENTRY = re.compile(r"^ *\.\. py:(?:function|class|exception|data):: (\w+)", re.MULTILINE)
MODULE = re.compile(r"^\.\. py:(?:current)?module:: ([\w.]+)", re.MULTILINE)


def entries() -> list[str]:
    """The full names that the pages of the reference have an entry for, repetitions too."""
    found = []
    for text in TEXTS.values():
        parts = MODULE.split(text)
        for module, part in zip(parts[1::2], parts[2::2], strict=True):
            found += [f"{module}.{name}" for name in ENTRY.findall(part)]
    return found


# The reference -------------------------------------------------------------------------------------------------------


def test_each_public_name_has_one_entry() -> None:
    found = entries()
    assert len(found) == len(set(found))
    assert set(found) == set(names.public_names())
    assert len(found) > 1_500


def test_the_names_of_jax_are_public_names() -> None:
    there = {*names.public_names(), *names.public_modules()}
    for module, listed in documented():
        ours = module.replace("jax", "pullback", 1)
        assert ours in names.public_modules(), ours
        offered = {name for name in listed if name in dir(names.public_modules()[ours])}
        offered -= {name for name in offered if inspect.ismodule(getattr(names.public_modules()[ours], name))}
        assert not {f"{ours}.{name}" for name in offered} - there


def test_tables_of_contents_have_each_page_of_the_reference() -> None:
    listed = {entry for text in TEXTS.values() for entry in re.findall(r"^   [\w.]+ <([\w.]+)>$", text, re.MULTILINE)}
    assert listed | {"index", "errors"} == {file.removesuffix(".rst") for file in TEXTS}
    assert len({file.lower() for file in TEXTS}) == len(TEXTS), "some file systems do not tell cases apart"


def test_the_first_page_has_each_module_once() -> None:
    listed = re.findall(r":doc:`([\w.]+) <", TEXTS["index.rst"])
    assert sorted(listed) == [*names.public_modules()]


def test_links_of_the_reference_lead_to_entries() -> None:
    linked = {target for text in TEXTS.values() for target in re.findall(r":py:obj:`[^`]*<([\w.]+)>`", text)}
    assert not linked - set(names.public_names())
    assert not {full for full in linked if reference.is_elsewhere(names.public_names()[full])}, "they are in no index"
    assert len(linked) > 1_000


def test_search_finds_the_main_name_of_an_object() -> None:
    """Its other names in other modules are in no index; those that are other words are."""
    assert "\n.. py:data:: custom_vjp\n    :no-index:\n" in TEXTS["pullback.custom_derivatives.rst"]
    main = TEXTS["pullback.custom_vjp.rst"]
    assert ".. py:class:: custom_vjp" in main
    assert "\n    :canonical: pullback.custom_derivatives.custom_vjp\n" in main
    assert "\n.. py:data:: abs\n\n" in TEXTS["pullback.numpy.rst"], "of absolute"
    assert reference.resolve("pullback.lax", frozenset(), "custom_derivatives.custom_vjp") == "pullback.custom_vjp"


def test_signatures_are_python() -> None:
    for name in names.public_names().values():
        if name.kind in ("class", "function"):
            ast.parse(f"def f{signatures.signature_of(name.value)}: ...")
    assert signatures.signature_of(jnp.reshape).endswith("-> Array")


def example(a: int, /, b: str = "x", *c: float, d: object = len, **e: object) -> None:
    """Do nothing."""


def test_signatures_are_as_they_are_written() -> None:
    assert signatures.signature_of(example) == (
        "(a: int, /, b: str = 'x', *c: float, d: object = len, **e: object) -> None"
    )
    for function in (example, jnp.sum, lax.scan):
        plain = signatures.written(inspect.signature(function), types=False)
        again = ast.parse(f"def f{plain}: ...").body[0]
        assert isinstance(again, ast.FunctionDef)
        assert len(again.args.posonlyargs + again.args.args + again.args.kwonlyargs) + (function is example) * 2 == len(
            inspect.signature(function).parameters
        )


def test_the_page_of_errors_has_each_error() -> None:
    linked = re.findall(r":doc:`([A-Z]\w+) <pullback\.errors\.(\w+)>`", TEXTS["errors.rst"])
    assert sorted(shown for shown, _ in linked) == sorted(errors.__all__), "the tree has each once"
    assert all(shown == target for shown, target in linked)


@pytest.mark.parametrize("name", errors.__all__)
def test_each_error_has_a_page(name: str) -> None:
    text, found = TEXTS[f"pullback.errors.{name}.rst"], explain.explanation(name)
    assert f".. py:exception:: {name}\n" in text
    for title in ("Cause", "Cure"):
        assert text.count(f".. rubric:: {title}\n") == 1
    for program in (found.failing, found.mended):
        assert "\n".join(docstrings.indented(program.splitlines(), 7)) in text
    done = "Issued" if name.endswith("Warning") else "Raised"
    assert (f".. rubric:: {done} by\n" in text) is (name in error_page.raisers())


OF_NO_FUNCTION = {
    "PullbackError": "only its subclasses are raised",
    "CheckpointError": "methods of Checkpoints raise it",
    "JAXTypeError": "only its subclasses are raised",
    "JAXIndexError": "only its subclasses are raised",
    "JaxRuntimeError": "the runtime fails in a way that Pullback does not know",
    "UnsupportedAttributeError": "an attribute of arrays raises it",
    "UnsupportedSwitchError": "config.update raises it, a method of an object, which has no page",
}
"""The errors that no docstring of a public function lists."""


def test_each_error_is_raised_by_a_public_function() -> None:
    assert set(errors.__all__) - set(error_page.raisers()) == set(OF_NO_FUNCTION)


def test_the_pages_of_errors_say_who_raises_them_and_what_they_are() -> None:
    text = TEXTS["pullback.errors.ShapeError.rst"]
    assert "Bases: :py:obj:`PullbackError <pullback.errors.PullbackError>`, ``TypeError``, ``ValueError``." in text
    assert "Kinds of it: :py:obj:`AxisError <pullback.errors.AxisError>`." in text
    assert "Kinds of it" not in TEXTS["pullback.errors.AxisError.rst"]
    assert ("pullback.grad", "NotDifferentiableError") in {
        (name.full, error) for error, listed in error_page.raisers().items() for name, _ in listed
    }


def test_facts() -> None:
    sine = facts.operations()["pullback.numpy.sin"]
    assert sine is lax.sin_p
    assert facts.rules(sine) == [("Derivative", "a rule of its own"), ("Batching", "a rule of its own")]
    assert [row.dtype for row in facts.measured("pullback.lax.sin")] == [
        row.dtype for row in facts.measured("pullback.numpy.sin")
    ]
    assert len(facts.accuracy()) > 90
    assert all(float(row.eager) >= 0 for row in facts.measured("pullback.numpy.exp"))
    page = reference.page_of(names.public_names()["pullback.numpy.sin"])
    assert ".. rubric:: Facts" in page
    assert "One operation, ``sin``." in page


# Docstrings ----------------------------------------------------------------------------------------------------------

DOC = """Return ``x`` and `y`, see :func:`~pullback.grad`; not *this_ or |that|.

Args:
  x: the first, of shape ``(n,)``,
    which goes on.
  *rest: others.

Returns:
  Nothing.

* a bullet
  of two lines
* another

Raises:
  ArgumentError: always.

>>> 1
1
"""
AS_TEXT = r"""Return ``x``\  and \ ``y``\ , see \ :py:obj:`pullback.grad <pullback.grad>`\ ; not \*this\_ or \|that\|.

.. rubric:: Arguments

``x``
    the first, of shape \ ``(n,)``\ , which goes on.

``*rest``
    others.

.. rubric:: Returns

Nothing.

* a bullet of two lines

* another

.. rubric:: Raises

:py:obj:`ArgumentError <pullback.errors.ArgumentError>`
    always.

.. code-block:: pycon
   :force:

   >>> 1
   1
"""


def found(word: str) -> str | None:
    return {"pullback.grad": "pullback.grad", "ArgumentError": "pullback.errors.ArgumentError"}.get(word)


def test_a_docstring_becomes_text() -> None:
    text = "\n".join(docstrings.formatted(DOC, found))
    assert text.replace("Return \\ ", "Return ") == AS_TEXT
    assert docstrings.raised(DOC) == [("ArgumentError", "always.")]
    assert docstrings.raised("Return 1.") == []
    both = "Do.\n\nRaises:\n  A, B: in\n    two lines.\n\nWarns:\n  C: often.\n"
    assert docstrings.raised(both) == [("A", "in two lines."), ("B", "in two lines."), ("C", "often.")]


def test_what_is_no_markup_is_escaped() -> None:
    for text, shown in {"a_": "a\\_", "*x": "\\*x", "|x|": "\\|x\\|", "- x": "* x", "A. B": "\\ A. B"}.items():
        assert docstrings.formatted(text, found)[0] == shown


# Written pages -------------------------------------------------------------------------------------------------------


def test_each_page_is_in_a_table_of_contents() -> None:
    assert set(WRITTEN) <= contents.reachable()
    assert len(WRITTEN) > 150
    assert {"index", "coming_from", "internals/architecture", "decisions/630-pins-with-hashes"} <= set(WRITTEN)


@pytest.mark.parametrize("document", ["README", *WRITTEN])
def test_links_lead_somewhere(document: str) -> None:
    path = contents.ROOT / "README.md" if document == "README" else contents.source(document)
    text = path.read_text(encoding="utf-8")
    folder = path.parent
    assert not [link for link in contents.broken(folder, text) if link], "no such files"


def test_pages_with_cells_are_notebooks() -> None:
    """MyST-NB runs the cells of a page whose front matter says so, and of no other."""
    texts = {document: contents.source(document).read_text(encoding="utf-8") for document in WRITTEN}
    with_cells = {document for document, text in texts.items() if re.search(r"^```\{code-cell\}", text, re.MULTILINE)}
    assert len(with_cells) > 50
    heads = {document: texts[document].partition("\n---\n")[0] for document in with_cells}
    assert [
        name for name, head in heads.items() if not head.startswith("---\n") or "format_name: myst" not in head
    ] == []


def test_links_are_those_of_the_site() -> None:
    text = "[a](../ARCHITECTURE.md#x), [b](names.md), ![c](accuracy.png), [d](../LICENSE), [e](../README.md)\n"
    shown = "[a](internals/architecture.md#x), [b](names.md), ![c](accuracy.png), d, [e](index.md)\n"
    assert contents.for_site("rules", text) == shown
    assert "[d](https://example.org/LICENSE)" in contents.for_site("rules", text, "https://example.org")
    assert contents.for_site("internals/architecture", "[x](docs/names.md)") == "[x](../names.md)"
    assert contents.for_site("examples/a", "[x](../../examples/rnn.py)") == "[x](../programs/rnn.md)"
    assert contents.for_site("decisions/README", "[x](001-a.md), [y](../../ARCHITECTURE.md)") == (
        "[x](001-a.md), [y](../internals/architecture.md)"
    )
    assert contents.for_site("internals/contributing", "![x](benchmarks/ratios.png)") == (
        "![x](../../benchmarks/ratios.png)"
    )
    assert contents.for_site("rules", "```\n[a](../ARCHITECTURE.md)\n```\n") == "```\n[a](../ARCHITECTURE.md)\n```\n"


def test_a_page_that_no_table_lists_gets_one() -> None:
    among = ["index", "learn/index", "learn/a", "learn/b", "taylor"]
    text = "# Learn\n\n```{toctree}\n:maxdepth: 1\n\na\n```\n"
    assert contents.listed(text, "learn/index", among) == ["learn/a"]
    assert contents.with_contents("learn/index", text, among).endswith("\n/learn/b\n/taylor\n```\n")
    alone = contents.with_contents("index", "# Title\n", ["index", "learn/a", "taylor", "examples/index"])
    assert "\n/learn/a\n/taylor\n/examples/index\n/reference/index\n" in alone, "without the index of a folder"
    assert contents.with_contents("learn/a", "# A\n", among) == "# A\n"
    examples = contents.with_contents("examples/index", "# Examples\n", ["examples/index", "examples/a"])
    assert examples.endswith("\n/examples/a\n/programs/index\n```\n")


# The gallery ---------------------------------------------------------------------------------------------------------


def test_each_example_has_a_page() -> None:
    results = {program: gallery.Result("printed\n", "", 1.0) for program in gallery.programs()}
    index = gallery.index(results)
    for program, result in results.items():
        assert gallery.page(program, result).startswith("# ")
        assert f"\n{program.stem}\n" in index
    assert gallery.draws(gallery.EXAMPLES / "rnn.py")
    assert not gallery.draws(gallery.EXAMPLES / "ring.py")


# What is changed on pages that are read ------------------------------------------------------------------------------


def test_outputs_are_without_paths_of_the_machine() -> None:
    source = f"{contents.ROOT}/src/pullback/lax/a.py:7"
    text = f'at /tmp/ipykernel_12/345.py:1, File "C:\\Temp\\ipykernel_1\\2.py", {source}, /tmp/x'
    assert finish.without_paths(text) == 'at cell.py:1, File "cell.py", pullback/lax/a.py:7, /tmp/x'


def test_descriptions_are_short() -> None:
    assert finish.shortened("One\n two. Three") == "One two. Three"
    assert finish.shortened("One two. Three four.", 15) == "One two."
    assert finish.shortened("One two, three four", 12) == "One two…"
