"""Hooks of the documentation site (mkdocs.yml): reference of commands, equations as MathML, pages of the repository.

Nothing is fetched: equations become MathML while the site is built, which browsers draw by themselves.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

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
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links to pages of the repository, and equations, as the site has them."""
    depth = page.file.src_uri.count("/")
    for name in COPIED:
        markdown = markdown.replace(f"]({'../' * (depth + 1)}{name}", f"]({'../' * depth}{name}")
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
    return re.sub(r"equation-(\d+)-here", lambda match: equations[int(match[1])], html)


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
