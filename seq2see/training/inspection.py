"""What a recipe makes of a table: rows, vocabularies, what is `auto`, how long training takes; and recipes that fit."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seq2see.data.columns import OUTPUT, quoted
from seq2see.data.inspection import ColumnFacts, TableFacts
from seq2see.pipeline.dataset import Dataset
from seq2see.recipe import Recipe, load_recipe, shipped
from seq2see.recipe.fitting import fitted_notes
from seq2see.training.checkpoints import Sources
from seq2see.training.dataset import wanted_columns
from seq2see.training.run import Timing, time_updates

UPDATES, SECONDS = 8, 20.0
"""Updates that are measured, and after how many seconds no further one is."""


@dataclass(frozen=True)
class RecipeFacts:
    """What a recipe makes of a table; timing: None where it was not measured."""

    task: str
    columns: dict[str, str]
    rows: int
    dev_rows: int
    left_out: int
    vocabularies: dict[str, int]
    fitted: list[str]
    notes: list[str]
    parameters: int
    timing: Timing | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def inspect_recipe(
    recipe: Recipe,
    data: str | Path,
    *,
    dev: str | Path | None = None,
    columns: Sequence[str] | None = None,
    updates: int = UPDATES,
) -> RecipeFacts:
    """Read the table as a run of the recipe would, build its model, and measure a few updates of it."""
    path = str(Path(data).resolve())
    sources = Sources(path, None if dev is None else str(Path(dev).resolve()), list(columns) if columns else None)
    with tempfile.TemporaryDirectory() as folder:
        bundle, corpus, timing = time_updates(recipe, sources, Path(folder), updates=updates, seconds=SECONDS)
        return RecipeFacts(
            recipe.task,
            dict(wanted_columns(bundle.recipe)),
            len(corpus.train),
            len(corpus.dev),
            corpus.train.left_out if isinstance(corpus.train, Dataset) else 0,
            {name: field.size for name, field in bundle.fields.all.items() if field.size},
            fitted_notes(bundle.recipe.fitted),
            list(corpus.notes),
            sum(parameter.numel() for parameter in bundle.network.parameters()),
            timing if updates else None,
        )


# ---------------------------------------------------------------- recipes that fit

Columns = Sequence[ColumnFacts]
TEXTS = ("text", "word", "label")


def _are(columns: Columns, *kinds: str | tuple[str, ...]) -> bool:
    """Whether the columns hold these kinds, in this order."""
    allowed = [(kind,) if isinstance(kind, str) else kind for kind in kinds]
    return len(columns) == len(allowed) and all(
        column.kind in names for column, names in zip(columns, allowed, strict=True)
    )


def _phonemes(columns: Columns) -> bool:
    word, output = columns[0], columns[-1]
    return (
        _are(columns, ("word", "label"), TEXTS)
        and output.mean_words >= 2.5
        and output.mean_word_length <= 3.5
        and (word.quantile(0.5) < 40)
    )


def _short(columns: Columns) -> bool:
    """A date, a number or a name in some words, and one word for it, or the other way round."""
    letters = [_are(columns, "text", ("word", "number")), _are(columns, ("word", "number"), "text")]
    digits = [_are(columns, "word", "number"), _are(columns, "number", "word")]
    return any(letters + digits) and all(column.quantile(0.5) < 40 for column in columns)


FITTING: list[tuple[str, Callable[[Columns], bool], str]] = [
    ("grapheme-to-phoneme", _phonemes, "a word, and short symbols between spaces"),
    (
        "transliteration",
        lambda c: _are(c, ("word", "label"), ("word", "label")) and c[0].main_script != c[1].main_script,
        "a word in one script, and one in another",
    ),
    (
        "transliteration",
        lambda c: _are(c, ("word",), ("word",)),
        "a word, and another written letter by letter",
    ),
    ("transliteration", _short, "a short text, and another written letter by letter"),
    ("document-classification", lambda c: _are(c, ("text", "word"), "label"), "a text, and one of a few labels"),
    ("entailment", lambda c: _are(c, "text", "text", "label"), "two texts, and one of a few labels"),
    (
        "summarisation",
        lambda c: _are(c, "text", "text") and c[0].mean_words >= 30 and c[1].mean_words < 0.4 * c[0].mean_words,
        "a long text, and a much shorter one",
    ),
    ("translation", lambda c: _are(c, "text", "text"), "a sentence, and another"),
    ("translation-transformer", lambda c: _are(c, "text", "text"), "a sentence, and another"),
    ("question-answering-passage", lambda c: _are(c, "text", "text", TEXTS), "two texts, and a third"),
    ("image-captioning", lambda c: _are(c, "image", "text"), "an image, and a text"),
    ("text-line-recognition", lambda c: _are(c, "image", TEXTS), "an image, and the text in it"),
    ("visual-question-answering", lambda c: _are(c, "image", "text", TEXTS), "an image, a question, and an answer"),
    ("speech-recognition", lambda c: _are(c, "sound", TEXTS), "a recording, and what is said"),
    ("video-captioning", lambda c: _are(c, "video", "text"), "a video, and a text"),
    ("video-classification", lambda c: _are(c, "video", "label"), "a video, and one of a few labels"),
    ("series-classification", lambda c: _are(c, ("numbers", "list"), "label"), "numbers, and one of a few labels"),
    ("forecasting", lambda c: _are(c, ("numbers", "list"), ("numbers", "list", "number")), "numbers, and more of them"),
    ("set-to-sequence", lambda c: _are(c, "list", TEXTS), "a list, and a text"),
    ("image-autoencoder", lambda c: _are(c, "image"), "images alone"),
    ("autoencoder", lambda c: _are(c, "numbers"), "numbers alone"),
    ("language-model", lambda c: _are(c, TEXTS), "texts alone"),
]
"""(recipe, what columns it fits, why), the most special first."""


KINDS = {"vector": ("numbers", "list"), "series": ("numbers", "list"), "set": (*TEXTS, "numbers", "list")}
"""What a column may seem to hold that an input or output of a kind reads; files seem to be what they are."""


def fitting_recipes(facts: TableFacts) -> list[dict[str, str]]:
    """Shipped recipes for the columns of a table, the best first, each with the reason: first those whose own columns
    the table has, then those for columns of such kinds; where there are none, those for some of the columns."""
    names = [*facts.inputs, *([] if facts.output is None else [facts.output])]
    columns = [facts.column(name) for name in names]
    named = _by_name(columns)
    recipes = {**named, **{name: why for name, why in _by_kind(columns).items() if name not in named}}
    if not recipes:
        recipes = _some_columns(columns) or _columns_of_numbers(columns)
    return [{"recipe": name, "why": why} for name, why in recipes.items()]


def named_columns(columns: Sequence[str]) -> tuple[list[str], str | None]:
    """(inputs, output) of the shipped recipe whose columns a table has, the one that uses most of them; nothing where
    there is none, or where they are all the columns."""
    best: tuple[list[str], str | None] = [], None
    for name in shipped():
        recipe = load_recipe(name)
        wanted = dict(wanted_columns(recipe))
        inputs = [column for part, column in wanted.items() if part in recipe.inputs]
        output = wanted.get(OUTPUT)
        if output not in (None, *inputs) and {*inputs, output} < set(columns) and len(inputs) > len(best[0]):
            best = inputs, output
    return best


def _by_kind(columns: Columns) -> dict[str, str]:
    recipes: dict[str, str] = {}
    for name, fits, why in FITTING:
        if columns and fits(columns):
            recipes.setdefault(name, why)
    return recipes


def _by_name(columns: Columns) -> dict[str, str]:
    """Recipes that want columns of these names, those that use most of them first."""
    kinds = {column.name: column.kind for column in columns}
    recipes: dict[str, list[str]] = {}
    for name in shipped():
        recipe = load_recipe(name)
        parts = {**recipe.inputs, OUTPUT: recipe.output}
        wanted = [(column, parts[part].kind) for part, column in wanted_columns(recipe)]
        enough = len({column for column, _ in wanted}) > 1 or len(columns) == 1
        if enough and all(column in kinds and kinds[column] in _kinds(kind) for column, kind in wanted):
            recipes[name] = [column for column, _ in wanted]
    order = {name: place for place, (name, _, _) in reversed(list(enumerate(FITTING)))}
    best = sorted(recipes, key=lambda name: (-len(set(recipes[name])), order.get(name, len(order))))
    return {name: f"the table has its columns {', '.join(dict.fromkeys(recipes[name]))}" for name in best}


def _kinds(kind: str) -> tuple[str, ...]:
    return KINDS.get(kind, (kind,) if kind in ("image", "sound", "video") else (*TEXTS, "number"))


def _some_columns(columns: Columns) -> dict[str, str]:
    """Without columns that are empty, have one number for each row (an id, a count), or hold labels beside
    what the pair is made of (a speaker, a source)."""
    left_out: tuple[tuple[str, ...], ...] = (("empty",), ("empty", "number"), ("empty", "number", "label"))
    for kinds in left_out:
        kept = [column for column in columns if column.kind not in kinds]
        if len(kept) < len(columns) and (recipes := _by_kind(kept) if len(kept) > 1 else {}):
            names = shlex.quote(quoted([column.name for column in kept], between=","))
            return {name: f"{why} (--columns {names})" for name, why in recipes.items()}
    return {}


def _columns_of_numbers(columns: Columns) -> dict[str, str]:
    """A row of numbers in several columns, and a label."""
    numbers = [column.name for column in columns if column.kind == "number"]
    labels = [column.name for column in columns if column.kind == "label"]
    if len(numbers) < 3 or len(labels) != 1:
        return {}
    changes = f"--set inputs.series.column={shlex.quote(', '.join(numbers))}"
    if labels[0] != "label":
        changes += f" --set output.column={shlex.quote(labels[0])}"
    why = f"numbers in {len(numbers)} columns, and one of a few labels ({changes})"
    return {"series-classification": why}
