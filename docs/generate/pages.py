"""The files of the reference: which there are, and their texts."""

from __future__ import annotations

import functools

from . import error_page, names, reference

RESERVED = ("index", "errors")
"""Files that are neither a module nor a name."""


@functools.cache
def files() -> dict[str, str]:
    """Return the file of each module and each name that has a page, without suffix; they differ without case too."""
    found: dict[str, str] = {}
    taken = set(RESERVED)
    named = [full for full, name in names.public_names().items() if reference.has_page(name)]
    for full in [*names.public_modules(), *named]:
        file = full
        while file.lower() in taken:
            file += "_"
        taken.add(file.lower())
        found[full] = file
    return found


def pages() -> dict[str, str]:
    """Return the text of each page of the reference, by its file below ``docs/reference``."""
    path, there = files().__getitem__, names.public_names()
    found = {"index.rst": reference.first_page(path), "errors.rst": error_page.page()}
    found |= {f"{path(module)}.rst": reference.module_page(module, path) for module in names.public_modules()}
    described = {full: name for full, name in there.items() if reference.has_page(name)}
    for full, name in described.items():
        page = error_page.page_of if name.kind == "exception" else reference.page_of
        found[f"{path(full)}.rst"] = page(name)
    return found


@functools.cache
def siblings() -> dict[str, list[tuple[str, str]]]:
    """Return the files and names of the pages beside a page, by the file of each: those of its module."""
    found: dict[str, list[tuple[str, str]]] = {}
    for module in names.public_modules():
        with_page = [name for name in names.names_of(module) if reference.has_page(name)]
        beside = [(files()[module], module), *((files()[name.full], name.name) for name in with_page)]
        found |= {file: beside for file, _ in beside}
    return found
