"""Settings of the documentation; ``python .github/docs/build.py`` builds it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jupyter_cache import get_cache

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parents[1]
sys.path[:0] = [str(ROOT), str(DOCS)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])  # for notebooks
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
os.environ.setdefault("IPYTHONDIR", str(DOCS / ".build" / "ipython"))
# Kernels of notebooks: the warning that they are not encrypted is of no use within one machine, and what a
# shell prints is one block, not one for every 100 bytes.
BASH = """from subprocess import run
def bash(line, cell):
    print(run(["bash", "-c", cell], capture_output=True, text=True, check=True).stdout, end="")
get_ipython().register_magic_function(bash, "cell")
"""
QUIET = "get_config().IPKernelApp.log_level = 40\n"
PROFILE = Path(os.environ["IPYTHONDIR"]) / "profile_default"
(PROFILE / "startup").mkdir(parents=True, exist_ok=True)
(PROFILE / "startup" / "bash.py").write_text(BASH, encoding="utf-8")
(PROFILE / "ipython_kernel_config.py").write_text(QUIET, encoding="utf-8")

project = "qmodels"
author = "the authors of qmodels"
extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "myst_nb",
    "machinery.mathml",
    "machinery.reference",
]
root_doc = "index"
exclude_patterns = [
    ".build",
    "machinery",
    "gallery/**",
    "pictures/**/*.ipynb",
    "**sg_execution_times.rst",
]
templates_path: list[str] = []

# What is not there is an error; names of our own rooms that the reference leaves out are not looked for.
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence", "attrs_inline"]
myst_heading_anchors = 3
nb_execution_mode = os.environ.get("QMODELS_NOTEBOOKS", "cache")
nb_execution_cache_path = str(DOCS / ".build" / "notebooks")
# Made here: of several processes that read pages each would make one that is not there, and one would fail.
get_cache(nb_execution_cache_path).list_cache_records()
nb_execution_timeout = 240
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # nothing is loaded from elsewhere

default_role = "py:obj"  # as docstrings use it
smartquotes = False  # "--set" is to be copied
autodoc_typehints = "none"  # numpydoc has the types, in words
numpydoc_show_class_members = False
numpydoc_use_plots = False

toc_object_entries = False

html_theme = "pydata_sphinx_theme"
html_title = "qmodels"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
}
html_sidebars = {"index": []}

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["pictures"],
    "filename_pattern": r"\.py$",
    "image_scrapers": ("machinery.gallery_style.figures",),
    "reset_modules": ("matplotlib", "machinery.gallery_style.reset"),
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "min_reported_time": 10_000,
    "show_memory": False,
    "remove_config_comments": True,
    "plot_gallery": os.environ.get("QMODELS_GALLERY", "True"),
    "abort_on_example_error": True,
    "show_signature": False,
}
