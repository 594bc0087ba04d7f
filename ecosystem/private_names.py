"""Which names outside of JAX's documented API the newest releases of libraries use, and which of them Pullback has.

python ecosystem/private_names.py [--page] [--renew] [LIBRARY ...]

It reads the sources of the libraries of `libraries.txt`, without their tests, for names of `jax._src`, `jax.core`,
`jax.interpreters` and `jax.extend`, in import statements and attribute chains. The exit status is 1 if a name is open.
`--page` writes `docs/private_names.md`; `--renew` asks the registry for newer releases.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import releases

PAGE = releases.HERE.parent / "docs" / "private_names.md"
ROOMS = ("jax._src", "jax.core", "jax.interpreters", "jax.extend")
TESTS = re.compile(r"(^|/)(tests?|testdata|benchmarks?|examples?|docs?)/|(^|/)(test_[^/]*|[^/]*_tests?|conftest)\.py$")
"""Files that are no part of what a library does for its users."""
WORDS = re.compile(rf"\b(?:{'|'.join(room.removeprefix('jax.') for room in ROOMS)})\b")
"""The words below ``jax`` in ``ROOMS``. A file without them uses no such name, and need not be parsed."""

SERVED, REFUSED, GONE, OPEN = "served", "refused", "not in JAX", "open"


class Use(NamedTuple):
    """A name that is used, with the file and line of its first use in a library."""

    name: str
    file: str
    line: int


class Names(ast.NodeVisitor):
    """Collects the uses of names of ``ROOMS`` in a module.

    Args:
      file: the path of the file, for reports.
      package: the package of the file, against which relative imports are resolved.
    """

    def __init__(self, file: str, package: str = "") -> None:
        self.file = file
        self.package = package
        self.uses: list[Use] = []
        self.aliases: list[dict[str, set[str]]] = [{}]  # of each scope, what its names may stand for in JAX

    def note(self, name: str, node: ast.AST) -> None:
        if name.startswith(tuple(f"{room}." for room in ROOMS)) or name in ROOMS:
            self.uses.append(Use(name, self.file, getattr(node, "lineno", 0)))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.partition(".")[0] == "jax":
                self.stands(alias.asname or "jax", alias.name if alias.asname else "jax")
                self.note(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        of_jax = not node.level and node.module is not None and node.module.partition(".")[0] == "jax"
        for alias in node.names:
            full = f"{node.module}.{alias.name}" if of_jax and alias.name != "*" else ""
            if full:
                self.stands(alias.asname or alias.name, full)
                self.note(full, node)
            else:
                self.aliases[-1].setdefault(alias.asname or alias.name, set())

    def stands(self, alias: str, full: str) -> None:
        """Note what an alias stands for; in a library that tries several releases' names it stands for each of them."""
        self.aliases[-1].setdefault(alias, set()).add(full)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        names = self.full(node)
        for name in sorted(names):
            self.note(name, node)
        if not names:
            self.generic_visit(node)

    def full(self, node: ast.expr) -> set[str]:
        """Return the full names that a chain of attributes may stand for; none if it does not begin at JAX."""
        if isinstance(node, ast.Attribute):
            return {f"{before}.{node.attr}" for before in self.full(node.value)}
        if isinstance(node, ast.Name):
            return next((scope[node.id] for scope in reversed(self.aliases) if node.id in scope), set())
        return set()

    def visit_If(self, node: ast.If) -> None:
        if not ast.unparse(node.test).endswith("TYPE_CHECKING"):  # such imports are never executed
            self.generic_visit(node)
        else:
            for other in node.orelse:
                self.visit(other)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        given = node.args
        names = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        self.aliases.append({argument.arg: set() for argument in names})
        self.generic_visit(node)
        self.aliases.pop()

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store) and self.full(node):
            self.aliases[-1].setdefault(node.id, set())


def uses_in(files: Iterable[tuple[str, str]]) -> list[Use]:
    """Return the uses in the files of a library, each a path and a text, without those of its tests."""
    found = []
    for path, text in files:
        if not TESTS.search(path) and "jax" in text and WORDS.search(text):
            try:
                tree = ast.parse(text)
            except SyntaxError:  # a template, or Python of another version
                continue
            names = Names(path)
            names.visit(tree)
            found += names.uses
    return found


class Sources:
    """The modules of a release of JAX, read from its wheel and not imported: which names each defines.

    Args:
      files: the path and the text of each file.
    """

    def __init__(self, files: Iterable[tuple[str, str]]) -> None:
        self.texts = {_module_of(path): text for path, text in files if path.startswith("jax/")}
        self._names: dict[str, dict[str, str]] = {}

    def names(self, module: str) -> dict[str, str]:
        """Return the names that a module defines, each with the full name that it is imported from, or "" ."""
        if module not in self._names:
            self._names[module] = found = {}
            for node in ast.walk(ast.parse(self.texts[module])):
                found.update(self._defined(node, module))
        return self._names[module]

    def _defined(self, node: ast.AST, module: str) -> dict[str, str]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            return {node.name: ""}
        if isinstance(node, ast.Import):
            return {alias.asname: alias.name for alias in node.names if alias.asname}
        if isinstance(node, ast.ImportFrom) and node.module:
            starred = [alias for alias in node.names if alias.name == "*"]
            if starred and node.module in self.texts:
                return {name: f"{node.module}.{name}" for name in self.names(node.module)}
            return {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            return {node.id: ""}
        if isinstance(node, ast.Dict):  # a table of deprecated names, or of names that are computed
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
            return {key: "" for key in keys if key.isidentifier()}
        return {}

    def module(self, name: str) -> str:
        """Return the name of the module that a full name stands for; "" if it stands for none."""
        if name in self.texts:
            return name
        owner, _, last = name.rpartition(".")
        found = self.module(owner) if owner else ""
        target = self.names(found).get(last, "") if found else ""
        return self.module(target) if target.startswith("jax") and target != name else ""

    def has(self, name: str) -> bool:
        """Whether a full name is a module, or is defined in one."""
        owner, _, last = name.rpartition(".")
        return bool(self.module(name) or (self.module(owner) and last in self.names(self.module(owner))))

    def shortened(self, name: str) -> str:
        """Return the part of a chain of attributes up to the first name that is no module."""
        words = name.split(".")
        for i in range(2, len(words)):
            if not self.module(".".join(words[:i])):
                return ".".join(words[:i])
        return name


def _module_of(path: str) -> str:
    return re.sub(r"(/__init__)?\.py$", "", path).replace("/", ".")


def is_served(name: str) -> bool:
    """Whether ``jax`` as Pullback serves it has a name, a module or an attribute of one."""
    words = name.split(".")
    for i in range(len(words), 0, -1):
        try:
            found = importlib.import_module(".".join(words[:i]))
        except ImportError:
            continue
        for word in words[i:]:
            if not hasattr(found, word):
                return False
            found = getattr(found, word)
        return True
    return False


def judged(names: Iterable[str], jax: Sources) -> dict[str, tuple[str, str]]:
    """Return for each name what comes of it, and the advice if it is refused. ``jax`` must be served already."""
    from pullback.compat.refusals import advice

    found = {}
    for name in names:
        said = advice(name)
        if is_served(name):
            found[name] = SERVED, ""
        elif said:
            found[name] = REFUSED, said
        else:
            found[name] = (OPEN if jax.has(name) else GONE), ""
    return found


HEAD = """\
# Private names of JAX that libraries use

Libraries use names that JAX does not document: those of `jax._src`, and many of `jax.core`, `jax.interpreters` and
`jax.extend`. `make private-names` reads the newest releases of {libraries} libraries for them, in import statements and
attribute chains, without the libraries' tests. `PRIVATE_NAMES_ARGS=--page` writes this page. JAX is {version}.

{counts}

* **served**: `python -m pullback run` has the name, with the meaning that it has in JAX.
* **refused**: importing the name raises an error that says what to use. The table says it too.
* **not in JAX**: the newest release of JAX does not have the name. The library asks for it in a branch for older ones,
  or fails under JAX too.
* **open**: Pullback lacks the name.

The libraries are {names}.
"""


def page(
    used: Mapping[str, Mapping[str, Use]],
    verdicts: Mapping[str, tuple[str, str]],
    versions: Mapping[str, str],
    jax: str,
) -> str:
    """Return the text of the page.

    Args:
      used: for each name the libraries that use it, each with its first use.
      verdicts: what comes of each name, and advice.
      versions: the version of each library.
      jax: the version of JAX.
    """
    counted: dict[str, list[str]] = {SERVED: [], REFUSED: [], GONE: [], OPEN: []}
    for name in sorted(used):
        counted[verdicts[name][0]].append(name)
    counts = f"**{len(used)} names: " + ", ".join(f"{len(names)} {what}" for what, names in counted.items()) + ".**"
    listed = ", ".join(f"{library} {version}" for library, version in versions.items())
    said = HEAD.format(libraries=len(versions), version=jax, counts=counts, names=listed)
    for what, names in counted.items():
        if names:
            advised = what == REFUSED
            said += f"\n## {what[0].upper()}{what[1:]}\n\n"
            said += f"| name | libraries |{' use instead |' * advised}\n|---|---|{'---|' * advised}\n"
            for name in names:
                said += f"| `{name}` | {', '.join(used[name])} |" + f" {verdicts[name][1]} |" * advised + "\n"
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description="names outside of JAX's documented API that libraries use")
    parser.add_argument("libraries", nargs="*", help="libraries; those of libraries.txt if none is named")
    parser.add_argument("--page", action="store_true", help="write docs/private_names.md")
    parser.add_argument("--renew", action="store_true", help="ask the registry for newer releases")
    given = parser.parse_args()
    if given.page and given.libraries:
        parser.error("--page is written of all libraries: name none")
    libraries = given.libraries or releases.libraries()
    releases_of = releases.fetched_all(["jax", *libraries], renew=given.renew)
    _, archive = next(releases_of)
    if isinstance(archive, releases.ReleaseError):
        raise archive
    jax = Sources(releases.python_files(archive))
    used: dict[str, dict[str, Use]] = defaultdict(dict)
    versions = {}
    for number, (library, release) in enumerate(releases_of, 1):
        head = f"{number:3} of {len(libraries)}: {library}"
        if isinstance(release, releases.ReleaseError):
            print(f"{head}: {release}", flush=True)
            continue
        versions[library] = releases.version_of(release)
        uses = uses_in(releases.python_files(release))
        print(f"{head} {versions[library]}: {len(uses)} names", flush=True)
        for use in uses:
            used[jax.shortened(use.name)].setdefault(library, use)
    import pullback.compat

    pullback.compat.install()
    verdicts = judged(sorted(used), jax)
    for name in sorted(used):
        if verdicts[name][0] == OPEN:
            where = "; ".join(f"{library} {use.file}:{use.line}" for library, use in used[name].items())
            print(f"open: {name}  {where}")
    amounts = [sum(what == verdict for verdict, _ in verdicts.values()) for what in (SERVED, REFUSED, GONE, OPEN)]
    counts = "{} served, {} refused, {} not in JAX, {} open".format(*amounts)
    print(f"{len(used)} names of {len(versions)} libraries: {counts}")
    if given.page:
        PAGE.write_text(page(used, verdicts, versions, releases.version_of(archive)), encoding="utf-8")
    return int(amounts[-1] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
