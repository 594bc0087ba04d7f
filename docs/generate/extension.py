"""The extension of Sphinx: writes the generated pages before a build, and adapts the written ones as they are read."""

from __future__ import annotations

import html
import re
import shutil
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from . import contents, finish, gallery, kernels, names, pages

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.config import Config
    from sphinx.environment import BuildEnvironment

CELL = "{code-cell}"
OF_TYPES = ("pullback", "pullback.typing", "pullback.errors", "pullback.stages")
"""The modules that have the types of signatures."""
GALLERY = "examples/index"
"""The page whose items show how long their programs take."""
FRONT_TITLE = "Pullback: derivatives, batches and compiled programs for NumPy code"
NOT_FOUND = "404"


def repository() -> str:
    """Return the address of the repository's files, from ``project.urls``, or an empty string."""
    project = tomllib.loads((contents.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    urls = {name.lower(): url for name, url in project.get("urls", {}).items()}
    address = next((urls[name] for name in ("repository", "source", "source code") if name in urls), "")
    return f"{address.rstrip('/')}/blob/main" if address else ""


def _write(path: Path, text: str) -> None:
    """Write a file unless it has this text already, so that an unchanged page is not read again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _write_all(folder: Path, texts: dict[str, str]) -> None:
    """Write the files of a generated folder, and remove others."""
    for path in folder.glob("*.*"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        _write(folder / name, text)


def write_reference() -> None:
    """Write the pages of the reference."""
    _write_all(contents.DOCS / "reference", pages.pages())


def write_gallery(kept: Path) -> dict[str, float]:
    """Run the examples, and write their pages and pictures; return how many seconds each page's program took."""
    results = gallery.run_all(kept)
    texts = {f"{program.stem}.md": gallery.page(program, result) for program, result in results.items()}
    _write_all(contents.DOCS / "programs", texts | {"index.md": gallery.index(results)})
    pictures = contents.DOCS / "programs" / "_pictures"
    pictures.mkdir(exist_ok=True)
    for program, result in results.items():
        if result.picture:
            shutil.copyfile(kept / result.picture, pictures / f"{program.stem}.png")
    return {f"programs/{program.stem}": result.seconds for program, result in results.items()}


def copy_root_pages() -> None:
    """Copy the pages of the repository's root into ``internals``, with links as they are there."""
    for file, document in contents.ROOT_PAGES.items():
        path = contents.ROOT / file
        if path.exists():
            text = contents.for_site(document, path.read_text(encoding="utf-8"), repository())
            _write(contents.DOCS / f"{document}.md", text)


def on_config(app: Sphinx, config: Config) -> None:
    """Write what the build generates, or of it what a build of few pages needs, which runs nothing."""
    Path(config.nb_execution_cache_path).mkdir(parents=True, exist_ok=True)
    write_reference()
    copy_root_pages()
    if config.pullback_pages:
        config.include_patterns = config.pullback_pages
        config.nb_execution_mode = "off"
        config.suppress_warnings = ["toc", "ref", "myst", "misc", "image"]
        config.nitpicky = False
    else:
        config.pullback_seconds = write_gallery(contents.ROOT / "build" / "docs" / "gallery")


def on_read(app: Sphinx, document: str, text: list[str]) -> None:
    """Adapt a written page: its links, and its table of contents."""
    if str(app.env.doc2path(document)).endswith(".md") and document.partition("/")[0] not in contents.GENERATED:
        if document not in contents.ROOT_PAGES.values():
            text[0] = contents.for_site(document, text[0], repository())
        text[0] = contents.with_contents(document, text[0], contents.written())


def outdated(app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], gone: set[str]) -> Iterable[str]:
    """Return the pages with code, all of which run again when the library has changed, and those that show times."""
    digest = gallery.source_digest()
    if getattr(env, "pullback_source", digest) == digest:
        again: list[str] = []
    else:
        paths = {document: Path(env.doc2path(document)) for document in env.found_docs}
        again = [d for d, path in paths.items() if path.suffix == ".md" and CELL in path.read_text(encoding="utf-8")]
    env.pullback_source = digest  # type: ignore[attr-defined]
    return [*again, *[GALLERY] * bool(again or changed)]


def on_updated(app: Sphinx, env: BuildEnvironment) -> None:
    """Leave second names out of the search, which finds the page of the main one; links to them remain."""
    objects = env.domains.python_domain.objects
    for full, name in names.public_names().items():
        if name.second and full in objects:
            objects[full] = objects[full]._replace(aliased=True)


def on_doctree(app: Sphinx, doctree: nodes.document) -> None:
    """Link the types of signatures, which are written without their module, to what they are in these modules."""
    from sphinx.addnodes import desc_signature, pending_xref

    for signature in doctree.findall(desc_signature):
        for node in signature.findall(pending_xref):
            full = (f"{module}.{node['reftarget']}" for module in OF_TYPES)
            node["reftarget"] = next((name for name in full if name in names.public_names()), node["reftarget"])
            for attribute in ("refspecific", "py:module", "py:class"):  # else any name with this ending would be found
                node.attributes.pop(attribute, None)
    finish.clean_outputs(doctree)


def on_resolved(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Show how long the programs of the galleries take."""
    executed = {name: data["exec_data"]["runtime"] for name, data in getattr(app.env, "nb_metadata", {}).items()
                if data.get("exec_data") and data["exec_data"]["runtime"]}  # fmt: skip
    if page == GALLERY:
        finish.show_times(doctree, page, executed | app.config.pullback_seconds)
    elif page.startswith("examples/") and page in executed:
        finish.show_time(doctree, executed[page])


def _item(file: str, name: str, current: bool) -> str:
    shown = ' class="current"' if current else ""
    return f'<li{shown}><a href="{html.escape(file)}.html">{html.escape(name)}</a></li>'


def _named_toggles(text: str) -> str:
    """Return the navigation with a name for each button that opens a part of it, which screen readers say."""
    return re.sub(r"(<a [^>]*>)([^<]*)(</a>\s*<details[^>]*>\s*)<summary>",
                  lambda found: f'{found[1]}{found[2]}{found[3]}<summary aria-label="Pages below {found[2].strip()}">',
                  text)  # fmt: skip


def _signatures_without_lists(body: str) -> str:
    """Return a page's text whose signatures of several lines are no definition lists, which need terms."""

    def plain(found: re.Match[str]) -> str:
        lines = found[0].replace("<dl>", "<span>").replace("</dl>", "</span>")
        return lines.replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")

    return re.sub(r'<dt class="sig .*?</dt>', plain, body, flags=re.DOTALL)


def on_page(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Complete what the templates get: a description, the names beside a page of the reference, accessible parts."""
    folder, _, file = page.rpartition("/")
    if folder == "reference" and file in pages.siblings():
        context["siblings"] = "\n".join(_item(other, name, other == file) for other, name in pages.siblings()[file])
    text = finish.description(doctree) if doctree is not None else ""
    if text:
        context["metatags"] = f'{context.get("metatags", "")}<meta name="description" content="{html.escape(text)}" />'
    if page == NOT_FOUND:  # which a server shows at any address: its links begin where the site does
        root = urlsplit(app.config.html_baseurl).path.rstrip("/")
        context["metatags"] = f'<base href="{html.escape(root)}/{NOT_FOUND}.html" />'
    if page == contents.INDEX:
        context["title"], context["docstitle"] = FRONT_TITLE, ""
    if "body" in context:
        context["body"] = _signatures_without_lists(context["body"])
    navigation = context.get("generate_toctree_html")
    if navigation is not None:
        context["generate_toctree_html"] = lambda *args, **options: _named_toggles(str(navigation(*args, **options)))


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect this extension."""
    kernels.use_files()
    app.add_config_value("pullback_pages", [], "env", list, "patterns of the only pages of a build without execution")
    app.add_config_value("pullback_seconds", {}, "", dict, "how long the program of a page took")
    app.connect("config-inited", on_config)
    app.connect("source-read", on_read)
    app.connect("env-get-outdated", outdated)
    app.connect("env-updated", on_updated)
    app.connect("doctree-read", on_doctree)
    app.connect("doctree-resolved", on_resolved)
    app.connect("html-page-context", on_page, priority=900)  # after the theme, which makes the navigation
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True, "env_version": 2}
