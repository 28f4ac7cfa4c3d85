"""Small trained models to try at once, built on the spot from data that we make or that come with a package.

`MODELS` is the one list of them: `seq2see models` prints it, `seq2see get` builds an entry (`building.py`), `make zoo`
builds and measures all. A new model is a new entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ZooModel:
    """How a model is made. The same entry gives the same data and, on the same machine, the same weights.

    sample: name of its data (`seq2see sample`); about: what it does, in a line; metric: its figure; updates: of the
    training; example: the arguments of `predict` that show it; settings: changes of the recipe; columns: of the table,
    where they differ from those of the recipe; options: of the sample; extras: those of seq2see that it needs; license:
    of the model, which follows that of its data.
    """

    recipe: str
    sample: str
    about: str
    metric: str
    updates: int
    example: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    extras: tuple[str, ...] = ()
    license: str = "apache-2.0"
    seed: int = 1

    @property
    def overrides(self) -> tuple[str, ...]:
        """Changes of the recipe: what all models have in common, then the entry's own."""
        reports = max(self.updates // REPORTS, 1)
        return (*COMMON, f"training.report_every={reports}", *self.settings)


REPORTS = 5
"""Measurements on dev during a training, which select the weights."""
COMMON = (
    "training.minutes=0",
    "training.epochs=0",
    "training.patience=0",
    "training.average=1",
    "training.threads=1",
    "training.dev_rows=100",
)
"""The number of updates alone ends a training. One thread: products this small gain little from two, and on a busy
machine two threads wait for each other."""
QUICK = (
    "encoder.size=128",
    "decoder.size=256",
    "encoder.dropout=0.1",
    "decoder.dropout=0.1",
    "encoder.embedding.size=64",
    "decoder.embedding.size=64",
    "loss.label_smoothing=0",
    "training.learning_rate=0.003",
    "training.batch_tokens=1000",
    "training.ema=0.99",
)
"""A smaller recurrent model that learns faster: in two minutes it gets further than a recipe's own, which needs an
hour."""
TINY = (
    "encoder.size=64",
    "decoder.size=128",
    "encoder.dropout=0.1",
    "decoder.dropout=0.1",
    "encoder.embedding.size=64",
    "encoder.embedding.dropout=0",
    "decoder.embedding.size=64",
    "decoder.embedding.dropout=0",
    "attention.size=64",
    "loss.label_smoothing=0",
    "training.learning_rate=0.004",
    "training.batch_tokens=1000",
    "training.ema=0.98",
)
SMALL_TRANSFORMER = (
    "encoder.size=64",
    "encoder.layers=2",
    "encoder.feedforward=128",
    "encoder.dropout=0.1",
    "encoder.embedding.size=64",
    "decoder.size=64",
    "decoder.layers=2",
    "decoder.feedforward=128",
    "decoder.dropout=0.1",
    "decoder.embedding.size=64",
    "loss.label_smoothing=0",
    "training.learning_rate=0.003",
    "training.batch_tokens=1000",
    "training.ema=0.98",
)
WORDS = ("inputs.source.tokens=word", "output.tokens=word")

MODELS: Mapping[str, ZooModel] = {
    "writer": ZooModel(
        "language-model",
        "sentences",
        "writes sentences, or continues one",
        "perplexity",
        400,
        ("--prefix", "a tired old", "--seed", "1"),
        (
            "data.stream=false",
            "output.tokens=word",
            "decoder.size=128",
            "decoder.dropout=0.1",
            "training.batch_tokens=1000",
            "search.max_length=40",
        ),
    ),
    "german": ZooModel(
        "translation",
        "german",
        "a simple English sentence -> German",
        "exact",
        600,
        ("a tired old man is sleeping under a tree at noon",),
        (*TINY, *WORDS, "evaluation.metrics=[exact,bleu,chrf]"),
    ),
    "german-transformer": ZooModel(
        "translation-transformer",
        "german",
        "a simple English sentence -> German, by self-attention",
        "exact",
        700,
        ("a tired old man is sleeping under a tree at noon",),
        (*SMALL_TRANSFORMER, *WORDS, "evaluation.metrics=[exact,bleu,chrf]"),
    ),
    "dates": ZooModel(
        "transliteration",
        "dates",
        "a date as people write it -> ISO 8601",
        "exact",
        700,
        ("the 3rd of march 2021",),
        (*TINY, "decoder.start_by=dense"),
        ("written", "iso"),
    ),
    "numbers": ZooModel(
        "transliteration",
        "numbers",
        "a number below a million in words -> digits",
        "exact",
        900,
        ("forty-five thousand three hundred and twelve",),
        (*TINY, "inputs.source.max_length=100"),
        ("words", "digits"),
    ),
    "sums": ZooModel(
        "transliteration",
        "sums",
        "a sum or difference of two numbers below 100 -> its result",
        "exact",
        1500,
        ("34+58",),
        (*TINY, "encoder.dropout=0", "decoder.dropout=0"),
        ("sum", "result"),
    ),
    "pronunciation": ZooModel(
        "grapheme-to-phoneme",
        "pronunciations",
        "an English word -> its phonemes",
        "exact",
        1200,
        ("attention",),
        QUICK,
        extras=("demo",),
        license="bsd-2-clause",
    ),
    "entailment": ZooModel(
        "entailment",
        "pairs",
        "does one sentence follow from another?",
        "accuracy",
        900,
        ("a tall boy is running in the park", "a person is moving"),
        ("encoder.size=64", "encoder.dropout=0.1", "encoder.embedding.dropout=0.1", "decoder.dropout=0.1"),
    ),
    "hypotheses": ZooModel(
        "entailment-generation",
        "pairs",
        "a sentence -> another one that it may or may not imply",
        "perplexity",
        350,
        ("a tall boy is running in the park",),
        TINY,
    ),
    "titles": ZooModel(
        "summarisation",
        "reports",
        "a report of a match -> its title",
        "rougeL",
        500,
        settings=(*(setting for setting in TINY if not setting.startswith("attention.")), "training.batch_tokens=2000"),
    ),
    "reviews": ZooModel(
        "document-classification",
        "reviews",
        "is a review positive or negative?",
        "accuracy",
        400,
        ("We came on Monday. The soup was not bad. The bed was lovely.",),
        ("encoder.size=32", "encoder.dropout=0.1", "encoder.embedding.dropout=0.1", "training.batch_tokens=1000"),
    ),
    "waiter": ZooModel(
        "dialog",
        "orders",
        "what a guest says in a café -> what the waiter replies",
        "bleu_lc",
        250,
        ("good evening, could you bring a coffee and a salad to table 4?",),
        TINY,
        ("last", "response"),
    ),
    "conversation": ZooModel(
        "dialog-history",
        "orders",
        "a conversation in a café so far -> what the waiter replies",
        "bleu_lc",
        400,
        settings=TINY,
    ),
    "people": ZooModel(
        "question-answering",
        "people",
        "a question about invented people -> the answer, memorised",
        "em",
        500,
        ("in which town is the house of pabanu ?",),
        TINY,
    ),
    "captions": ZooModel(
        "image-captioning",
        "shapes",
        "a picture of two shapes -> its description",
        "exact",
        600,
        ("examples/0.png",),
        (
            "inputs.image.height=48",
            "inputs.image.width=48",
            "inputs.image.encoder.backbone=small",
            "inputs.image.encoder.channels=[16,32,64]",
            "inputs.image.encoder.size=96",
            "inputs.image.encoder.dropout=0",
            "decoder.size=128",
            "decoder.dropout=0.1",
            "decoder.embedding.size=64",
            "decoder.embedding.dropout=0",
            "attention.size=64",
            "loss.label_smoothing=0",
            "training.learning_rate=0.003",
            "training.batch_tokens=400",
            "training.ema=0.98",
            "search.beam=1",
            "search.consensus=0",
            "evaluation.metrics=[exact,bleu4_plain]",
        ),
    ),
    "picture-questions": ZooModel(
        "visual-question-answering",
        "easy-vqa",
        "a picture of a coloured shape + a question about it -> the answer",
        "accuracy",
        500,
        ("examples/0.png", "what shape is in the image?"),
        ("inputs.image.height=32", "inputs.image.width=32", "training.ema=0.98"),
        extras=("samples",),
        license="mit",
    ),
    "motions": ZooModel(
        "series-classification",
        "motions",
        "what happened to an accelerometer: dropped, shaken, tapped or turned?",
        "accuracy",
        250,
    ),
    "tides": ZooModel(
        "forecasting",
        "tides",
        "three days of water level, wind and pressure -> the level of the next twelve hours",
        "mae",
        500,
    ),
    "sorting": ZooModel(
        "set-to-sequence",
        "sets",
        "puts numbers below 50 in order",
        "exact",
        1000,
        ("31 4 15 9 26",),
        ("encoder.size=128", "decoder.size=192", "training.learning_rate=0.003", "training.ema=0.98"),
    ),
    "sentence-codes": ZooModel(
        "sequence-autoencoder",
        "sentences",
        "a sentence -> one vector -> the same sentence",
        "token_accuracy",
        800,
        ("a tired old man is sleeping under a tree at noon",),
        (
            "encoder.size=128",
            "encoder.embedding.size=64",
            "decoder.size=256",
            "decoder.embedding.size=64",
            "training.learning_rate=0.003",
            "training.ema=0.98",
        ),
    ),
    "digits": ZooModel(
        "autoencoder",
        "digits",
        "a handwritten digit (64 numbers) -> 16 numbers -> the same digit",
        "mse",
        900,
        extras=("samples",),
        license="cc-by-4.0",
    ),
    "digit-pictures": ZooModel(
        "image-autoencoder",
        "digits",
        "a picture of a handwritten digit -> 16 numbers -> the same picture",
        "mse",
        500,
        ("examples/0.png", "--pictures", "pictures"),
        (
            "inputs.image.height=16",
            "inputs.image.width=16",
            "inputs.image.colour=grey",
            "inputs.image.encoder.channels=[16,32]",
            "inputs.image.encoder.size=16",
            "training.learning_rate=0.004",
        ),
        extras=("samples",),
        license="cc-by-4.0",
    ),
}
