"""Every setting that would do nothing is refused, with its key and the reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recipe.refusing import LABEL, ONE, TWO, refused

INERT: list[tuple[dict[str, Any], str, str]] = [
    ({**ONE, "attention": {"score": "none", "size": 9}}, "attention.size", "attention.score is none"),
    (
        {**ONE, "attention": {"score": "general", "size": 9}},
        "attention.size",
        "only attention.score additive, concat, deep, coverage, static, or attention.scope",
    ),
    (
        {**ONE, "attention": {"options": {"size": 9}}},
        "attention.options.size",
        "only a part that --plugin brings has such a setting",
    ),
    ({**ONE, "attention": {"score": "none", "options": {"a": 1}}}, "attention.options.a", "attention.score is none"),
    (
        {**ONE, "attention": {"learned_temperature": True}},
        "attention.learned_temperature",
        "only attention.score cosine has such a setting",
    ),
    ({**ONE, "attention": {"input_feeding": False}}, "attention.input_feeding", "with query previous the context"),
    ({**LABEL, "attention": {"query": "current"}}, "attention.query", "a label is decoded in one step"),
    ({"encoder": {"size": 9}}, "encoder.size", "there are no inputs"),
    (
        {**ONE, "encoder": {"cell": "lstm", "reset": "before"}},
        "encoder.reset",
        "only encoder.cell gru has such a setting",
    ),
    (
        {**ONE, "decoder": {"cell": "rnn", "reset": "before"}},
        "decoder.reset",
        "only decoder.cell gru has such a setting",
    ),
    (
        {**ONE, "decoder": {"embedding": {"tuned": False}}},
        "decoder.embedding.tuned",
        "only decoder.embedding.kind pretrained",
    ),
    (
        {**ONE, "decoder": {"embedding": {"kind": "one-hot", "size": 3}}},
        "decoder.embedding.size",
        "only decoder.embedding.kind learned, pretrained",
    ),
    ({**ONE, "decoder": {"start_by": "copy"}}, "decoder.start_by", "decoder.start is none"),
    ({**TWO, "decoder": {"join": "compare"}}, "decoder.join", "no summaries are joined"),
    ({**ONE, "decoder": {"tied": True, "readout": 9}}, "decoder.readout", "tied: the readout has the size of the"),
    ({**LABEL, "decoder": {"cell": "lstm"}}, "decoder.cell", "only decoder.kind recurrent has"),
    ({**LABEL, "decoder": {"every_step": "source"}}, "decoder.every_step", "only decoder.kind recurrent, transformer"),
    (
        {**LABEL, "attention": "none", "decoder": {"output": "state"}},
        "decoder.output",
        "without attention a label decoder",
    ),
    ({**LABEL, "decoder": {"start_by": "copy"}}, "decoder.start_by", "decoder.start is none"),
    ({**LABEL, "search": {"beam": 4}}, "search.beam", "a label is not searched for"),
    (
        {**LABEL, "training": {"scheduled_sampling": 0.5}},
        "training.scheduled_sampling",
        "a label is decoded in one step",
    ),
    ({**ONE, "loss": {"class_weights": "balanced"}}, "loss.class_weights", "only label outputs have classes"),
    (
        {**ONE, "attention": "none", "search": {"replace_unknown": True}},
        "search.replace_unknown",
        "without attention no",
    ),
    ({**ONE, "training": {"bptt": 9}}, "training.bptt", "data.stream is false"),
    ({**ONE, "training": {"momentum": 0.9}}, "training.momentum", "only sgd has momentum"),
    ({**ONE, "training": {"optimizer": "sgd", "betas": [0.5, 0.9]}}, "training.betas", "sgd has momentum instead"),
    ({**ONE, "output": {"share": "source", "min_count": 2}}, "output.min_count", "the vocabulary of source is shared"),
    ({"inputs": {"a": {}, "b": {"share": "a", "encoder": {}}}}, "inputs.b.encoder", "the encoder of a is shared"),
    ({**ONE, "training": {"schedule": "constant", "floor": 0.5}}, "training.floor", "with schedule constant the rate"),
    ({"data": {"stream": True}, "training": {"batch_rows": 9}}, "training.batch_rows", "a stream is read in"),
    (
        {"data": {"stream": True}, "training": {"scheduled_sampling": 0.5}},
        "training.scheduled_sampling",
        "a stream is read as it stands",
    ),
    (
        {"data": {"stream": True}, "output": {"max_length": 9}},
        "output.max_length",
        "a stream is one text, however long",
    ),
    ({"data": {"stream": True}, "training": {"dev_rows": 9}}, "training.dev_rows", "a stream is measured as one text"),
    ({"data": {"stream": True, "dev_most": 9}}, "data.dev_most", "the end of a stream is set aside, not rows"),
    (
        {**ONE, "training": {"epochs": 0, "scheduled_sampling": 0.5}},
        "training.scheduled_sampling",
        "a run without an end has no share of it to grow over",
    ),
]


@pytest.mark.parametrize(("raw", "path", "reason"), INERT, ids=[f"{path}: {reason}"[:60] for _, path, reason in INERT])
def test_a_setting_without_effect_is_refused_with_the_reason(raw: dict[str, Any], path: str, reason: str) -> None:
    said = refused(raw)
    assert said.startswith(f"recipe: {path}: has no effect here: {reason}")
    assert "\n" not in said
