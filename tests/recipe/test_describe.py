"""The page of keys: complete, in words, and up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seq2see.attention import scores
from seq2see.modalities.base import inputs, outputs
from seq2see.recipe import Recipe, load_recipe
from seq2see.recipe.describe import keys, markdown
from seq2see.settings.columns import ENCODERS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "recipe.md"


PARTS: list[tuple[str, dict[str, Any]]] = [
    *(
        ("text", {"attention": {"score": score}, "decoder": {"size": 512}})
        for score in ("cosine", "deep", "location", "coverage")
    ),
    *(("text", {"attention": {"scope": scope}}) for scope in ("local-monotonic", "local-predicted")),
    ("text", {"attention": {"choice": "hard", "estimator": "gumbel"}}),
    ("text", {"decoder": {"kind": "transformer"}}),
    ("text", {"decoder": {"embedding": {"kind": "pretrained", "path": "x"}}}),
    ("text", {"encoder": {"embedding": {"kind": "pretrained", "path": "x"}}}),
    ("texts", {"encoder": {"kind": "hierarchical", "levels": "transformer"}}),
    ("video", {"encoder": {"kind": "video", "over_time": "transformer"}}),
]


def paths(raw: dict[str, Any], above: str = "") -> list[str]:
    """The path of every value in a recipe as a dictionary."""
    values = []
    for key, value in raw.items():
        path = f"{above}{key}"
        values += paths(value, f"{path}.") if isinstance(value, dict) and value else [path]
    return values


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "python -m seq2see.recipe.describe > docs/recipe.md"


def test_every_key_a_recipe_has_is_there_and_explained() -> None:
    known = {key.path: key for key in keys()}
    text = load_recipe({"inputs": {"NAME": {}}}).to_dict()
    label = load_recipe({"inputs": {"NAME": {}}, "output": {"kind": "label"}}).to_dict()
    names = {"frames": "sound"}
    read = {
        kind: names.get(settings.reads[0], settings.reads[0]) for kind, settings in ENCODERS.items() if not settings.own
    }
    encoders = [
        load_recipe({"inputs": {"NAME": {"kind": read[kind]}}, "encoder": {"kind": kind}}).to_dict() for kind in read
    ]
    parts = [load_recipe({"inputs": {"NAME": {"kind": kind}}, **raw}).to_dict() for kind, raw in PARTS]
    usual = {kind: getattr(inputs[kind].Settings, "usual_encoder", None) for kind in inputs}
    kinds = [
        load_recipe({"inputs": {"NAME": {"kind": kind}}, "encoder": {"kind": encoder}}).to_dict()
        for kind, encoder in usual.items()
        if encoder is not None
    ]
    kinds += [
        load_recipe({"inputs": {"NAME": {}}, "output": {"kind": kind}, "attention": "none"}).to_dict()
        for kind in outputs
    ]
    written = {path for recipe in (text, label, *kinds, *encoders, *parts) for path in paths(recipe)}
    assert written == set(known) - {"inputs"}
    assert all(key.kind and key.default and key.description for key in known.values())


def test_keys_are_described_by_what_holds() -> None:
    known = {key.path: key for key in keys()}
    assert known["decoder.size"].default == f"`{Recipe().decoder.size}`"
    assert known["decoder.size"].kind == "whole number above 0, to 1,000,000, or auto"
    assert known["decoder.cell"].kind == "rnn, gru, lstm, or one that --plugin brings"
    assert known["training.floor"].kind == "number from 0, to 1"
    assert all(score in known["attention.score"].kind for score in [*scores.settings, "none"])
