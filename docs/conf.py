"""Sphinx settings. Nothing here needs the network, and `make docs` treats every warning as an error."""

import re

import smoothlime

project = "smoothlime"
author = "The smoothlime developers"
release = version = smoothlime.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "_vendor"]

# Formulas are drawn without a network: `make docs` fetches MathJax once, and each build carries a copy.
html_static_path = ["_vendor"]
mathjax_path = "tex-svg.js"

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Docstrings write `name` for code: a link where the name is documented, plain code where it is not.
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_attr_annotations = False  # types stand in the signature, once
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Flags", "Indices", "Points")}
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 90

html_theme = "furo"
html_title = f"smoothlime {release}"

_DISPLAY_MATH = re.compile(r"^([ \t]*)\$\$(.+?)\$\$[ \t]*$", re.DOTALL | re.MULTILINE)
_INLINE_MATH = re.compile(r"(?<![\\$`\w])\$(?=\S)([^$`\n]+?)(?<=\S)\$(?![\w$])")
_ABSOLUTE_VALUE = re.compile(r"\|(\S(?:[^|`\n]*\S)?)\|")
_CODE = re.compile(r"(`[^`]*`)")
_REFERENCES = re.compile(r"^([ \t]*)References: +", re.MULTILINE)


def _house_docstring(app, what, name, obj, options, lines):
    """Turn docstrings in house style into what autodoc reads.

    They write formulas as $...$ and $$...$$, like the pages here, and |x| for an absolute value, which
    reStructuredText takes for a substitution; references as one paragraph, which napoleon takes for an entry
    of the section above it; and attributes in a sentence, of which it takes what precedes a colon for a type.
    """

    def display(match):
        indent, formula = match.groups()
        body = [f"{indent}    {line.strip()}" for line in formula.strip().splitlines()]
        return "\n".join([f"{indent}.. math::", "", *body])

    def inline(line):
        if line.lstrip().startswith((">>>", "...")):
            return line
        parts = _CODE.split(_INLINE_MATH.sub(r":math:`\1`", line))
        parts[::2] = [_ABSOLUTE_VALUE.sub(r"\|\1\|", prose) for prose in parts[::2]]
        return "".join(parts)

    text = _DISPLAY_MATH.sub(display, "\n".join(lines))
    text = _REFERENCES.sub(r"\1References\n\1----------\n\1", text)
    first = ["\\"] if what in {"attribute", "data", "property"} else []  # joins the next line, and has no colon
    lines[:] = [*first, *map(inline, text.splitlines()), ""]  # autodoc expects an empty last line


def _plain_aliases(app, what, name, obj, options, signature, returns):
    """Show `Array` where autodoc leaves the alias wrapped inside a longer type."""
    return tuple(text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, returns))


def setup(app):
    app.connect("autodoc-process-signature", _plain_aliases)
    app.connect("autodoc-process-docstring", _house_docstring, priority=400)  # before napoleon, at 500
