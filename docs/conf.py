"""Sphinx configuration: ``make docs`` builds the pages and runs every example."""

import re
import sys
import warnings
from pathlib import Path

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

import entourage

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

project = "Entourage"
author = "The Entourage developers"
copyright = "The Entourage developers"
version = release = entourage.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
    "benchmark_rows",  # figures of benchmarks, read from their rows
    "commands_page",  # docs/commands.md, from what --help says
]
exclude_patterns = [
    "_build",
    "_ext",
    "_static",
    "gallery/*.ipynb",
    "gallery/*.py",
    "**/GALLERY_HEADER.rst",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
smartquotes_action = "qe"  # no dashes: --full is an option, and typed so
autodoc_typehints = "none"
toc_object_entries = False  # thousands of names in the navigation of each page took most of the build
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
html_theme = "furo"
html_title = f"Entourage {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
mathjax_path = "mathjax/tex-svg.js"  # ours: pages are read without a network


def scrape_figures(block, block_vars, gallery_conf):
    """Show the figures that an example holds in variables: ours are not pyplot's."""
    known = block_vars["example_globals"].setdefault("__shown__", set())
    paths = []
    for value in list(block_vars["example_globals"].values()):
        if isinstance(value, Figure) and value.canvas.manager is None and id(value) not in known:
            known.add(id(value))
            paths.append(next(block_vars["image_path_iterator"]))
            value.savefig(paths[-1])
    return figure_rst(paths, gallery_conf["src_dir"])


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"serving_client\.py",  # needs a server
    "download_all_examples": False,
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib", scrape_figures),
    "show_memory": False,
    "min_reported_time": 1e9,
}

# several classes have a field of one name, such as sets: a mention of it in a docstring need not say which
# and a function of our own in the configuration can't be kept from one build to the next
suppress_warnings = ["ref.python", "config.cache"]


EXPLORER = "explorers/medoid.html"  # made by docs/explorers/make.py, in `make docs` only
FRAME = f"""\
```{{raw}} html
<iframe class="explorer" src="{EXPLORER}" title="Five points ranked by FATE: drag one"></iframe>
```
Drag a point, or take one off: a model that was trained on such sets ranks them in this page. [Larger](explorers.md).
"""
LINK = '**<a href="explorers/index.html">Those that were made with these pages</a>**'
PICTURE = """\
![Adding one point turns A before B into B before A](reversal.png)

Points ranked by FATE by their distance to the medoid of their set (1 = first). Adding the star turns *A before B* into
*B before A*. [Pages in which you move the points yourself](explorers.md).
"""


def put_explorer(app, name, source):
    """Show explorers where they have been made, else a picture."""
    if name in (app.config.root_doc, "explorers"):
        app.env.note_reread()
        made = (Path(app.outdir) / EXPLORER).exists()
        source[0] = source[0].replace("%%reversal%%", FRAME if made else PICTURE)
        source[0] = source[0].replace("%%explorers%%", LINK if made else "")


PRINTED = re.compile(
    r'(?<=<div class="highlight-text notranslate"><div class="highlight"><pre>)(.*?)(?=</pre>)', re.S
)
SENTENCE = re.compile(r"^(?:<span></span>)?(.{101,})$", re.M)


DASH = re.compile(r"(\)|</a>) -- ")  # Sphinx's, between a parameter and what it is


def finish_page(app, name, template, context, doctree):
    """Let a sentence that a command printed, such as the verdict, go on in the next line, where tables scroll."""
    if body := context.get("body"):
        body = PRINTED.sub(lambda block: SENTENCE.sub(r'<span class="sentence">\1</span>', block[0]), body)
        context["body"] = DASH.sub(r"\1 – ", body)


def skip_metadata_routing(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to every estimator."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app):
    app.connect("source-read", put_explorer)
    app.connect("html-page-context", finish_page)
    app.connect("autodoc-skip-member", skip_metadata_routing)
