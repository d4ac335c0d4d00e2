"""Sphinx configuration: ``make docs`` builds the pages and runs every example."""

import warnings

import entourage

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
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "**/GALLERY_HEADER.rst"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
html_theme = "furo"
html_title = f"Entourage {version}"
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "show_memory": False,
    "min_reported_time": 1e9,
}

# several classes have a field of one name, such as sets: a mention of it in a docstring need not say which
suppress_warnings = ["ref.python"]
