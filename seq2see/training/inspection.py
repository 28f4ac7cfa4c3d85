"""What a recipe makes of a table: rows, vocabularies, what is `auto`, how long training takes; and recipes that fit."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seq2see.data.inspection import ColumnFacts, TableFacts
from seq2see.pipeline.dataset import Dataset
from seq2see.recipe import Recipe
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
    ("text-line-recognition", lambda c: _are(c, "image", TEXTS), "an image, and what stands on it"),
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


def fitting_recipes(facts: TableFacts) -> list[dict[str, str]]:
    """Shipped recipes for the columns of a table, the best first, each with the reason."""
    names = [*facts.inputs, *([] if facts.output is None else [facts.output])]
    columns = [facts.column(name) for name in names]
    found = {name: why for name, fits, why in reversed(FITTING) if columns and fits(columns)}
    order = {name: place for place, (name, _, _) in reversed(list(enumerate(FITTING)))}
    return [{"recipe": name, "why": found[name]} for name in sorted(found, key=lambda name: order[name])]
