"""Hooks of the documentation site (mkdocs.yml): reference of commands, equations as MathML, pages of the repository,
pages of notebooks.

Nothing is fetched: equations become MathML while the site is built, which browsers draw by themselves.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import nbformat
from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

from seq2see.cli.app import COMMANDS, parse_command

PROJECT = Path(__file__).resolve().parent.parent
EQUATIONS = "equations"
COPIED = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages of the repository that the site has too, beside its own."""

FENCED = re.compile(r"^(```.*?^```$|~~~.*?^~~~$)", re.MULTILINE | re.DOTALL)
EQUATION = re.compile(
    r"(?P<code>`[^`\n]*`)|\$\$(?P<block>.+?)\$\$|(?<![\w$\\])\$(?P<line>[^$\n]+?)\$(?![\w$])", re.DOTALL
)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made here."""
    for name in COPIED:
        text = (PROJECT / name).read_text("utf-8")
        text = re.sub(r"\]\(docs/", "](", text)
        text = re.sub(r"\[([^]]+)\]\(seq2see/[^)]+\)", r"`\1`", text)  # the site has no source files
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "reference/cli.md", content=command_reference()))
    for path in sorted((PROJECT / "docs" / "notebooks").glob("*.ipynb")):
        content = f"---\nhide: [navigation]\n---\n\n{notebook_page(path)[0]}"  # room for code
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links to pages of the repository, and equations, as the site has them."""
    depth = page.file.src_uri.count("/")
    for name in COPIED:
        markdown = markdown.replace(f"]({'../' * (depth + 1)}{name}", f"]({'../' * depth}{name}")
    markdown = re.sub(r"(\]\([\w./-]+)\.ipynb\)", r"\1.md)", markdown)
    equations: list[str] = page.meta.setdefault(EQUATIONS, [])

    def replaced(match: re.Match[str]) -> str:
        if match["code"] is not None:
            return match["code"]
        block = match["block"]
        equations.append(convert(block.strip(), display="block") if block else convert(match["line"]))
        return f"equation-{len(equations) - 1}-here"

    parts = FENCED.split(markdown)
    return "".join(part if FENCED.fullmatch(part) else EQUATION.sub(replaced, part) for part in parts)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Put the equations in, which Markdown would have taken for paragraphs."""
    equations: list[str] = page.meta.get(EQUATIONS, [])
    html = re.sub(r"equation-(\d+)-here", lambda match: f"<span class=equation>{equations[int(match[1])]}</span>", html)
    html = EQUATION_STYLE * bool(equations) + html
    path = PROJECT / "docs" / page.file.src_uri.removesuffix(".md")
    if not (path := path.with_suffix(".ipynb")).is_file():
        return html
    outputs = notebook_page(path)[1]
    html = re.sub(r"<p>output-(\d+)-here</p>", lambda match: outputs[int(match[1])], html)
    return f"{html}\n{DOWNLOAD.format(name=path.name)}\n{NOTEBOOK_STYLE}"


# ---------------- Notebooks

EQUATION_STYLE = """<style>
.equation { display: inline-block; max-width: 100%; overflow: auto hidden; vertical-align: middle; }
.equation:has(> math[display=block]) { display: block; }
</style>"""
"""An equation that is wider than the page scrolls in its own box."""
BESIDE = "beside"
"""Tag of a cell of text that stands to the left of the code after it."""
DOWNLOAD = '<p>This page is a notebook that was run: <a href="{name}" download>download it</a> and run it yourself.</p>'
NOTEBOOK_STYLE = """<style>
.notebook-output { margin: 0 0 1.2em; padding-left: .8em; border-left: 3px solid #8885; overflow-x: auto; }
.notebook-output pre { margin: 0; padding: .2em 0; font-size: .68rem; line-height: 1.4; }
.notebook-output img { display: block; background: #fff; }
.notebook-output table { border-collapse: collapse; font-size: .68rem; }
.notebook-output .md-typeset__scrollwrap, .notebook-output .md-typeset__table { margin: 0; padding: 0; }
.notebook-output iframe { background: #fff; }
.notebook-beside { display: grid; gap: 0 1.2em; align-items: center; }
.notebook-beside { grid-template-columns: minmax(0, 1fr) minmax(0, 1.4fr); }
.notebook-beside math { font-size: 1.05em; }
@media (max-width: 60em) { .notebook-beside { display: block; } }
</style>"""


def notebook_page(path: Path) -> tuple[str, list[str]]:
    """A notebook as Markdown, with output-N-here in a paragraph of its own where its Nth output as HTML goes."""
    parts: list[str] = []
    outputs: list[str] = []
    beside = False
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            beside = BESIDE in cell.metadata.get("tags", [])
            parts.append(f'<div class="notebook-beside" markdown>\n<div markdown>\n\n{cell.source}\n\n</div>' * beside)
            parts.append(cell.source * (not beside))
        else:
            code = f"```python\n{cell.source}\n```"
            parts.append(f"<div markdown>\n\n{code}\n\n</div>\n</div>" if beside else code)
            beside = False
            for html in filter(None, map(_output_html, cell.outputs)):
                parts.append(f"output-{len(outputs)}-here")
                outputs.append(f'<div class="notebook-output">{html}</div>')
    return "\n\n".join(filter(None, parts)) + "\n", outputs


def _output_html(output: Any) -> str:
    """An output of a cell as HTML: its best form."""
    if output.output_type == "stream":
        return f"<pre>{escape(output.text.rstrip())}</pre>"
    data = output.get("data", {})
    if "image/png" in data:
        encoded = data["image/png"].replace("\n", "")
        return f'<img alt="{escape(data.get("text/plain", "figure"))}" src="data:image/png;base64,{encoded}">'
    if "text/html" in data:
        return str(data["text/html"])
    return f"<pre>{escape(data['text/plain'])}</pre>" if "text/plain" in data else ""


# ---------------- Commands


def command_reference() -> str:
    """The help of every command as one page."""
    lines = ["# Commands", "", "The same texts as `seq2see COMMAND --help` prints.", ""]
    for name, about, text in _helps():
        lines += [f"## {name}", "", about[:1].upper() + about[1:] + ".", "", "```text", text.rstrip(), "```", ""]
    return "\n".join(lines)


def _helps() -> Iterator[tuple[str, str, str]]:
    for name, about in COMMANDS.items():
        yield name, about, _help(f"seq2see.cli.{name}", name)
        for kind, kind_about in getattr(import_module(f"seq2see.cli.{name}"), "KINDS", {}).items():
            yield f"{name} {kind}", kind_about, _help(f"seq2see.cli.{name}.{kind.replace('-', '_')}", f"{name} {kind}")


def _help(module: str, name: str) -> str:
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            parse_command(module, name, ["--help"])
    except SystemExit:
        pass
    return re.sub(r"\S*mkdocs\S*(?= )|\S*pytest\S*(?= )", "seq2see", printed.getvalue())
