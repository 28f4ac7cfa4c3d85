"""A model as one HTML page, which runs in a browser alone: no server, no network.

The graphs of the ONNX export are written as JSON, their weights as float16; js/ computes them, cuts texts into symbols
and searches as `seq2see.search` does. What a person sees is the studio's own page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from seq2see import __version__
from seq2see.api import load
from seq2see.data.columns import OUTPUT
from seq2see.errors import UserError, imported
from seq2see.export import onnx as onnx_export
from seq2see.export.page.bundling import bundle_modules
from seq2see.export.page.graph import Weights, graph_record, round_weights
from seq2see.files import MEBIBYTE, read_json, unwritable, write_bytes
from seq2see.modalities.base import file_of
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.five_answers import answers_of
from seq2see.pipeline.packing import SUFFIX, model_folder
from seq2see.training.reports import MOST_EXAMPLES, kept_examples, reported_examples

INPUTS = ("text", "texts", "set")
OUTPUTS = ("text", "label")
TOKENS = ("word", "character", "symbol", "bpe")
LARGEST = 10_000_000
"""Bytes of a page."""
CLOSE = 1e-3
"""How far float16 takes the numbers of a model before the user is told of --float32."""
STYLE = re.compile(r'href="static/(css/\w+\.css)"')
"""A style sheet of the studio's page."""
POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; base-uri 'none'; form-action 'none'"
)


def write_page(
    model: str | Path,
    out: Path,
    *,
    title: str | None = None,
    about: str | None = None,
    examples: Sequence[str] | None = None,
    float32: bool = False,
) -> list[str]:
    """Write a model as a page. Returns notes for the user.

    title: of the page (default: the model's name); about: what it does (default: what its recipe says); examples:
    inputs to show (default: those of dev rows that the model's folder has); float32: weights as they are, not rounded
    to float16.
    """
    loaded = load(model)
    bundle = loaded.bundle
    check_page(bundle)
    for module in ("onnx", "onnxscript", "onnxruntime"):
        imported(module, extra="onnx")
    onnx_export.check_exportable(bundle)
    name = Path(model).resolve().name.removesuffix(SUFFIX)
    rows = examples_of(bundle, model_folder(model)) if examples is None else [dict(loaded.row(row)) for row in examples]
    engine, weights, difference = engine_record(bundle, half=not float32)
    shown = describe(bundle, name, about) | {
        "examples": [{"example": at, "inputs": row} for at, row in enumerate(rows)]
    }
    page = render(title or name, {"engine": engine, "shown": shown}, weights)
    if len(page) > LARGEST:
        smaller = "; a smaller model, or a smaller vocabulary, is needed"
        raise UserError(
            f"{model}: the page would have {len(page) / 1e6:.1f} MB; allowed: {LARGEST / 1e6:g} MB{smaller}"
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(out, error) from None
    write_bytes(out, page)
    size = f"{len(page) / 1e6:.1f} MB, weights as {'float32' if float32 else 'float16'}"
    exact = "" if float32 or difference <= CLOSE else "; --float32 keeps them as they are"
    notes = [f"{size}: on random inputs the model's numbers change by up to {difference:.0e}{exact}"]
    if bundle.recipe.search.language_model not in (None, "none"):
        notes.append(
            f"search.language_model: {bundle.recipe.search.language_model} is ignored: the page does not use it"
        )
    return notes


def check_page(bundle: Bundle) -> None:
    """Refuse what the page cannot read, write or search, with the key of the recipe."""
    recipe = bundle.recipe
    problems = []
    if not recipe.inputs:
        problems.append(f"inputs: none; allowed: one or more of kind {', '.join(INPUTS)}")
    for name, settings in recipe.inputs.items():
        if settings.kind not in INPUTS:
            problems.append(f"inputs.{name}.kind: {settings.kind}; allowed: {', '.join(INPUTS)}")
    if recipe.output.kind not in OUTPUTS:
        problems.append(f"output.kind: {recipe.output.kind}; allowed: {', '.join(OUTPUTS)}")
    columns: dict[str, Any] = {f"inputs.{name}": column for name, column in recipe.inputs.items()}
    for key, column in (columns | {"output": recipe.output}).items():
        tokens = getattr(column, "tokens", TOKENS[0])
        if tokens not in TOKENS:
            problems.append(f"{key}.tokens: {tokens}; allowed: {', '.join(TOKENS)}")
    if not recipe.output.one_step and recipe.search.ctc:
        problems.append(f"search.ctc: {recipe.search.ctc:g}; allowed: 0")
    if problems:
        raise UserError("a page cannot hold this model: " + "; ".join(problems))


# ---------------------------------------------------------------- the model


def engine_record(bundle: Bundle, *, half: bool) -> tuple[dict[str, Any], bytes, float]:
    """(what js/model.js needs, the weights, the largest difference from the model on random inputs)."""
    onnx = imported("onnx", extra="onnx")
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    weights = Weights(half)
    with tempfile.TemporaryDirectory(prefix="seq2see-page-") as name:
        folder = Path(name)
        encoder, first, step, second = onnx_export.trace(bundle, oracle=True)
        graphs = {}
        for program, file in ((first, onnx_export.ENCODER), (second, onnx_export.STEP)):
            program.save(str(folder / file))
            graph = onnx.load(str(folder / file))
            if half:
                round_weights(graph)
                onnx.save(graph, str(folder / file))
            graphs[file.removesuffix(".onnx")] = graph_record(graph, weights)
        difference = onnx_export.compare(bundle, encoder, step, folder)
        bundle.fields.save(folder)
        known = onnx_export.metadata(bundle, encoder, int8=False, shortlist=False)
        columns = {**known.pop("inputs"), OUTPUT: known.pop("output")}
        described = {name: column_record(bundle, folder, name, settings) for name, settings in columns.items()}
    output = described.pop(OUTPUT)
    search = known.pop("search")
    record = known | {
        "columns": list(described.items()),
        "output": output,
        "search": search,
        "replace_unknown": bool(search.pop("replace_unknown", False)),
        "graphs": graphs,
    }
    return record, bytes(weights.content), difference


def column_record(bundle: Bundle, folder: Path, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a column with its symbols, and the merges of byte-pair encoding."""
    field: Any = bundle.fields.all[name]
    record = {**settings, "symbols": list(field.vocabulary.symbols)}
    if settings.get("tokens") == "bpe":
        stored = read_json(file_of(folder, "bpe", name, suffix=".json"), most=256 * MEBIBYTE, what="a BPE file")
        merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in stored["model"]["merges"]]
        record["bpe"] = {"pieces": list(stored["model"]["vocab"]), "merges": merges}
    return record


def describe(bundle: Bundle, name: str, about: str | None = None) -> dict[str, Any]:
    """What the studio's form and panel show of a model: the record of `/api/models/NAME`."""
    recipe = bundle.recipe
    output: dict[str, Any] = {"kind": recipe.output.kind, "column": recipe.output.column or OUTPUT}
    if not recipe.output.one_step:
        output["tokens"] = getattr(recipe.output, "tokens", TOKENS[0])
    inputs = [
        {
            "name": key,
            "column": settings.column or key,
            "kind": settings.kind,
            "file": False,
            "tokens": getattr(settings, "tokens", None),
        }
        for key, settings in recipe.inputs.items()
    ]
    search = {} if recipe.output.one_step else recipe.search.model_dump(mode="json", exclude={"language_model"})
    answers = answers_of(bundle)
    return {
        "name": name,
        "task": recipe.task,
        "description": recipe.description if about is None else about,
        "inputs": inputs,
        "output": output,
        "attention": {"over": list(recipe.looked_at)},
        "search": search,
        "answers": [answers.to_dict()],
        "explains": False,
    }


def examples_of(bundle: Bundle, folder: Path) -> list[dict[str, str]]:
    """Dev rows that the model's folder keeps, or the samples of its last report."""
    names = list(bundle.recipe.inputs)
    for find in (kept_examples, reported_examples):
        try:
            rows = find(folder, names)
        except UserError:
            continue  # a model is complete without the data it was trained on
        if rows:
            return [{name: row[name] for name in names} for row in rows[:MOST_EXAMPLES]]
    return []


# ---------------------------------------------------------------- the page


def render(title: str, record: Mapping[str, Any], weights: bytes) -> bytes:
    """The page: texts are escaped, and a content security policy allows its own script and styles alone."""
    script, style = page_script(), page_style()
    policy = POLICY.format(script=_digest(script), style=_digest(style))
    own, studio = _folders()
    template = Template((own / "page.html").read_text("utf-8"))
    icon = base64.b64encode((studio / "eye.svg").read_bytes()).decode()
    return template.substitute(
        title=escape(title),
        version=__version__,
        policy=escape(policy),
        icon=icon,
        style=style,
        script=script,
        model=embedded(record),
        weights=base64.b64encode(weights).decode(),
    ).encode("utf-8", "replace")


def embedded(record: Any) -> str:
    """JSON that no text inside it can turn into markup: `<` is written as an escape."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def page_script() -> str:
    """All modules as one script: the studio's, whose requests js/api.js answers, and ours."""
    own, studio = _folders()
    ours = {path.name: path.read_text("utf-8") for path in sorted((own / "js").iterdir())}
    theirs = {
        f"studio/{path.relative_to(studio / 'js').as_posix()}": path.read_text("utf-8")
        for path in sorted((studio / "js").rglob("*.js"))
    }
    theirs["studio/api.js"] = ours["api.js"].replace('"./', '"')
    return _inside("script", bundle_modules(ours | theirs, "main.js"))


def page_style() -> str:
    own, studio = _folders()
    names = STYLE.findall((studio / "index.html").read_text("utf-8"))
    files = [*(studio / name for name in names), own / "page.css"]
    return _inside("style", "\n".join(path.read_text("utf-8") for path in files))


def _inside(element: str, text: str) -> str:
    if f"</{element}" in text.lower() or "<!--" in text:
        raise ValueError(f"the text of <{element}> would end before its end")
    return text


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _folders() -> tuple[Path, Path]:
    """(this folder, that of the studio's page)."""
    package = Path(str(resources.files("seq2see")))
    return package / "export" / "page", package / "studio" / "static"
