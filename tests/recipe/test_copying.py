"""Recipes that copy words or learn from alignments: both point from symbols of the output to places of an input."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.recipe import load_recipe
from seq2see.recipe.load import notes
from tests.recipe.refusing import ONE, Refused, mentions

COPIED: dict[str, Any] = {"decoder": {"copy_from": "source"}}
NESTED: dict[str, Any] = {"encoder": {"kind": "hierarchical"}, **COPIED}
COPYING: dict[str, Any] = {**ONE, **COPIED}
LINKED: dict[str, Any] = {**ONE, "loss": {"alignment": {"column": "links"}}}
LABEL: dict[str, Any] = {"output": {"kind": "label"}}
TWO: dict[str, Any] = {"inputs": {"source": {}, "hint": {}}, "decoder": {"start": "hint", "copy_from": "hint"}}


REFUSED = [
    Refused(
        {"inputs": {"photo": {"kind": "image"}}, "loss": LINKED["loss"]},
        {"loss.alignment.column": "alignment"},
        "text photo sound video",
    ),
    Refused(
        {**ONE, "loss": {"alignment": {"column": "links", "rate": 25}}},
        {"loss.alignment.rate": "pointing-settings"},
        "symbols times",
    ),
    Refused({**COPYING, "loss": {"ctc": 0.3}, "search": {"ctc": 0.3}}, {"search.ctc": "ctc"}, "copied 0"),
    Refused({**COPYING, "attention": "none"}, {"decoder.copy_from": "pointing-settings"}, "attention"),
    Refused({**COPYING, **LABEL}, {"decoder.copy_from": "other-kind"}, "decoder.kind recurrent transformer"),
    Refused(
        {"inputs": {"source": {"kind": "texts"}}, "attention": {"over": "source"}, **NESTED},
        {"decoder.copy_from": "pointing-settings"},
        "attention.over source.words",
    ),
    Refused({**COPYING, "decoder": {"copy_from": "sauce"}}, {"decoder.copy_from": "input-names"}, "sauce source"),
    Refused({**TWO, "attention": {"over": "source"}}, {"decoder.copy_from": "copying"}, "hint source none"),
    Refused(
        {**COPYING, "output": {"tokens": "character"}},
        {"decoder.copy_from": "copying"},
        "word source character",
    ),
    Refused(
        {**COPYING, "inputs": {"source": {"tokens": "bpe"}}, "output": {"tokens": "bpe"}},
        {"decoder.copy_from": "copying"},
        "bpe output.share=source",
    ),
    Refused({**LINKED, "attention": "none"}, {"loss.alignment.column": "pointing-settings"}, "attention"),
    Refused({**LINKED, **LABEL}, {"loss.alignment.column": "pointing-settings"}, "label"),
    Refused(
        {"loss": {"alignment": {"weight": 2.0}}},
        {"loss.alignment.weight": "pointing-settings"},
        "loss.alignment.column",
    ),
    Refused(
        {**LINKED, "output": {"tokens": "bpe"}}, {"loss.alignment.column": "alignment"}, "bpe word symbol character"
    ),
    Refused({**LINKED, "output": {"column": "links"}}, {"loss.alignment.column": "alignment"}, "links output"),
    Refused(
        {**LINKED, "attention": {"normaliser": "sparsemax"}},
        {"loss.alignment.weight": "alignment"},
        "sparsemax softmax",
    ),
    Refused(
        {**LINKED, "attention": {"scope": "local-monotonic"}},
        {"loss.alignment.weight": "alignment"},
        "local-monotonic global",
    ),
    Refused(
        {**LINKED, "attention": {"scope": "local-predicted"}},
        {"loss.alignment.weight": "alignment"},
        "local-predicted zero 0",
    ),
    Refused({**LINKED, "attention": {"score": "uniform"}}, {"loss.alignment.weight": "alignment"}, "1 uniform 0"),
    Refused({**COPYING, "evaluation": {"metrics": ["aer"]}}, {"evaluation.metrics": "metrics"}, "aer"),
]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused_recipes_that_copy_or_align(case: Refused) -> None:
    case.check()


def test_switching_attention_off_drops_what_points_at_places() -> None:
    recipe = load_recipe({**COPYING, "loss": LINKED["loss"]}, overrides=["attention=none"])
    assert (recipe.copied_from, recipe.loss.alignment.column) == (None, None)


def test_accepted_recipes_that_copy_or_align() -> None:
    assert load_recipe(COPYING).copied_from == "source"
    assert load_recipe(COPYING, overrides=["decoder.copy_from=none"]).copied_from is None
    assert load_recipe({**LINKED, "evaluation": {"metrics": ["aer"]}}).evaluation.metrics == ["aer"]
    timed = {"inputs": {"audio": {"kind": "sound"}}, "loss": {"alignment": {"column": "times", "rate": 25}}}
    assert load_recipe({**timed, "evaluation": {"metrics": ["pointing"]}}).loss.alignment.rate == 25
    sparse = {**LINKED, "attention": {"normaliser": "sparsemax"}}
    assert load_recipe(sparse, overrides=["loss.alignment.weight=0"]).loss.alignment.weight == 0
    assert load_recipe(sparse, overrides=["loss.alignment.optional=true"]).loss.alignment.optional
    assert load_recipe("video-captioning", overrides=["attention.score=uniform"]).attention.constant
    of_frames = ["encoder.regions=true", "attention.over=video.regions", "loss.ctc=0", "search.ctc=0"]
    regions = load_recipe("video-captioning", overrides=of_frames)
    assert regions.looked_at == ["video.regions"]


@pytest.mark.parametrize(
    ("attention", "word"), [({"normaliser": "entmax15"}, "entmax15"), ({"scope": "local-monotonic"}, "local-monotonic")]
)
def test_a_note_says_where_copying_has_no_probability(attention: dict[str, Any], word: str) -> None:
    (note,) = notes(load_recipe({**COPYING, "attention": attention}))
    assert all(mentions(note, fact) for fact in (word, "zero", "copying", "source"))
    assert not notes(load_recipe(COPYING))
    assert not notes(load_recipe({**ONE, "attention": attention}))
