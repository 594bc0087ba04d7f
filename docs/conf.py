"""The configuration of the site, which ``make docs`` builds; ``generate/extension.py`` makes its generated pages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from generate import gallery  # noqa: E402

import pullback  # noqa: E402

project = "Pullback"
author = "The Pullback authors"
copyright = author
version = release = pullback.__version__

extensions = [
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "generate.extension",
]
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext"}
exclude_patterns = ["_*", "**/_pictures", "generate", "**.ipynb_checkpoints"]
templates_path = ["_templates"]
smartquotes = False
nitpicky = True
# Types of signatures are linked where the reference has them; NumPy's, Python's and type variables are not links.
nitpick_ignore_regex = [(r"py:(class|data|exc)", r".*")]
suppress_warnings = [
    "misc.highlighting_failure",  # jaxprs, StableHLO and shell sessions in blocks of code
    "myst.header",  # a page may skip a level of headings
    "ref.python",  # a type in a signature has two names, which mean the same
]
maximum_signature_line_length = 100
python_display_short_literal_types = True
toc_object_entries = False  # contents of a page are its headings

myst_enable_extensions = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
# Results are kept while a page and the library stay as they are; an error in a cell ends the build.
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / "build" / "docs" / "cache" / gallery.source_digest())
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

# Links to the sites of NumPy and Python need the network: Read the Docs has it, and sets this variable.
intersphinx_mapping = {}
if os.environ.get("READTHEDOCS"):
    intersphinx_mapping = {
        "numpy": ("https://numpy.org/doc/stable/", None),
        "python": ("https://docs.python.org/3/", None),
    }

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
copybutton_selector = "div:not(.output) > div.highlight > pre"  # outputs are no code

# Where the site is, if it is known: its page of missing addresses links to it.
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")
html_theme = "pydata_sphinx_theme"
html_title = f"Pullback {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}  # light or dark, as the browser says
html_additional_pages = {"404": "404.html"}
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_favicon = "_static/pullback.svg"
html_copy_source = False
html_show_sourcelink = False
html_use_index = False  # the pages of modules list all names, and the search finds them: it would be the longest page
html_sidebars = {"index": [], "404": [], "search": [], "reference/*": ["siblings.html"]}
html_theme_options = {
    "logo": {"text": "Pullback", "image_light": "_static/pullback.svg", "image_dark": "_static/pullback.svg"},
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "navigation_depth": 2,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
}
