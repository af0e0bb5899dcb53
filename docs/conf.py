"""Configure Sphinx, which `docs/build.py` calls on a copy of this folder and the notebooks."""

import os

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.ext import autosummary

project = "prslib"
author = "The prslib authors"
html_title = "prslib"
html_theme = "furo"
html_baseurl = os.environ.get("SITE_URL", "")  # set by .github/workflows/pages.yml
if repository := os.environ.get("GITHUB_REPOSITORY"):  # the site links to it
    address = (
        f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{repository}"
    )
    icon = {"name": "The repository", "html": "repository", "class": "", "url": address}
    html_theme_options = {"footer_icons": [icon]}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["memories.html"]
html_show_sphinx = html_show_copyright = False
html_copy_source = False
templates_path = ["_templates"]
exclude_patterns = ["_templates", "**/*.csv"]
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
]
# a line of text may begin with "% of the images"
myst_disable_syntax = ["myst_line_comment"]
myst_enable_extensions = ["dollarmath"]
nb_execution_mode = "off"
nb_code_prompt_show = nb_code_prompt_hide = "Code"
nb_render_markdown_format = "myst"  # with formulas and links to pages
nb_ipywidgets_js = {}  # pages load nothing from other sites
myst_heading_anchors = 3
autodoc_mock_imports = ["avalanche", "ray"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings have the types
numpydoc_show_class_members = False  # the template of a class lists them
# abbreviations, which do not end the first sentence of a docstring
autosummary.WELL_KNOWN_ABBREVIATIONS += ("Sec.", "Eq.", "Eqs.", "Alg.", "Fig.")
html_math_renderer = "mathml"  # needs no script or font, because browsers draw it


def inline_formula(self, node):
    """Write a formula within a line as MathML."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def formula(self, node):
    """Write a formula on a separate line as MathML."""
    self.body.append(
        f'<div class="formula">{convert(node.astext(), display="block")}</div>\n'
    )
    raise nodes.SkipNode


def keep_short_cells_whole(_app, doctree):
    """Mark the cells of tables that must not wrap: "79.4 ± 2.3" stays on one line."""
    for cell in doctree.findall(nodes.entry):
        if len(cell.astext()) <= 24:
            cell["classes"].append("short")


def setup(app):
    """Add the renderer of formulas and the mark on short cells."""
    app.add_html_math_renderer("mathml", (inline_formula, None), (formula, None))
    app.connect("doctree-read", keep_short_cells_whole)
