"""What the record is made of: every shipped recipe made small, and every mechanism of a model by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

UPDATES = 4


@dataclass(frozen=True)
class Case:
    """A recipe, and how it differs from the shipped one.

    without: settings of a small run that have no effect here; table: of another name than the recipe's;
    way: how it is trained, `whole`, in two parts (`resumed`, `fine-tuned`), or twice with two seeds (`ensemble`);
    asked: further predictions by name, as options of `predict`; measured: options of `evaluate`;
    extra: the package without which it cannot run; quick: whether it belongs to the default tests.
    """

    recipe: str
    overrides: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    table: str = ""
    way: str = "whole"
    asked: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)
    extra: str = ""
    quick: bool = False


RUN = (
    "training.threads=1",
    "training.precision=float32",
    "training.learning_rate=0.05",
    "training.batch_rows=12",
    "training.report_every=1",
    "data.dev_share=0.15",
)
"""Every run: one thread, large steps, so that four of them leave something to see."""

WRITER = ("training.metric=perplexity", "search.max_length=6")
"""Outputs that are written: the best model is chosen by a smooth measure, which no rounding turns round."""

TEXT = (
    "encoder.size=8",
    "encoder.embedding.size=8",
    "decoder.size=16",
    "decoder.embedding.size=8",
    *WRITER,
)
SMALL: dict[str, tuple[str, ...]] = {
    "arrow-of-time": (
        "inputs.video.height=16",
        "inputs.video.width=16",
        "inputs.video.frames=5",
        "encoder.motion=[4,6,8]",
        "encoder.size=8",
        "attention.size=8",
        "decoder.size=16",
    ),
    "autoencoder": ("encoder.hidden=[12,8]", "encoder.size=3"),
    "dialog": (*TEXT, "attention.size=8"),
    "dialog-history": (*TEXT, "attention.size=8"),
    "document-classification": (
        "encoder.size=8",
        "encoder.embedding.size=8",
        "encoder.pooling_size=8",
        "attention.size=8",
        "decoder.size=16",
    ),
    "entailment": ("encoder.size=8", "encoder.embedding.size=8", "attention.size=8", "decoder.size=16"),
    "entailment-generation": (*TEXT, "attention.size=8"),
    "forecasting": ("encoder.size=8", "attention.size=8", "decoder.reconstruction.hidden=[12]"),
    "grapheme-to-phoneme": (*TEXT, "attention.size=8"),
    "image-autoencoder": (
        "inputs.image.height=16",
        "inputs.image.width=16",
        "inputs.image.encoder.channels=[4,6,8]",
        "inputs.image.encoder.size=8",
    ),
    "image-captioning": (
        "inputs.image.height=16",
        "inputs.image.width=16",
        "inputs.image.encoder={kind: convolutional, backbone: small, channels: [4, 8], size: 8, dropout: 0.3}",
        "output.min_count=1",
        "attention.size=8",
        "decoder.size=16",
        "decoder.embedding.size=8",
        *WRITER,
        "search.beam=4",
    ),
    "language-model": (
        "decoder.size=16",
        "decoder.embedding.size=8",
        "training.bptt=12",
        "training.lanes=4",
        *WRITER,
        "search.max_length=12",
    ),
    "question-answering": (*TEXT, "attention.size=8"),
    "question-answering-passage": (*TEXT, "attention.size=8"),
    "sequence-autoencoder": TEXT,
    "series-classification": ("encoder.size=8", "attention.size=8", "decoder.size=16"),
    "set-to-sequence": (*TEXT, "attention.size=8"),
    "speech-recognition": (
        "inputs.audio.rate=8000",
        "inputs.audio.mels=12",
        "inputs.audio.augment.frequency_width=2",
        "inputs.audio.augment.time_width=20",
        "encoder.size=8",
        "attention.size=8",
        "attention.filters=4",
        "decoder.size=16",
        "decoder.embedding.size=8",
        *WRITER,
    ),
    "summarisation": (*TEXT, "inputs.document.vocabulary=60"),
    "summarisation-hierarchical": (*TEXT, "inputs.document.vocabulary=60", "attention.size=8"),
    "text-line-recognition": (
        "inputs.image.height=16",
        "encoder.channels=[4,6,8]",
        "encoder.pooled=[both,height,height]",
        "encoder.size=8",
        "encoder.recurrent={cell: lstm, size: 8, layers: 2, dropout: 0.3}",
        "attention.size=8",
        "attention.filters=4",
        "decoder.size=16",
        "decoder.embedding.size=8",
        *WRITER,
    ),
    "translation": (*TEXT, "inputs.source.vocabulary=60", "output.vocabulary=60", "attention.size=8"),
    "translation-transformer": (
        "inputs.source.vocabulary=60",
        "output.vocabulary=60",
        "encoder.size=16",
        "encoder.layers=2",
        "encoder.feedforward=24",
        "encoder.embedding.size=16",
        "decoder.size=16",
        "decoder.layers=2",
        "decoder.feedforward=24",
        "decoder.embedding.size=16",
        *WRITER,
    ),
    "transliteration": TEXT,
    "video-captioning": (
        "inputs.video.height=16",
        "inputs.video.width=16",
        "encoder.motion=[4,6,8]",
        "encoder.size=8",
        "attention.size=8",
        "attention.filters=4",
        "decoder.size=16",
        "decoder.embedding.size=8",
        *WRITER,
    ),
    "video-classification": (
        "inputs.video.height=16",
        "inputs.video.width=16",
        "inputs.video.frames=5",
        "encoder.channels=[4,6,8]",
        "encoder.motion=[4,6,8]",
        "encoder.size=8",
        "attention.size=8",
        "decoder.size=16",
    ),
    "visual-question-answering": (
        "inputs.image.height=16",
        "inputs.image.width=16",
        "inputs.image.encoder.channels=[4,8]",
        "inputs.image.encoder.size=8",
        "inputs.question.encoder.size=8",
        "inputs.question.encoder.embedding.size=8",
        "attention.size=8",
        "decoder.size=16",
        "decoder.readout=16",
    ),
}
"""Sizes at which a recipe runs in a second; all else, dropout too, is as the recipe says."""

EXTRAS = {
    "speech-recognition": "soundfile",
    "arrow-of-time": "av",
    "video-captioning": "av",
    "video-classification": "av",
}

QUICK = {
    "autoencoder",
    "dialog-history",
    "document-classification",
    "entailment",
    "image-captioning",
    "language-model",
    "series-classification",
    "speech-recognition",
    "translation-transformer",
    "transliteration",
    "video-classification",
}

STREAM = ("training.batch_rows",)
OWN: dict[str, dict[str, Any]] = {
    "language-model": {"without": STREAM},
    "transliteration": {"overrides": ("attention.size=8",)},
    "video-classification": {"measured": {"reverse": True}},
}
"""What plain recipes say beside their sizes."""

PART = "encoder.bidirectional=false"
LOOKS = ("attention.size=8",)
SHARP = ("training.learning_rate=0.1", "training.average=1", "training.warmup=0")
"""Still larger steps, so that ways to look differ by more than a rounding."""
SEARCHES: dict[str, dict[str, Any]] = {
    "sample": {"sample": True, "seed": 3, "n_best": 3},
    "sample-shaped": {"sample": True, "seed": 5, "temperature": 0.7, "top_k": 6, "top_p": 0.9},
    "n-best": {"beam": 6, "n_best": 4},
    "length": {"beam": 4, "length_penalty": 0, "min_length": 3, "max_length": 8},
    "coverage": {"beam": 4, "coverage_penalty": 0.5},
    "consensus": {"beam": 5, "consensus": 2},
    "patience": {"beam": 3, "patience": 2},
    "known": {"beam": 2, "avoid_unknown": True},
    "replaced": {"replace_unknown": True},
    "prefix": {"prefix": "\u0916\u0915", "beam": 3},
    "oracle": {"oracle": {0: [0, 0.25, 0.75, 0], 2: [1, 0, 0, 0]}, "beam": 2},
}
"""Ways to search; the oracle's weights are those of words of four letters, as both inputs are."""

# On transliteration; what is not listed is as in the recipe: additive scores of all places, LSTM cells.
ATTENTION: dict[str, tuple[str, ...]] = {
    "dot": ("attention.score=dot",),
    "scaled-dot": ("attention.score=scaled-dot",),
    "cosine": ("attention.score=cosine", "attention.learned_temperature=true"),
    "general": ("attention.score=general",),
    "concat": ("attention.score=concat", *LOOKS),
    "deep": ("attention.score=deep", "attention.layers=2", *LOOKS),
    "location": ("attention.score=location", "attention.positions=12"),
    "coverage": ("attention.score=coverage", "attention.filters=4", "attention.kernel=3", *LOOKS),
    "static": ("attention.score=static", *LOOKS),
    "uniform": ("attention.score=uniform",),
    "none": ("attention.score=none",),
    "local-monotonic": ("attention.scope=local-monotonic", "attention.window=2", *LOOKS),
    "local-monotonic-flat": (
        "attention.scope=local-monotonic",
        "attention.window=1",
        "attention.gaussian=false",
        *LOOKS,
    ),
    "local-predicted": ("attention.scope=local-predicted", "attention.window=2", *LOOKS),
    "local-general": ("attention.scope=local-predicted", "attention.window=2", "attention.score=general"),
    "hard": ("attention.choice=hard", *LOOKS),
    "hard-gumbel": ("attention.choice=hard", "attention.estimator=gumbel", *LOOKS),
    "hard-local": ("attention.choice=hard", "attention.scope=local-monotonic", "attention.window=2", *LOOKS),
    "heads": ("attention.heads=2", *LOOKS),
    "heads-dot": ("attention.heads=2", "attention.score=scaled-dot"),
    "sparsemax": ("attention.normaliser=sparsemax", *LOOKS),
    "entmax15": ("attention.normaliser=entmax15", "attention.temperature=0.5", *LOOKS),
    "query-current": ("attention.query=current", *LOOKS),
    "query-current-unfed": ("attention.query=current", "attention.input_feeding=false", *LOOKS),
    "coverage-current": ("attention.score=coverage", "attention.query=current", "attention.heads=2", *LOOKS),
}
TRANSFORMER_ENCODER = (
    "encoder.kind=transformer",
    "encoder.size=16",
    "encoder.layers=2",
    "encoder.heads=2",
    "encoder.feedforward=24",
)
TRANSFORMER_DECODER = (
    "decoder.kind=transformer",
    "decoder.size=16",
    "decoder.layers=2",
    "decoder.heads=2",
    "decoder.feedforward=24",
)
PARTS: dict[str, tuple[str, ...]] = {
    "transformer-decoder": (*TRANSFORMER_DECODER, *LOOKS),
    "transformer-decoder-rotary": (
        *TRANSFORMER_DECODER,
        "decoder.positions=rotary",
        "decoder.memory=3",
        "attention.scope=local-monotonic",
        *LOOKS,
    ),
    "transformer-encoder": (*TRANSFORMER_ENCODER, *LOOKS),
    "transformer-encoder-learned": (*TRANSFORMER_ENCODER, "encoder.positions=learned", "encoder.longest=60", *LOOKS),
    "cells-gru": ("encoder.cell=gru", "decoder.cell=gru", "encoder.reset=before", "decoder.layers=2", *LOOKS),
    "cells-rnn": ("encoder.cell=rnn", "decoder.cell=rnn", "decoder.activation=logistic", PART, *LOOKS),
    "cells-layers": ("encoder.layers=2", "decoder.layers=2", "decoder.readout=12", *LOOKS),
    "self-attentive": ("encoder.self_attention=additive", "encoder.cell=gru", *LOOKS),
    "one-hot": ("encoder.embedding={kind: one-hot}", "decoder.embedding={kind: one-hot}", *LOOKS),
    "start-copied": ("decoder.start_by=copy", "decoder.output=state", "decoder.every_step=source", *LOOKS),
    "start-learned": ("decoder.start=none", "decoder.tied=true", *LOOKS),
    "copying": ("decoder.copy_from=source", *LOOKS),
    "copying-transformer": ("decoder.copy_from=source", *TRANSFORMER_DECODER, *LOOKS),
    "scheduled-sampling": ("training.scheduled_sampling=0.9", *LOOKS),
    "regularised": ("loss.doubly_stochastic=0.5", "loss.entropy=0.2", "loss.coverage=0.3", *LOOKS),
    "consistency": ("loss.consistency=1.0", *LOOKS),
    "aligned": ("loss.alignment.column=links", *LOOKS),
    "aligned-heads": ("loss.alignment={column: links, weight: 2}", "attention.heads=2", *LOOKS),
    "sgd": (
        "training.optimizer=sgd",
        "training.momentum=0.5",
        "training.schedule=linear",
        "training.clip=0.1",
        *LOOKS,
    ),
    "adamw": (
        "training.optimizer=adamw",
        "training.weight_decay=0.1",
        "training.schedule=inverse-sqrt",
        "training.average=1",
        "training.betas=[0.8,0.95]",
        *LOOKS,
    ),
}


def _variants() -> dict[str, Case]:
    """Cases of other recipes than transliteration, and those that are trained another way."""
    return {
        "searches": Case(
            "transliteration", LOOKS, asked=SEARCHES, measured={"by_length": 2, "positions": True}, quick=True
        ),
        "resumed": Case("transliteration", LOOKS, way="resumed"),
        "fine-tuned": Case("transliteration", LOOKS, way="fine-tuned"),
        "ensemble": Case("transliteration", LOOKS, way="ensemble"),
        "stream-transformer": Case(
            "language-model", (*TRANSFORMER_DECODER, "decoder.embedding.size=16", "decoder.memory=8"), STREAM
        ),
        "language-model-rows": Case(
            "language-model", ("data.stream=false",), without=("training.bptt", "training.lanes")
        ),
        "entailment-concat": Case(
            "entailment",
            ("decoder.kind=label", "decoder.join=concat", "attention.score=none", "loss.class_weights=balanced"),
            without=("attention.size",),
        ),
        "entailment-label": Case("entailment", ("decoder.kind=label",)),
        "entailment-transformer": Case(
            "entailment", ("decoder.kind=transformer", "decoder.layers=2", "decoder.feedforward=24")
        ),
        "documents-transformer": Case(
            "document-classification", ("encoder.levels=transformer", "encoder.heads=2", "encoder.feedforward=24")
        ),
        "documents-mean": Case(
            "document-classification",
            ("encoder.words=mean", "encoder.pooling=attention", "attention=none", "decoder.start=document"),
        ),
        "summaries-joint": Case(
            "summarisation-hierarchical", ("attention={over: document.words, score: additive, size: 8}",)
        ),
        "series-transformer": Case(
            "series-classification", (*TRANSFORMER_ENCODER, "encoder.stack=2"), without=("encoder.size",)
        ),
        "series-text": Case(
            "series-classification",
            ("output={kind: text, column: label}", "decoder.kind=recurrent", "evaluation={}", *TEXT[2:]),
            without=("decoder.size",),
        ),
        "sets-transformer": Case("set-to-sequence", TRANSFORMER_ENCODER),
        "noise-gaussian": Case("autoencoder", ("inputs.x.noise={kind: gaussian, amount: 0.5}",)),
        "noise-masking": Case("autoencoder", ("inputs.x.noise={kind: masking, amount: 0.3}", "encoder.code=logistic")),
        "pictures-dense": Case(
            "image-autoencoder",
            (
                "inputs.image.encoder={kind: dense, hidden: [12], size: 6}",
                "decoder.reconstruction.pixels=dense",
                "inputs.image.augment.mask=0.3",
            ),
        ),
        "captions-vector": Case(
            "image-captioning",
            ("attention=none", "inputs.image.encoder.places=vector", "decoder.every_step=image", "loss={}"),
        ),
        "captions-window": Case("image-captioning", ("attention.scope=local-predicted", "attention.window=1")),
        "captions-hard": Case("image-captioning", ("attention.choice=hard",)),
        "captions-patches": Case(
            "image-captioning",
            ("inputs.image.encoder={kind: transformer, size: 16, layers: 1, heads: 2, feedforward: 24, patch: 4}",),
        ),
        "answers-written": Case(
            "visual-question-answering",
            ("output.kind=text", "decoder.embedding.size=8", "evaluation.metrics=[exact]", *WRITER),
        ),
        "lines-grid": Case("text-line-recognition", ("encoder.places=grid", "attention.kernel=3"), quick=True),
        "lines-from-the-right": Case("text-line-recognition", table="lines from the right"),
        "speech-without-ctc": Case("speech-recognition", ("loss.ctc=0", "search.ctc=0"), extra="soundfile"),
        "speech-transformer": Case("speech-recognition", TRANSFORMER_ENCODER, extra="soundfile"),
        "video-regions": Case(
            "video-classification", ("encoder.regions=true", "attention.over=video.regions"), extra="av"
        ),
        "video-transformer": Case(
            "video-captioning",
            ("encoder.over_time=transformer", "encoder.size=16", "encoder.heads=2", "encoder.feedforward=24"),
            extra="av",
        ),
    }


def cases() -> dict[str, Case]:
    """{name: case}, all of them with the settings of a small run."""
    found = {name: Case(name, extra=EXTRAS.get(name, ""), quick=name in QUICK, **OWN.get(name, {})) for name in SMALL}
    found |= {f"attention-{name}": Case("transliteration", (*changes, *SHARP)) for name, changes in ATTENTION.items()}
    found |= {name: Case("transliteration", changes) for name, changes in PARTS.items()}
    return found | _variants()


def overrides(case: Case) -> list[str]:
    """All that a case changes in its recipe; what it says itself replaces what is said of all."""
    anew = {*case.without, *(one.partition("=")[0] for one in case.overrides)}
    common = [one for one in (*RUN, *SMALL[case.recipe]) if not _within(one.partition("=")[0], anew)]
    return [*common, *case.overrides]


def _within(key: str, groups: set[str]) -> bool:
    """Whether a key is one of these, or in one of these groups."""
    return any(key == group or key.startswith(f"{group}.") for group in groups)
