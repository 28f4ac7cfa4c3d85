"""Encoders, decoders and scores that a plug-in brings: their constructors' arguments are their settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from seq2see.attention import Score, scores
from seq2see.decoders import decoders
from seq2see.decoders.base import OwnAnswerSettings, OwnDecoderSettings
from seq2see.encoders.base import KEYS, KNOWN, OwnEncoderSettings, OwnReaderSettings
from seq2see.recipe import Recipe, load_recipe
from seq2see.settings.columns import ENCODERS
from seq2see.settings.plugins import constructor_values, settings_from_constructor
from tests.recipe.refusing import LABEL, ONE, Refused

SLOPED = {**ONE, "attention": {"score": "sloped", "size": 9, "options": {"slope": 0.5}}}

pytestmark = pytest.mark.usefixtures("_plugins")


class Waves:
    def __init__(
        self,
        embedding: Any,
        size: int,
        how: Literal["sine", "saw"] = "sine",
        share: Annotated[float, Field(gt=0)] = 0.5,
        bent=True,
        copy: int | None = None,
        *rest: Any,
        **more: Any,
    ): ...


class Bare:
    def __init__(self, symbols: int): ...


class Steps:
    def __init__(self, settings: Any, attention: Any, conditions: Any, *, pace: float = 1.0): ...


class Bell:
    def __init__(self, settings: Any, attention: Any, conditions: Any): ...


class Sloped(Score):
    def __init__(self, query: int, key: int, size: int = 3, slope=None, curved=None): ...

    def energies(self, query, keys): ...


@contextmanager
def plugins() -> Iterator[None]:
    """Register the parts above for a while."""
    known = dict(ENCODERS), dict(decoders.settings)
    read, names = settings_from_constructor, ("settings", "attention", "conditions")
    ENCODERS["waves"] = read("waves", Waves, OwnReaderSettings, known=KNOWN, keys=KEYS)
    ENCODERS["bare"] = read("bare", Bare, OwnEncoderSettings, known=KNOWN, keys=KEYS, reads=("text", "texts"))
    decoders.settings["steps"] = read("steps", Steps, OwnDecoderSettings, known=names)
    decoders.settings["bell"] = read("bell", Bell, OwnAnswerSettings, known=names)
    scores.register("sloped")(Sloped)
    try:
        yield
    finally:
        scores.remove("sloped")
        for registry, before in zip((ENCODERS, decoders.settings), known, strict=True):
            registry.clear()
            registry.update(before)


@pytest.fixture
def _plugins() -> Iterator[None]:
    with plugins():
        yield


def waves(**settings: Any) -> dict[str, Any]:
    return {**ONE, "encoder": {"kind": "waves", "size": 8, **settings}}


def test_a_constructor_is_read_as_settings() -> None:
    kind = ENCODERS["waves"]
    assert kind.known_keys() == ["kind", "embedding", "size", "options"]
    assert [name for name, field in kind.model_fields.items() if field.is_required()] == ["size"]
    settings = kind.model_validate({"size": "8", "options": {"share": "1e-3"}})
    assert constructor_values(settings, keys=KEYS) == {"size": 8, "share": 0.001}


def test_a_recipe_with_plug_ins_reads_back_the_same() -> None:
    recipe = load_recipe({**waves(options={"how": "saw"}), "decoder": {"kind": "steps", "options": {"pace": 2}}})
    assert recipe.encoder_of("source").kind == "waves"
    assert recipe.to_dict()["encoder"]["options"] == {"how": "saw"}
    assert load_recipe(recipe.to_dict(), complete=True) == recipe


UNKNOWN = [
    Refused(
        {**ONE, "encoder": {"kind": "wave", "size": 3, "options": {"how": "saw"}}},
        {"encoder.kind": "kind"},
        "'wave' 'waves' recurrent waves bare --plugin",
    ),
    Refused(
        {**ONE, "decoder": {"kind": "step"}},
        {"decoder.kind": "kind"},
        "'step' 'steps' label reconstruction recurrent transformer steps bell --plugin",
    ),
    *(
        Refused({**ONE, "encoder": {"kind": kind}}, {"encoder.kind": "kind"})
        for kind in ("--plugin", ["waves"], {"waves": 1}, 3, None)
    ),
]
SETTINGS = [
    Refused(waves(options={"hou": "saw"}), {"encoder.options.hou": "unknown-key"}, "'how' bent copy how share"),
    Refused(waves(options={"how": "square"}), {"encoder.options.how": "value"}, "square sine saw"),
    Refused(waves(options={"share": 0}), {"encoder.options.share": "value"}, "0"),
    Refused(waves(options={"share": "much"}), {"encoder.options.share": "type"}, "number 0 much"),
    Refused(waves(options={"bent": 7}), {"encoder.options.bent": "type"}, "true false 7"),
    Refused(waves(options={"copy": 0.5}), {"encoder.options.copy": "type"}, "whole 0.5"),
    Refused(waves(options={"how": ["saw"]}), {"encoder.options.how": "value"}, "sine saw"),
    Refused(waves(size=None), {"encoder.size": "type"}, "whole"),
    Refused({**ONE, "encoder": {"kind": "waves"}}, {"encoder.size": "missing"}, "whole"),
    Refused(waves(size=0), {"encoder.size": "value"}, "0"),
    Refused(waves(layers=2), {"encoder.layers": "unknown-key"}, "size"),
    Refused(waves(sizes=2), {"encoder.sizes": "unknown-key"}, "'size' kind embedding size options"),
    Refused(waves(embedding={"sise": 2}), {"encoder.embedding.sise": "unknown-key"}, "'size'"),
    Refused(
        {"inputs": {"source": {"encoder": {"kind": "waves", "size": 8, "options": {"bent": 3}}}}},
        {"inputs.source.encoder.options.bent": "type"},
        "true false 3",
    ),
    Refused({**ONE, "encoder": {"kind": "bare", "embedding": {"size": 3}}}, {"encoder.embedding": "unknown-key"}),
    Refused(
        {**ONE, "decoder": {"kind": "steps"}},
        {"decoder.options.pace": "type"},
        "number fast",
        overrides=["decoder.options.pace=fast"],
    ),
    Refused(
        {**ONE, "decoder": {"kind": "steps"}},
        {"decoder.options.pac": "unknown-key"},
        "'pace'",
        overrides=["decoder.options.pac=1"],
    ),
    Refused(ONE, {"decoder.options.pace": "other-kind"}, "decoder.kind steps", overrides=["decoder.options.pace=1"]),
    Refused(
        SLOPED,
        {"attention.options.slop": "unknown-key"},
        "'slope' curved slope",
        overrides=["attention.options.slop=1"],
    ),
]
COMBINATIONS = [
    Refused(
        {"inputs": {"source": {"kind": "texts"}}, "encoder": {"kind": "waves", "size": 8}},
        {"encoder.kind": "readers"},
        "waves source texts hierarchical bare",
    ),
    Refused(
        {**LABEL, "decoder": {"kind": "steps"}},
        {"decoder.kind": "decoder-kind"},
        "steps label transformer bell --plugin",
    ),
    Refused(
        {**ONE, "decoder": {"kind": "bell"}},
        {"decoder.kind": "decoder-kind"},
        "bell text recurrent transformer steps --plugin",
    ),
    Refused(
        {**LABEL, "decoder": {"kind": "bell", "embedding": {"size": 3}}}, {"decoder.embedding": "other-kind"}, "steps"
    ),
]


@pytest.mark.parametrize("case", [*UNKNOWN, *SETTINGS, *COMBINATIONS], ids=str)
def test_refused_plug_ins(case: Refused) -> None:
    case.check()


def test_plug_ins_read_and_write_the_kinds_that_they_name() -> None:
    texts = {"inputs": {"source": {"kind": "texts"}}}
    assert load_recipe({**texts, "encoder": {"kind": "bare"}}).encoder.kind == "bare"
    assert load_recipe({**LABEL, "decoder": {"kind": "bell"}}).decoder.kind == "bell"


@pytest.mark.parametrize(
    "override",
    [
        "decoder.heads=2",
        "decoder.cell=lstm",
        "decoder.output=state",
        "attention.input_feeding=false",
        "decoder.start_by=copy",
        "attention.score=dot",
        "attention.heads=3",
        "attention.over=source.parts",
        "search.replace_unknown=true",
        "loss.coverage=0.1",
        "loss.consistency=1",
        "decoder.tied=true",
    ],
)
def test_what_only_a_built_plug_in_knows_is_not_checked(override: str) -> None:
    raw = {**waves(), "decoder": {"kind": "steps", "start": "source", "size": 8}}
    assert isinstance(load_recipe(raw, overrides=[override]), Recipe)


def test_another_kind_drops_the_settings_of_the_old_one() -> None:
    raw = {**ONE, "encoder": {"size": 9, "layers": 2, "bidirectional": False, "cell": "lstm"}}
    recipe = load_recipe(raw, overrides=["encoder.kind=waves", "encoder.options.bent=false"])
    assert (recipe.encoder.kind, recipe.encoder.size) == ("waves", 9)
    back = load_recipe(recipe.to_dict(), overrides=["encoder.kind=recurrent"])
    assert (back.encoder.kind, back.encoder.size) == ("recurrent", 9)
    bare = load_recipe(recipe.to_dict(), overrides=["encoder.kind=bare"])
    assert dict(bare.encoder) == {"kind": "bare"}
    paced = load_recipe(ONE, overrides=["decoder.kind=steps", "decoder.options.pace=2"])
    assert load_recipe(paced.to_dict(), overrides=["decoder.kind=recurrent"]).decoder.kind == "recurrent"


def test_an_argument_that_no_recipe_can_hold_is_refused_when_the_class_is_read() -> None:
    class Strange:
        def __init__(self, table: dict[str, int]): ...

    with pytest.raises(TypeError, match=r"strange.* table .*dict\[str, int\]"):
        settings_from_constructor("strange", Strange, OwnEncoderSettings)


def test_arguments_without_a_key_are_options_of_the_score() -> None:
    assert scores.settings["sloped"].known_keys() == ["size", "options"]
    assert "options" not in scores.settings["additive"].known_keys()


def test_options_are_handed_on_with_the_known_settings() -> None:
    recipe = load_recipe(SLOPED)
    settings = recipe.attention.score_settings
    assert (settings["slope"], settings["size"]) == (0.5, 9)
    assert "options" not in settings
    assert load_recipe(recipe.to_dict()) == recipe


@pytest.mark.parametrize(("text", "value"), [("true", True), ("2", 2), ("0.5", 0.5), ("left", "left")])
def test_an_option_is_overridden_like_any_key_and_keeps_its_type(text: str, value: object) -> None:
    slope = load_recipe(SLOPED, overrides=[f"attention.options.slope={text}"]).attention.options["slope"]
    assert (slope, type(slope)) == (value, type(value))


def test_another_score_drops_the_options() -> None:
    for score in ("additive", "none"):
        assert load_recipe(SLOPED, overrides=[f"attention.score={score}"]).attention.score == score
