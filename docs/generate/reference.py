"""The pages of the reference: one for each module, and one for each function and class."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from . import facts, names
from .docstrings import Resolve, formatted, indented, paragraph, reference, trimmed
from .names import Name
from .signatures import annotation, signature_of

GROUPS = (
    ("Transformations, devices and switches", ("pullback",)),
    ("Arrays", ("pullback.numpy", "pullback.image", "pullback.ops", "pullback.dtypes", "pullback.dlpack",
                "pullback.ragged")),
    ("Operations of programs", ("pullback.lax",)),
    ("Neural networks", ("pullback.nn",)),
    ("Random numbers", ("pullback.random",)),
    ("Scientific functions", ("pullback.scipy",)),
    ("Derivatives", ("pullback.derivatives", "pullback.custom_derivatives", "pullback.custom_batching",
                     "pullback.ad_checkpoint", "pullback.test_util", "pullback.ad")),
    ("Trees and references", ("pullback.tree", "pullback.tree_util", "pullback.flatten_util", "pullback.ref")),
    ("Devices and processes", ("pullback.sharding", "pullback.distributed", "pullback.checkpointing",
                               "pullback.stages", "pullback.export", "pullback.ffi")),
    ("Debugging and measuring", ("pullback.analysis", "pullback.debug", "pullback.errors", "pullback.profiler",
                                 "pullback.monitoring")),
    ("Experimental", ("pullback.experimental", "pullback.example_libraries")),
    ("Types and extension", ("pullback.memory", "pullback.typing", "pullback.extend", "pullback.interpreters",
                             "pullback.api_util", "pullback.compat")),
)  # fmt: skip
"""The headings of the first page, and the modules below each, with all modules within these."""
PARTS = (("Functions", "function"), ("Classes", "class"), ("Exceptions", "exception"))
INTRODUCTION = (
    "A function, a class or an error has a page with its docstring, and most have an example. This part of the site is "
    "generated from the library."
)
TOP = "pullback."


def resolver(name: Name) -> Resolve:
    """Return what finds names in the docstring of ``name``: a short one may be of its module, and no parameter."""
    try:
        own = set(inspect.signature(name.value).parameters) if callable(name.value) else set[str]()
    except (TypeError, ValueError):
        own = set[str]()
    return functools.partial(resolve, name.module, frozenset(own))


def resolve(module: str, parameters: frozenset[str], text: str) -> str | None:
    """Return the full public name that ``text`` in a docstring of ``module`` stands for, or None."""
    there = names.public_names()
    if "." in text:
        full = names.short_names().get(text)
        return full and (there[full].main if is_elsewhere(there[full]) else full)
    if text in parameters or not text.isidentifier():
        return None
    for full in (f"pullback.errors.{text}", f"{module}.{text}", TOP + text):
        if full in there and there[full].kind in names.DESCRIBED:
            return there[full].main if is_elsewhere(there[full]) else full
    return None


def is_elsewhere(name: Name) -> bool:
    """Return whether a name is that of an object that is described under the same name in another module.

    Search does not find it, so that it finds the main one first; a second name that is another word has its own place.
    """
    return name.second and name.main.rpartition(".")[2] == name.name


@functools.cache
def _elsewhere() -> dict[str, str]:
    """Return, for the full names of objects, their first name in another module."""
    found: dict[str, str] = {}
    for full, name in names.public_names().items():
        if is_elsewhere(name):
            found.setdefault(name.main, full)
    return found


def heading(text: str, line: str = "=") -> list[str]:
    """Return the lines of a heading."""
    return [text, line * len(text), ""]


def _table(rows: Sequence[tuple[str, ...]], widths: str, head: tuple[str, ...] = ()) -> list[str]:
    out = [".. list-table::", f"   :widths: {widths}", *["   :header-rows: 1"] * bool(head), ""]
    for row in [*[head] * bool(head), *rows]:
        out += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return [*out, ""]


# Facts ---------------------------------------------------------------------------------------------------------------


def _facts(name: Name) -> list[str]:
    said = facts.derivatives(name.full)
    out = [f"* {' '.join(said)}", ""] if said else []
    unused = [f"``{parameter}``" for parameter in facts.without_effect(name.doc)]
    out += [f"* Accepted without effect: {', '.join(unused)}.", ""] if unused else []
    operation = facts.operations().get(name.full)
    if operation is not None:
        listed = [f"{what}: {rule}." for what, rule in facts.rules(operation)]
        out += [f"* One operation, ``{operation.name}``. {' '.join(listed)} See :doc:`/rules`.", ""]
    rows = facts.measured(name.full)
    if rows:
        variants = any(row.variant for row in rows)
        head = ("of", "dtype", "eager", "compiled")
        cells = [(f"{r.what}, {r.variant}" if variants and r.variant else r.what, r.dtype, r.eager, r.compiled)
                 for r in rows]  # fmt: skip
        out += ["* The largest measured errors of value and derivatives, in ulps (see :doc:`/accuracy`):", ""]
        out += indented(_table([tuple(cell or r"\ " for cell in row) for row in cells], "40 20 20 20", head), 2)
    return [".. rubric:: Facts", "", *out] if out else []


# Entries -------------------------------------------------------------------------------------------------------------


def _members(cls: type) -> list[tuple[str, Any]]:
    """Return the attributes of a class that the library defines, without those that begin with an underscore."""
    found = []
    for name in dir(cls):
        owner = next((base for base in cls.__mro__ if name in vars(base)), None)
        if name[0] != "_" and owner is not None and owner.__module__.partition(".")[0] == names.PACKAGE:
            found.append((name, vars(owner)[name]))
    return found


def _method(name: str, static: Any, cls: type, find: Resolve) -> list[str]:
    value = getattr(cls, name, static)
    doc = names.docstring(value)
    if isinstance(value, enum.Enum):
        return [f".. py:attribute:: {name}", f"    :value: {value.value!r}", ""]
    if inspect.isdatadescriptor(static) or isinstance(static, functools.cached_property):
        shown = doc and not doc.startswith("Alias for field number")
        return [f".. py:property:: {name}", "", *indented(formatted(doc, find))] if shown else []
    if not callable(value) or inspect.isclass(value):
        return []
    option = [f"    :{kind.__name__}:" for kind in (classmethod, staticmethod) if isinstance(static, kind)]
    signature = signature_of(value, method=not option)
    return [f".. py:method:: {name}{signature}", *option, "", *indented(formatted(doc, find))]


def _of_init(value: Any) -> str:
    """Return the docstring of the method ``__init__`` of a class, if the library defines it."""
    init = getattr(value, "__init__", None) if inspect.isclass(value) else None
    return names.docstring(init) if str(getattr(init, "__module__", "")).partition(".")[0] == names.PACKAGE else ""


def entry(name: Name, more: Callable[[Name], list[str]] = lambda name: []) -> list[str]:
    """Return the entry of a function, class or exception: signature, docstring, facts, members, and ``more``."""
    find = resolver(name)
    body = [*formatted(name.doc, find), *formatted(_of_init(name.value), find), *more(name)]
    if name.kind == "function":
        body += _facts(name)
    elif name.kind == "class":
        members = [line for member, value in _members(name.value) for line in _method(member, value, name.value, find)]
        body += [".. rubric:: Members", "", *members] if members else []
    plain = name.kind == "exception" or (inspect.isclass(name.value) and issubclass(name.value, enum.Enum))
    signature = "" if plain else signature_of(name.value)
    also = [f"    :canonical: {_elsewhere()[name.full]}"] if name.full in _elsewhere() else []
    return [f".. py:{name.kind}:: {name.name}{signature}", *also, "", *indented(body), ""]


def page_of(name: Name, more: Callable[[Name], list[str]] = lambda name: []) -> str:
    """Return the text of the page of a function, class or exception; see :func:`entry`."""
    return "\n".join([*heading(name.full), f".. py:currentmodule:: {name.module}", "", *entry(name, more)])


def _short(name: Name) -> list[str]:
    """Return the entry of a name that has no page: a second name, a primitive, a constant, or another library's."""
    lines = [f".. py:data:: {name.name}", *["    :no-index:"] * is_elsewhere(name), ""]
    if name.kind == "primitive":
        rules = "; ".join(f"{what.lower()}: {rule}" for what, rule in facts.rules(name.value))
        text = f"The operation ``{name.value.name}`` ({rules})."
    elif name.second:
        text = f"Another name of {reference(name.main.removeprefix(TOP), name.main)}."
    elif name.kind == "type":
        text = f"The type ``{annotation(name.value)}``."
    elif name.kind == "foreign":
        text = f"``{names.owner_of(name.value)}.{getattr(name.value, '__qualname__', name.name)}``, unchanged."
    else:
        shown, made = repr(name.value), type(name.value)
        plain = len(shown) < 60 and "`" not in shown and "\n" not in shown and " at 0x" not in shown
        text = f"A value of type ``{made.__name__}``" + (f": ``{shown}``." if plain else ".")
        if made.__module__.startswith(TOP):
            text += " " + paragraph([names.summary(inspect.getdoc(made) or "")], resolver(name))
    return [*lines, *indented([text, ""])]


# Pages of modules ----------------------------------------------------------------------------------------------------


def _listed(name: Name) -> tuple[str, str]:
    return trimmed(reference(name.name, name.full)), paragraph([names.summary(name.doc)], resolver(name)) or r"\ "


def has_page(name: Name) -> bool:
    """Whether a name has a page of its own."""
    return name.kind in names.DESCRIBED and not name.second


def _within(module: str) -> list[str]:
    """Return the modules directly within a module."""
    return [m for m in names.public_modules() if m.rpartition(".")[0] == module]


def module_page(module: str, path: Callable[[str], str]) -> str:
    """Return the text of the page of a module; ``path`` returns the file of a name or module, without its suffix."""
    value, listed = names.public_modules()[module], names.names_of(module)
    find = functools.partial(resolve, module, frozenset[str]())
    out = [*heading(module), f".. py:module:: {module}", "", *formatted(names.docstring(value), find)]
    if within := _within(module):
        rows = [(f":doc:`{m} <{path(m)}>`", module_summary(m)) for m in within]
        out += [*heading("Modules", "-"), *_table(rows, "35 65")]
    for title, kind in PARTS:
        rows = [_listed(name) for name in listed if name.kind == kind and not name.second]
        out += [*heading(title, "-"), *_table(rows, "35 65")] if rows else []
    rest = [name for name in listed if not has_page(name)]
    parts = {
        "Other names": [name for name in rest if name.second],
        "Constants and types": [name for name in rest if not name.second and name.kind != "primitive"],
        "Primitives": [name for name in rest if not name.second and name.kind == "primitive"],
    }
    for title, some in parts.items():
        out += [*heading(title, "-"), *(line for name in some for line in _short(name))] if some else []
    pages = [*within, *(name.full for name in listed if has_page(name))]
    if pages:
        out += [".. toctree::", "   :hidden:", "", *(f"   {page} <{path(page)}>" for page in pages), ""]
    return "\n".join(out)


def module_summary(module: str) -> str:
    """Return the first sentence of a module's docstring, as reStructuredText."""
    doc = names.docstring(names.public_modules()[module])
    return paragraph([names.summary(doc)], functools.partial(resolve, module, frozenset[str]())) or r"\ "


def first_page(path: Callable[[str], str]) -> str:
    """Return the text of the first page: the modules in groups."""
    many = f"{len(names.public_names()):,} public names in {len(names.public_modules())} modules."
    out = [
        *heading("Reference"),
        f"{many} {INTRODUCTION}",
        "",
        "The errors, with their causes and cures: :doc:`errors`.",
        "",
    ]
    for title, modules in GROUPS:
        shown = [m for m in names.public_modules() if m in modules]
        if modules != ("pullback",):
            shown = [m for m in names.public_modules() if any(m == top or m.startswith(f"{top}.") for top in modules)]
        rows = [(f":doc:`{m} <{path(m)}>`", module_summary(m)) for m in shown]
        out += [*heading(title, "-"), *_table(rows, "35 65")]
    out += [".. toctree::", "   :hidden:", "   :maxdepth: 1", "", "   errors", f"   pullback <{path('pullback')}>", ""]
    return "\n".join(out)
