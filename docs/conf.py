"""The documentation site: pages of docs/, the notebooks with their outputs, and what the code says of itself.

``python docs/build.py`` builds it. Sources are taken where they lie in the repository, so that a link between files
holds on a code host and in the site alike.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_site"))
sys.path.insert(0, str(HERE.parent))

from repository_links import line_of as linkcode_resolve  # noqa: E402, F401

from jaxeval import __version__  # noqa: E402

project = "jaxeval"
copyright = "jaxeval developers"
release = version = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.linkcode",
    "sphinx_copybutton",
    "commands",
    "mathml",
    "reference",
    "repository_links",
]
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/methods/*.md",
    "docs/state/*.md",
    "docs/tasks/*.md",
    "docs/reference/*.rst",
    "notebooks/*.ipynb",
    "benchmarks/README.md",
    "examples/README.md",
    "CHANGELOG.md",
]
# Hidden folders hold environments and caches.
exclude_patterns = [".*", "**/.*", "jaxeval", "tests", "build", "dist", "**/__pycache__", "**.egg-info"]
nitpicky = True

# Pages
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
copybutton_exclude = ".linenos, .gp, .go"  # a command or an example is copied without its prompt and its output

# Notebooks are shown with the outputs that are saved in them. ``docs/build.py --execute`` runs them.
nb_execution_mode = "off"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

# What the code says of itself
default_role = "py:obj"
add_module_names = False
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
# Types of other libraries have no pages here, and the site is built without a network. Ours are linked by `reference`.
nitpick_ignore_regex = [("py:class", r".*")]

# The look
html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"jaxeval {release}"
html_static_path = ["_site/static"]
html_extra_path = ["_site/root"]  # leads from the site's address to its first page
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
