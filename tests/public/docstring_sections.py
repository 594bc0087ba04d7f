"""What the docstring of a public name lacks: the sections ``Args``, ``Returns`` and ``Raises``, an example, or types.

``python -m tests.public.docstring_sections`` counts it in each module; with names of modules it lists their names.
"""

from __future__ import annotations

import dis
import enum
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np

import pullback.numpy as jnp
from docs.generate.docstrings import sections
from docs.generate.names import Name, docstring, names_of, public_modules


def missing(name: Name) -> list[str]:
    """What the docstring of a function or class lacks; nothing for what needs no docstring of this kind.

    A function without parameters needs no ``Args``, one that returns None no ``Returns``, and one without a statement
    ``raise``, in it or in the functions that it calls itself, no ``Raises``. The docstring of a module may describe its
    classes and functions instead, in sections ``Classes`` and ``Functions``, with an example.
    """
    if name.second or name.kind not in ("function", "class") or is_dtype(name.value) or _is_in_module(name):
        return []
    return _of_class(name) if name.kind == "class" else _of_function(name)


def _is_in_module(name: Name) -> bool:
    """Whether the docstring of the module describes a name."""
    doc = docstring(public_modules()[name.module]) if name.module in public_modules() else ""
    found = sections(doc)
    lines = [*found.get("Classes", []), *found.get("Functions", [])]
    return ">>>" in doc and any(line.strip().startswith(f"{name.name}: ") for line in lines)


def is_dtype(value: Any) -> bool:
    """Whether a class is a dtype, such as ``jnp.float32``, or an abstract kind of dtypes."""
    return inspect.isclass(value) and (isinstance(value, type(jnp.float32)) or issubclass(value, np.generic))


def _of_function(name: Name) -> list[str]:
    found, signature = sections(name.doc), _signature(name.value)
    returned = inspect.Signature.empty if signature is None else signature.return_annotation
    lacks = {
        "Args": not _describes(found.get("Args", []), signature),
        "Returns": returned not in (None, "None") and not {"Returns", "Yields"} & set(found),
        "Raises": "Raises" not in found and raises(name.value),
        "an example": ">>>" not in name.doc,
        "types": signature is None or not _is_typed(signature),
    }
    return [what for what, lacking in lacks.items() if lacking]


def _of_class(name: Name) -> list[str]:
    init = getattr(name.value, "__init__", None)
    of_init = docstring(init) if str(getattr(init, "__module__", "")).startswith("pullback") else ""
    doc = f"{name.doc}\n\n{of_init}"
    signature = _signature(name.value)
    plain = issubclass(name.value, enum.Enum) or signature is None or not signature.parameters
    listed = {"Args", "Attributes"} & set(sections(doc))
    lacks = {"Args": not plain and not listed, "an example": ">>>" not in doc}
    return [what for what, lacking in lacks.items() if lacking]


def _signature(value: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return None


def _describes(lines: list[str], signature: inspect.Signature | None) -> bool:
    """Whether the lines of a section have an entry for each parameter."""
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    heads = [line[indent:].partition(":")[0] for line in lines if line[indent : indent + 1].strip()]
    described = {name.strip("* ") for head in heads for name in head.split(",")}
    return signature is not None and set(signature.parameters) <= described


def _is_typed(signature: inspect.Signature) -> bool:
    annotations = [p.annotation for p in signature.parameters.values()]
    return inspect.Signature.empty not in (*annotations, signature.return_annotation)


def raises(function: Any) -> bool:
    """Whether a function has a statement ``raise``, or calls a function of the library that has one."""
    code, names = _code(function)
    return code is not None and (_has_raise(code) or any(_has_raise(c) for c in _called(code, names)))


def _code(function: Any) -> tuple[CodeType | None, dict[str, Any]]:
    function = inspect.unwrap(getattr(function, "func", function))
    return getattr(function, "__code__", None), getattr(function, "__globals__", {})


def _parts(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


def _has_raise(code: CodeType) -> bool:
    return any(step.opname == "RAISE_VARARGS" for part in _parts(code) for step in dis.get_instructions(part))


def _called(code: CodeType, names: dict[str, Any]) -> Iterator[CodeType]:
    """The code of the functions of the library that ``code`` mentions, by name or as attributes of modules."""
    for part in _parts(code):
        value: Any = None
        for step in dis.get_instructions(part):
            if step.opname == "LOAD_GLOBAL":
                value = names.get(step.argval)
            else:
                value = getattr(value, step.argval, None) if _is_attribute(step, value) else None
            if inspect.isfunction(value) and value.__module__.startswith("pullback"):
                found = _code(value)[0]
                if found is not None:
                    yield found


def _is_attribute(step: dis.Instruction, value: Any) -> bool:
    return step.opname in ("LOAD_ATTR", "LOAD_METHOD") and inspect.ismodule(value)


def lacking(module: str) -> dict[str, list[str]]:
    """What the docstrings of a module's names lack; names that lack nothing are left out."""
    found = {name.name: missing(name) for name in names_of(module)}
    return {name: lacks for name, lacks in found.items() if lacks}


def main(modules: list[str], write: Callable[[str], Any] = print) -> None:
    """Print what the names of some modules lack; for no modules, the counts of all."""
    for module in modules:
        for name, lacks in lacking(module).items():
            write(f"{module}.{name}: {', '.join(lacks)}")
    if not modules:
        total: Counter[str] = Counter()
        for module in public_modules():
            count = Counter(what for lacks in lacking(module).values() for what in lacks)
            total += count
            if count:
                write(f"{module}: {dict(count)}")
        write(f"all: {dict(total)}")


if __name__ == "__main__":
    main(sys.argv[1:])
