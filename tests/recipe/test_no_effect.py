"""A setting that would do nothing is refused, with the setting that makes it so."""

from __future__ import annotations

import pytest

from tests.recipe.refusing import LABEL, ONE, TWO, Refused, find_problems

NO_EFFECT = [
    Refused(
        {**ONE, "attention": {"score": "none", "size": 9}}, {"attention.size": "other-kind"}, "attention.score none"
    ),
    Refused(
        {**ONE, "attention": {"score": "general", "size": 9}},
        {"attention.size": "other-kind"},
        "attention.score additive concat deep coverage static attention.scope",
    ),
    Refused({**ONE, "attention": {"options": {"size": 9}}}, {"attention.options.size": "other-kind"}, "--plugin"),
    Refused(
        {**ONE, "attention": {"score": "none", "options": {"a": 1}}},
        {"attention.options.a": "other-kind"},
        "attention.score none",
    ),
    Refused(
        {**ONE, "attention": {"learned_temperature": True}},
        {"attention.learned_temperature": "other-kind"},
        "attention.score cosine",
    ),
    Refused(
        {**ONE, "attention": {"input_feeding": False}}, {"attention.input_feeding": "attention-settings"}, "previous"
    ),
    Refused({**LABEL, "attention": {"query": "current"}}, {"attention.query": "attention-settings"}, "label"),
    Refused({"encoder": {"size": 9}}, {"encoder.size": "unused-encoder"}, "inputs"),
    Refused(
        {**ONE, "encoder": {"cell": "lstm", "reset": "before"}}, {"encoder.reset": "other-kind"}, "encoder.cell gru"
    ),
    Refused(
        {**ONE, "decoder": {"cell": "rnn", "reset": "before"}}, {"decoder.reset": "other-kind"}, "decoder.cell gru"
    ),
    Refused(
        {**ONE, "decoder": {"embedding": {"tuned": False}}},
        {"decoder.embedding.tuned": "other-kind"},
        "decoder.embedding.kind pretrained",
    ),
    Refused(
        {**ONE, "decoder": {"embedding": {"kind": "one-hot", "size": 3}}},
        {"decoder.embedding.size": "other-kind"},
        "decoder.embedding.kind learned pretrained",
    ),
    Refused({**ONE, "decoder": {"start_by": "copy"}}, {"decoder.start_by": "no-effect"}, "decoder.start none"),
    Refused({**TWO, "decoder": {"join": "compare"}}, {"decoder.join": "no-effect"}, "summaries"),
    Refused({**ONE, "decoder": {"tied": True, "readout": 9}}, {"decoder.readout": "no-effect"}, "tied"),
    Refused({**LABEL, "decoder": {"cell": "lstm"}}, {"decoder.cell": "other-kind"}, "decoder.kind recurrent"),
    Refused(
        {**LABEL, "decoder": {"every_step": "source"}},
        {"decoder.every_step": "other-kind"},
        "decoder.kind recurrent transformer",
    ),
    Refused(
        {**LABEL, "attention": "none", "decoder": {"output": "state"}},
        {"decoder.output": "no-effect"},
        "attention label",
    ),
    Refused({**LABEL, "decoder": {"start_by": "copy"}}, {"decoder.start_by": "no-effect"}, "decoder.start none"),
    Refused({**LABEL, "search": {"beam": 4}}, {"search.beam": "output-settings"}, "label"),
    Refused(
        {**LABEL, "training": {"scheduled_sampling": 0.5}}, {"training.scheduled_sampling": "output-settings"}, "label"
    ),
    Refused({**ONE, "loss": {"class_weights": "balanced"}}, {"loss.class_weights": "output-settings"}, "label"),
    Refused(
        {**ONE, "attention": "none", "search": {"replace_unknown": True}},
        {"search.replace_unknown": "unknown-words"},
        "attention",
    ),
    Refused(
        {**ONE, "attention": {"score": "uniform", "choice": "hard", "estimator": "gumbel"}},
        {"attention.estimator": "attention-settings"},
        "uniform",
    ),
    Refused(
        {**ONE, "attention": {"score": "uniform", "temperature": 2}},
        {"attention.temperature": "attention-settings"},
        "uniform",
    ),
    Refused(
        {**ONE, "attention": {"choice": "hard", "gumbel_temperature": 2}},
        {"attention.gumbel_temperature": "other-kind"},
        "attention.estimator gumbel",
    ),
    Refused({**ONE, "attention": "none", "loss": {"entropy": 0.1}}, {"loss.entropy": "look-losses"}, "attention"),
    Refused({**ONE, "attention": "uniform", "loss": {"entropy": 0.1}}, {"loss.entropy": "look-losses"}, "uniform"),
    Refused({**ONE, "attention": "static", "loss": {"coverage": 0.1}}, {"loss.coverage": "look-losses"}, "static"),
    Refused({**LABEL, "loss": {"coverage": 0.1}}, {"loss.coverage": "look-losses"}, "label"),
    Refused({**ONE, "loss": {"exploration": 0.1}}, {"loss.exploration": "look-losses"}, "score"),
    Refused({**ONE, "loss": {"consistency": 1}}, {"loss.consistency": "consistency-loss"}, "dropout"),
    Refused({**ONE, "loss": {"reward": {"samples": 3}}}, {"loss.reward.samples": "reward-settings"}, "none"),
    *(
        Refused(
            {**ONE, **groups, "loss": {**groups.get("loss", {}), "reward": {"metric": "edit", "last": 1}}},
            dict.fromkeys(paths, "reward-settings"),
            "loss.reward.last 1",
        )
        for groups, paths in (
            ({"loss": {"label_smoothing": 0.1}}, ["loss.label_smoothing"]),
            (
                {"decoder": {"dropout": 0.1}, "loss": {"consistency": 1}},
                ["decoder.dropout", "loss.consistency"],
            ),
            ({"encoder": {"embedding": {"symbol_dropout": 0.1}}}, ["encoder.embedding.symbol_dropout"]),
            ({"loss": {"ctc": 0.3, "ctc_alignment": 0.1}}, ["loss.ctc_alignment"]),
            ({"loss": {"distillation": {"teachers": ["a"]}}}, ["loss.distillation.teachers"]),
            ({"loss": {"alignment": {"column": "links"}}}, ["loss.alignment.weight"]),
            ({"training": {"scheduled_sampling": 0.3}}, ["training.scheduled_sampling"]),
        )
    ),
    Refused(
        {**ONE, "loss": {"distillation": {"weight": 0.2, "temperature": 3}}},
        {f"loss.distillation.{key}": "distillation-settings" for key in ("weight", "temperature")},
        "teachers",
    ),
    Refused(
        {**ONE, "loss": {"distillation": {"teachers": ["a"], "weight": 0}}},
        {"loss.distillation.teachers": "distillation-settings"},
        "loss.distillation.weight 0",
    ),
    Refused(
        {**ONE, "loss": {"distillation": {"teachers": ["a"], "weight": 1}, "label_smoothing": 0.1}},
        {"loss.label_smoothing": "distillation-settings"},
        "loss.distillation.weight 1",
    ),
    Refused({"training": {"noise": {"mask": 0.1}}}, {"training.noise.mask": "noise-settings"}, "text"),
    Refused(
        {"inputs": {"x": {"kind": "set"}}, "encoder": {"kind": "deep-sets"}, "training": {"noise": {"swap": 0.1}}},
        {"training.noise.swap": "noise-settings"},
        "set",
    ),
    Refused({"data": {"stream": True}, "loss": {"consistency": 1}}, {"loss.consistency": "consistency-loss"}, "stream"),
    Refused({**ONE, "encoder": {"variational": True}}, {"encoder.variational": "no-effect"}, "encoder.dropout"),
    Refused({**ONE, "decoder": {"variational": True}}, {"decoder.variational": "no-effect"}, "decoder.dropout"),
    Refused(
        {**ONE, "decoder": {"kind": "transformer", "weight_drop": 0.2}},
        {"decoder.weight_drop": "other-kind"},
        "recurrent",
    ),
    Refused(
        {**ONE, "decoder": {"weight_drop": 0.2}, "loss": {"consistency": 1}},
        {"loss.consistency": "consistency-loss"},
        "dropout",
    ),
    Refused({**ONE, "search": {"consensus": True}}, {"search.consensus": "output-settings"}, "search.beam 1"),
    Refused(
        {**ONE, "search": {"language_model_weight": 0.5, "language_model_use": "rescore"}},
        {f"search.language_model_{key}": "language-model-settings" for key in ("weight", "use")},
        "search.language_model",
    ),
    Refused(
        {**ONE, "search": {"language_model": "lm", "language_model_use": "rescore"}},
        {"search.language_model_use": "language-model-settings"},
        "search.beam 1",
    ),
    Refused(
        {
            **ONE,
            "search": {
                "beam": 4,
                "language_model": "lm",
                "language_model_use": "rescore",
                "language_model_internal": 0.2,
            },
        },
        {"search.language_model_internal": "language-model-settings"},
        "rescore",
    ),
    Refused({**LABEL, "search": {"language_model": "lm"}}, {"search.language_model": "output-settings"}, "label"),
    Refused({"training": {"film": 5}}, {"training.film": "training-settings"}, "language input"),
    Refused({**ONE, "training": {"epochs": 0, "warmup": 0.5}}, {"training.warmup": "training-settings"}, "end"),
    Refused({**ONE, "training": {"bptt": 9}}, {"training.bptt": "stream-settings"}, "data.stream false"),
    Refused({**ONE, "training": {"momentum": 0.9}}, {"training.momentum": "training-settings"}, "sgd"),
    Refused(
        {**ONE, "training": {"optimizer": "sgd", "betas": [0.5, 0.9]}},
        {"training.betas": "training-settings"},
        "sgd momentum",
    ),
    Refused({**ONE, "output": {"share": "source", "min_count": 2}}, {"output.min_count": "shared-settings"}, "source"),
    Refused({"inputs": {"a": {}, "b": {"share": "a", "encoder": {}}}}, {"inputs.b.encoder": "shared-settings"}, "a"),
    Refused(
        {**ONE, "training": {"schedule": "constant", "floor": 0.5}},
        {"training.floor": "training-settings"},
        "schedule constant",
    ),
    Refused(
        {"data": {"stream": True}, "training": {"batch_rows": 9}},
        {"training.batch_rows": "stream-settings"},
        "training.lanes training.bptt",
    ),
    Refused(
        {"data": {"stream": True}, "training": {"scheduled_sampling": 0.5}},
        {"training.scheduled_sampling": "stream-settings"},
        "stream",
    ),
    Refused(
        {"data": {"stream": True}, "output": {"max_length": 9}}, {"output.max_length": "stream-settings"}, "stream"
    ),
    Refused(
        {"data": {"stream": True}, "training": {"dev_rows": 9}}, {"training.dev_rows": "stream-settings"}, "stream"
    ),
    Refused({"data": {"stream": True, "dev_most": 9}}, {"data.dev_most": "stream-settings"}, "stream"),
    Refused({"data": {"stream": True, "shuffle_rows": 9}}, {"data.shuffle_rows": "stream-settings"}, "contiguous"),
    Refused(
        {**ONE, "training": {"epochs": 0, "scheduled_sampling": 0.5}},
        {"training.scheduled_sampling": "training-settings"},
        "end",
    ),
]


@pytest.mark.parametrize("case", NO_EFFECT, ids=str)
def test_refused_settings_without_effect(case: Refused) -> None:
    case.check()
    assert all(problem.no_effect for problem in find_problems(case.recipe))
