"""Models on the Hugging Face Hub: `push` uploads one with its card, `pull` downloads one into a folder.

The address and the token are those of huggingface_hub (`HF_ENDPOINT`, `HF_TOKEN`, `hf auth login`). A repository may be
a stranger's: of its files only those that a model has are kept (`packing.is_model_file`), and the folder gets its name
once the model in it was loaded with all checks.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from seq2see import __version__
from seq2see.api import load, portable_files
from seq2see.errors import UserError, imported
from seq2see.evaluation import lookup
from seq2see.files import new_folder, shortened
from seq2see.pipeline.bundle import RECIPE, WEIGHTS, Bundle
from seq2see.pipeline.packing import MAX_ARCHIVE, MAX_MEMBERS, is_model_file, model_folder
from seq2see.training.reports import EXAMPLES, METRICS, best_report, kept_examples, read_reports

if TYPE_CHECKING:
    from seq2see.api import Model
    from seq2see.recipe import Recipe

CARD, PICTURE = "README.md", "look.png"
EXTRA = "hub"
PIPELINES = {
    "translation": "translation",
    "translation-transformer": "translation",
    "summarisation": "summarization",
    "summarisation-hierarchical": "summarization",
    "document-classification": "text-classification",
    "entailment": "text-classification",
    "image-captioning": "image-to-text",
    "text-line-recognition": "image-to-text",
    "visual-question-answering": "visual-question-answering",
    "speech-recognition": "automatic-speech-recognition",
    "video-classification": "video-classification",
    "language-model": "text-generation",
}
"""The Hub's names of tasks, by recipe."""
_REPO = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_LICENSE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}", re.ASCII)


# ---------------- Uploading


def push(
    model: str | Path,
    repo: str,
    *,
    license: str,
    private: bool = False,
    example: str | None = None,
    message: str | None = None,
) -> str:
    """Upload a model and its card to a repository OWNER/NAME, created where it is missing; returns its address.

    license: of the model, by the Hub's name (apache-2.0, cc-by-4.0, mit, other ...). example: the input whose look the
    card shows (default: the first example of the training's dev rows; without any there is no picture).
    Neither tables nor samples of their rows are uploaded.
    """
    check_repo(repo)
    if not _LICENSE.fullmatch(license):
        raise UserError(
            f"--license: expected the Hub's name of a licence (apache-2.0, mit, cc-by-4.0, other), got '{license[:60]}'"
        )
    hub = imported("huggingface_hub", extra=EXTRA)
    with tempfile.TemporaryDirectory(prefix="seq2see-push-") as name:
        folder = Path(name)
        write_repository(model, folder, repo=repo, license=license, example=example)
        with hub_errors(repo):
            api = hub.HfApi(library_name="seq2see", library_version=__version__)
            url = api.create_repo(repo, private=True if private else None, exist_ok=True)
            api.upload_folder(repo_id=repo, folder_path=folder, commit_message=message or "Upload with seq2see")
    return str(url)


def write_repository(model: str | Path, folder: Path, *, repo: str, license: str, example: str | None = None) -> None:
    """Write what `push` uploads into a folder: the model's files, its card and a picture."""
    for path in portable_files(model):
        if path.name == METRICS:
            (folder / METRICS).write_bytes(_without_samples(path))
        elif path.name != EXAMPLES:
            shutil.copyfile(path, folder / path.name)
    source, loaded = model_folder(model), load(model)
    row = loaded.row(example) if example is not None else _first_example(loaded, source)
    pictured = row is not None and draw_look(loaded, row, folder / PICTURE)
    name = repo.partition("/")[2]
    card = model_card(loaded, source, name=name, license=license, usage=_usage(repo, name), pictured=pictured)
    (folder / CARD).write_text(card, encoding="utf-8")


def _without_samples(path: Path) -> bytes:
    """The lines of metrics.jsonl without rows of the table."""
    reports = read_reports(path.parent)
    kept = [{key: value for key, value in report.items() if key != "samples"} for report in reports]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept).encode("utf-8", "backslashreplace")


def _first_example(model: Model, folder: Path) -> dict[str, str] | None:
    if not model.recipe.inputs:
        return None
    try:
        return model.row(kept_examples(folder, list(model.recipe.inputs))[0])
    except (UserError, LookupError):
        return None  # a model is complete without the data it was trained on


def draw_look(model: Model, row: Any, path: Path) -> bool:
    """Draw where the model looks; False where it does not look anywhere."""
    prediction = model.look(row)
    if not prediction.looks.maps:
        return False
    prediction.looks.save(path)
    return True


# ---------------- The card


def model_card(
    model: Model, folder: Path, *, name: str, license: str, usage: str, pictured: bool, further: Sequence[str] = ()
) -> str:
    """The README.md of a model: metadata, the five answers, metrics with baselines, columns, how to load.

    usage: how to get and use it, in Markdown; further: parts that come after its title.
    """
    answers, task = model.describe(), model.recipe.task
    what, tags = _kind(model.recipe)
    metadata: dict[str, Any] = {
        "license": license,
        "library_name": "seq2see",
        "tags": ["seq2see", *tags, task],
    }
    if task in PIPELINES:
        metadata["pipeline_tag"] = PIPELINES[task]
    parts = [
        f"---\n{yaml.safe_dump(metadata, allow_unicode=True, sort_keys=False)}---",
        f"# {name}",
        f"{what}, trained with seq2see {__version__} (recipe {_inline(task)}).",
        *further,
        f"## How to use it\n\n{usage}",
        *([f"## Where it looks\n\n![the model's attention for one input]({PICTURE})"] if pictured else []),
        *([table] if (table := metrics_table(folder)) else []),
        f"## Data\n\nThe model reads and writes these columns of a table.\n\n{_columns(model)}",
        f"## The five answers\n\n{_fenced(answers.text())}",
        f"## Licence\n\n{_inline(license)}",
    ]
    return "\n\n".join(parts) + "\n"


def _kind(recipe: Recipe) -> tuple[str, list[str]]:
    """(what the model is, tags of the Hub that say so)"""
    if not recipe.inputs:
        return "A language model", []
    if recipe.attention.score == "none":
        return "An encoder-decoder", ["encoder-decoder"]
    return "An encoder-decoder with attention", ["attention", "encoder-decoder"]


def _usage(repo: str, name: str) -> str:
    return f"""```
pip install 'seq2see[{EXTRA}]'
seq2see pull {repo} --out {name}
seq2see predict {name} INPUT
seq2see look {name} INPUT --out look.png
```

```python
import seq2see

model = seq2see.load(seq2see.pull("{repo}", "{name}"))
```"""


def metrics_table(folder: Path) -> str:
    """The metrics on the dev rows, beside those of trivial models; empty without reports."""
    report = best_report(folder) if (folder / METRICS).is_file() else {}
    dev: dict[str, float] = report.get("dev", {})
    if not dev:
        return ""
    baseline, says = report.get("baseline", {}), report.get("baseline_says", {})
    rows = ["| metric | this model | baseline | which |", "|---|---|---|---|"]
    for name, value in dev.items():
        beside = lookup(name).show(baseline[name]) if name in baseline else "–"
        rows.append(f"| {name} | {lookup(name).show(value)} | {beside} | {says.get(name, '')} |")
    table = "\n".join(rows)
    return f"## Metrics\n\nOn rows that were set aside from training (dev), which also selected the weights.\n\n{table}"


def _columns(model: Model) -> str:
    recipe = model.recipe
    rows = ["| column | kind | role |", "|---|---|---|"]
    for name, settings in recipe.inputs.items():
        rows.append(f"| {_inline(settings.column or name)} | {settings.kind} | input {_inline(name)} |")
    if not recipe.generated_labels:
        rows.append(f"| {_inline(recipe.output.column or 'output')} | {recipe.output.kind} | output |")
    return "\n".join(rows)


def _inline(text: str) -> str:
    """A text as code in a line of Markdown, also inside a table."""
    plain = " ".join(text.replace("|", "\\|").split())
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    ticks = "`" * (longest + 1)
    return f"{ticks} {plain} {ticks}" if longest else f"`{plain}`"


def _fenced(text: str) -> str:
    """A block of code whose fence no line of the text can close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


# ---------------- Downloading


def pull(repo: str, out: str | Path | None = None, *, revision: str | None = None) -> Path:
    """Download a model from a repository OWNER/NAME into a new folder (default: models/NAME) and return its path.

    Only files of a model are kept, and the folder appears once the model was loaded with all checks.
    """
    check_repo(repo)
    hub = imported("huggingface_hub", extra=EXTRA)
    folder = Path("models") / repo.partition("/")[2] if out is None else Path(out)
    with new_folder(folder) as part:
        with hub_errors(repo):
            info = hub.HfApi(library_name="seq2see", library_version=__version__).model_info(
                repo, revision=revision, files_metadata=True
            )
            sizes = _model_files(repo, info)
            paths = {
                name: Path(hub.hf_hub_download(repo, name, revision=info.sha, library_name="seq2see")) for name in sizes
            }
        for name, path in paths.items():
            if path.stat().st_size != sizes[name]:
                raise UserError(f"{repo}: {name} has {path.stat().st_size:,} bytes, and the Hub lists {sizes[name]:,}")
            shutil.copyfile(path, part / name)
        try:
            Bundle.load(part)
        except UserError as error:
            raise UserError(str(error).replace(str(part), repo)) from None
    return folder


def _model_files(repo: str, info: Any) -> dict[str, int]:
    """The files of a repository that belong to a model, with their sizes in bytes."""
    files = {
        str(entry.rfilename): int(entry.size or 0)
        for entry in info.siblings or ()
        if is_model_file(str(entry.rfilename)) and str(entry.rfilename) != EXAMPLES
    }
    missing = [name for name in (RECIPE, WEIGHTS) if name not in files]
    if missing:
        raise UserError(f"{repo}: not a model of seq2see: it has no {missing[0]}")
    if len(files) > MAX_MEMBERS or sum(files.values()) > MAX_ARCHIVE:
        raise UserError(
            f"{repo}: {len(files):,} files of {sum(files.values()):,} bytes; a model has at most {MAX_MEMBERS:,} files "
            f"and {MAX_ARCHIVE:,} bytes"
        )
    return files


# ---------------- Both ways


def check_repo(repo: str) -> None:
    """Refuse what is no name of a repository."""
    if not _REPO.fullmatch(repo):
        raise UserError(f"REPO: expected OWNER/NAME (letters, digits, - _ .), got {shortened(repo)}")


@contextmanager
def hub_errors(repo: str) -> Iterator[None]:
    """Turn errors of the Hub and of the network into UserErrors that name the repository."""
    errors = imported("huggingface_hub.errors", extra=EXTRA)
    try:
        yield
    except errors.RepositoryNotFoundError:
        hint = "no such repository, or it is private and the token (HF_TOKEN, `hf auth login`) does not allow it"
        raise UserError(f"{repo}: {hint}") from None
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        hint = "; log in by `hf auth login`, or set HF_TOKEN to a token that may write" if status in (401, 403) else ""
        raise UserError(f"{repo}: the Hub answered {status}{hint}") from None
    except (errors.HTTPError, errors.LocalEntryNotFoundError, OSError) as error:
        raise UserError(f"{repo}: the Hub cannot be reached: {shortened(str(error), 200, quotes=False)}") from None
