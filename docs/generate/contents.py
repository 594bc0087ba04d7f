"""The written pages of the site: where each stands in the tables of contents, and links that work on the site too.

A page links to other files as they lie in the repository, so that the links work there. On the site the pages of the
root are in ``internals``, and what is no page is no link, or one to the repository.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
INDEX = "index"
SECTIONS = ("get_started", "learn", "how_to", "examples", "reference", "internals")
GENERATED = ("programs", "reference")
"""The folders that the build writes."""
HIDDEN = (*GENERATED, "_static", "_templates", "internals")
"""Folders in which the build writes, or which have no pages."""
OF_INTERNALS = ("internals/index", "internals/first_day")
"""The pages of ``internals`` that the build does not write."""
ROOT_PAGES = {
    "ARCHITECTURE.md": "internals/architecture",
    "CONTRIBUTING.md": "internals/contributing",
    "CODE_OF_CONDUCT.md": "internals/code_of_conduct",
    "SECURITY.md": "internals/security",
    "CHANGELOG.md": "internals/changelog",
}
"""The pages of the repository's root that the site has, and where; the build copies them."""
PLACES = {
    "get_started/index": ("get_started/*", "coming_from"),
    "learn/index": (
        "learn/*", "second_order", "taylor", "sparse_derivatives", "preaccumulation", "masked_zeros", "decompositions",
        "data_types", "named_axes", "references", "sparse", "ragged", "interpolation", "images", "signals",
        "special_functions", "random_families", "differential_equations", "stochastic_and_delay_equations", "devices",
        "meshes", "processes", "clusters", "compile_time", "glossary",
    ),
    "how_to/index": ("how_to/*", "primitives", "export", "gpus", "switches"),
    "examples/index": ("examples/*", "programs/index"),
    "internals/index": (
        *ROOT_PAGES.values(), "internals/first_day", "testing", "benchmarking", "decisions/README", "rules", "accuracy",
        "science", "names", "private_names", "library_tests", "ecosystem", "array_api",
        "array_api_functions", "conformance", "many_processes", "large_meshes", "sizes",
    ),
    "decisions/README": ("decisions/*",),
}  # fmt: skip
"""The pages below an index besides those that it lists itself."""
FENCE = re.compile(r"^ *(`{3,}|~{3,}|:{3,})")
TOCTREE = re.compile(r"^(`{3,}|:{3,})\{toctree\}.*?\n(.*?)^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(<?([^()<>\s]+)>?((?:\s+\"[^\"]*\")?)\)")


def written() -> list[str]:
    """Return the documents that are written by hand, or copied from the root: paths below ``docs`` without suffix."""
    found = [path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")]
    hidden = [name for name in found if name.partition("/")[0] in HIDDEN]
    copied = [name for file, name in ROOT_PAGES.items() if (ROOT / file).exists()]
    return sorted({*found} - {*hidden} | {*copied, *OF_INTERNALS})


# Tables of contents --------------------------------------------------------------------------------------------------


def listed(text: str, document: str, among: list[str]) -> list[str]:
    """Return the documents that the tables of contents in a page's text list."""
    found: list[str] = []
    for block in TOCTREE.finditer(text):
        for line in block[2].splitlines():
            entry = line.strip()
            if entry and not entry.startswith((":", "#")) and "://" not in entry:
                titled = re.search(r"<(.+)>$", entry)
                path = (titled[1] if titled else entry).removesuffix(".md")
                path = posixpath.normpath(posixpath.join(posixpath.dirname(document), path))
                found += [name for name in among if fnmatch(name, path.lstrip("/"))]
    return found


def _added(document: str, text: str, among: list[str]) -> list[str]:
    """Return the documents that ``PLACES`` puts below a page and the page does not list."""
    patterns = [*PLACES.get(document, ())]
    if document == INDEX:
        present = [f"{section}/index" for section in SECTIONS]
        patterns += [p for index in present if index in PLACES and index not in among for p in PLACES[index]]
        patterns += [index for index in present if index in among or index.partition("/")[0] in GENERATED]
    known = [*among, *(f"{section}/index" for section in GENERATED)]
    below = [name for pattern in patterns for name in known if fnmatch(name, pattern) and name != document]
    return [name for name in dict.fromkeys(below) if name not in listed(text, document, known)]


def with_contents(document: str, text: str, among: list[str]) -> str:
    """Return a page's text with a hidden table of contents of what is below it and it does not list itself."""
    added = _added(document, text, among)
    if not added:
        return text
    entries = "\n".join(f"/{name}" for name in added)
    return f"{text}\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"


def reachable() -> set[str]:
    """Return the written documents that the tables of contents reach from the first page."""
    among = written()
    found: set[str] = set()
    todo = [INDEX]
    while todo:
        document = todo.pop()
        if document not in found:
            found.add(document)
            path = source(document)
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            todo += listed(with_contents(document, text, among), document, among)
    return found


# Links ---------------------------------------------------------------------------------------------------------------


def source(document: str) -> Path:
    """Return the file that a document is written in."""
    copied = {name: file for file, name in ROOT_PAGES.items()}
    return ROOT / copied[document] if document in copied else DOCS / f"{document}.md"


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return a page's text in which ``change`` is applied to each line outside of blocks of code."""
    out, fence = [], ""
    for line in text.splitlines(keepends=True):
        found = FENCE.match(line)
        opens = found is not None and found[1][0] != ":"
        if found is not None and opens and not fence:
            fence = found[1]
        elif found is not None and fence and found[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        elif not fence:
            line = change(line)
        out.append(line)
    return "".join(out)


def targets(text: str) -> list[str]:
    """Return the relative targets of the links and images in a page's text."""
    found: list[str] = []

    def look(line: str) -> str:
        bare = re.sub(r"`[^`]*`\s*(?!\])", "", line)
        found.extend(m[3] for m in LINK.finditer(bare) if not re.match(r"[a-z][a-z+.-]*:|#|/", m[3]))
        return line

    outside_code(text, look)
    return found


def broken(folder: Path, text: str) -> list[str]:
    """Return the relative links in the text of a page in ``folder`` to files that there are not."""
    files = [target.partition("#")[0] for target in targets(text)]
    return [file for file in files if not (folder / file).exists() and not _generated(folder / file)]


def _generated(path: Path) -> bool:
    """Return whether a path is that of a page that the build writes."""
    path = Path(posixpath.normpath(path.as_posix()))
    return any(path.is_relative_to(DOCS / folder) for folder in GENERATED)


def _on_site(path: str) -> str:
    """Return the document or file below ``docs`` that a path of the repository is on the site; an empty one if none."""
    if path in ROOT_PAGES:
        return f"{ROOT_PAGES[path]}.md"
    if path == "README.md":
        return f"{INDEX}.md"
    if path.startswith("examples/") and path.endswith(".py"):
        return f"programs/{posixpath.basename(path).removesuffix('.py')}.md"
    if path.startswith("docs/"):
        inside = path.removeprefix("docs/")
        return f"{inside}/README.md" if (DOCS / inside / "README.md").exists() else inside
    return ""


def for_site(document: str, text: str, repository: str = "") -> str:
    """Return a page's text with links as the site has them.

    A link to a page of the site stays one. One to another file of the repository leads to ``repository``, the address
    of its files, or is text if there is none.
    """
    folder = source(document).parent.relative_to(ROOT).as_posix()
    here = posixpath.dirname(document)

    def change(found: re.Match[str]) -> str:
        image, shown, target, title = found.groups()
        if re.match(r"[a-z][a-z+.-]*:|#|/", target):
            return found[0]
        path, hash_, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(folder, path))
        on_site = _on_site(path)
        if on_site:
            return f"{image}[{shown}]({posixpath.relpath(on_site, here or '.')}{hash_}{anchor}{title})"
        if image:
            return f"![{shown}]({posixpath.relpath(path, posixpath.join('docs', here))}{title})"
        if not (ROOT / path).exists():
            return found[0]
        return f"[{shown}]({repository}/{path}{hash_}{anchor})" if repository else shown

    return outside_code(text, lambda line: LINK.sub(change, line))
