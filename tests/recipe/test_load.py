"""Recipes from names, files and dictionaries: what is filled in, overridden and dropped; they read back the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from seq2see.attention import scores
from seq2see.errors import UserError
from seq2see.recipe import Recipe, load_recipe, notes, shipped
from seq2see.recipe.rules import droppable

ONE: dict[str, Any] = {"inputs": {"source": {}}}
TWO: dict[str, Any] = {"inputs": {"passage": {}, "question": {}}}
LABEL: dict[str, Any] = {**TWO, "output": {"kind": "label"}}
NAMES_OF_TORCH = ["keys", "items", "values", "update", "pop", "type", "to", "train", "forward", "float", "half"]

COMPLETE: dict[str, dict[str, Any]] = {
    "language model": {},
    "stream": {"data": {"stream": True}, "training": {"bptt": 64}},
    "pairs": ONE,
    "no attention": {**ONE, "attention": "none"},
    "every option": {
        "inputs": {"a": {"encoder": {"size": 16}, "tokens": "bpe"}, "b": {"share": "a", "tokens": "bpe"}},
        "attention": {"score": "deep", "layers": 3, "over": "a", "query": "current", "input_feeding": False},
        "decoder": {"start": ["a", "b"], "every_step": "b", "cell": "lstm", "layers": 2, "tied": True},
        "training": {"betas": [0.8, 0.9], "learning_rate": "1e-4"},
    },
    "label": {**LABEL, "loss": {"class_weights": {"yes": 2.0}}},
}


@pytest.mark.parametrize("raw", COMPLETE.values(), ids=COMPLETE)
def test_a_recipe_reads_back_the_same(raw: dict[str, Any], tmp_path: Path) -> None:
    recipe = load_recipe(raw)
    assert load_recipe(recipe.to_dict()) == recipe
    assert load_recipe(recipe) == recipe
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe.to_dict()), encoding="utf-8")
    assert load_recipe(path) == recipe


@pytest.mark.parametrize("raw", COMPLETE.values(), ids=COMPLETE)
def test_loading_leaves_what_was_given_alone(raw: dict[str, Any]) -> None:
    before = yaml.safe_dump(raw)
    load_recipe(raw, overrides=["decoder.size=32"])
    assert yaml.safe_dump(raw) == before


def test_a_complete_recipe_cut_short_is_recognised(tmp_path: Path) -> None:
    whole = yaml.safe_dump(load_recipe(COMPLETE["every option"]).to_dict(), sort_keys=False)
    path = tmp_path / "recipe.yaml"
    path.write_text(whole, encoding="utf-8")
    assert load_recipe(path, complete=True) == load_recipe(path)
    last = whole.index("\nevaluation:")
    for end in [*range(0, last, 41), last]:
        path.write_text(whole[:end], encoding="utf-8")
        with pytest.raises(UserError, match=r"recipe\.yaml.*(cut short: |not YAML)"):
            load_recipe(path, complete=True)
    path.write_text(whole[: last + 1], encoding="utf-8")
    assert load_recipe(path)
    with pytest.raises(UserError, match="cut short: without evaluation; the recipe in a model's folder has every key"):
        load_recipe(path, complete=True)
    path.write_text(whole[:-1], encoding="utf-8")
    with pytest.raises(UserError, match="cut short: its last line has no end"):
        load_recipe(path, complete=True)


def test_a_dictionary_is_held_to_be_complete_too() -> None:
    recipe = load_recipe(ONE)
    assert load_recipe(recipe.to_dict(), complete=True) == load_recipe(recipe, complete=True) == recipe
    with pytest.raises(UserError, match="recipe: cut short: without task, description, output, data"):
        load_recipe(ONE, complete=True)


def test_without_inputs_attention_is_off_unless_it_is_asked_for() -> None:
    assert load_recipe({}).attention.score == "none"
    assert load_recipe({"attention": "none"}).attention.score == "none"
    with pytest.raises(UserError, match="has nothing to look at"):
        load_recipe({"attention": "additive"})


def test_a_label_brings_its_decoder() -> None:
    assert load_recipe(LABEL).decoder.kind == "label"
    assert load_recipe(ONE).decoder.kind == "recurrent"


def test_everything_is_looked_at_unless_it_is_said_what() -> None:
    assert load_recipe(TWO).attention.over == ["passage", "question"]
    recipe = load_recipe({**TWO, "attention": {"over": "passage"}, "decoder": {"start": "question"}})
    assert (recipe.looked_at, recipe.started_by) == (["passage"], ["question"])


def test_without_attention_the_decoder_starts_from_what_nothing_else_gives_it_and_it_is_said() -> None:
    recipe = load_recipe({**ONE, "attention": "none"})
    assert recipe.started_by == ["source"]
    assert notes(recipe) == ["attention is off: the decoder starts from the summary of source"]
    recipe = load_recipe({**TWO, "attention": "none", "decoder": {"start": "question"}})
    assert recipe.started_by == ["question", "passage"]
    recipe = load_recipe({**ONE, "attention": "none", "decoder": {"every_step": "source"}})
    assert recipe.started_by == []
    assert notes(recipe) == []
    assert notes(load_recipe(ONE)) == notes(load_recipe({})) == []


def test_a_start_that_was_said_to_be_none_is_not_filled_in() -> None:
    none = {"decoder": {"start": "none"}}
    message = r"decoder\.start: with attention off, none leaves the decoder nothing of source; allowed: source, or deco"
    with pytest.raises(UserError, match=message) as refused:
        load_recipe({**ONE, **none, "attention": "none"})
    assert "never used" not in str(refused.value)
    with pytest.raises(UserError, match=message):
        load_recipe(ONE, overrides=["attention=none", "decoder.start=none"])
    with pytest.raises(UserError, match="nothing of passage; allowed: passage"):
        load_recipe({**TWO, "attention": "none", "decoder": {"start": "none", "every_step": "question"}})
    every = load_recipe(ONE, overrides=["attention=none", "decoder.start=none", "decoder.every_step=source"])
    assert (every.started_by, every.fed_every_step) == ([], ["source"])
    assert load_recipe({**ONE, **none}).started_by == []
    assert load_recipe({**ONE, **none}, overrides=["attention=none"]).started_by == ["source"]


def test_a_start_filled_in_is_checked_as_one_written_down() -> None:
    copied = {"start_by": "copy", "size": 512}
    assert load_recipe({**ONE, "attention": "none", "decoder": copied}).started_by == ["source"]
    with pytest.raises(UserError, match="copy needs"):
        load_recipe({**ONE, "attention": "none", "decoder": {**copied, "size": 100}})


@pytest.mark.parametrize("score", [*scores.settings, "none"])
def test_one_word_sets_the_attention(score: str) -> None:
    sizes = {"decoder": {"size": 512}}
    assert load_recipe({**ONE, **sizes, "attention": score}).attention.score == score
    assert load_recipe({**ONE, **sizes}, overrides=[f"attention={score}"]).attention.score == score
    assert load_recipe({**ONE, **sizes}, overrides=[f"attention.score={score}"]).attention.score == score


@pytest.mark.parametrize("name", NAMES_OF_TORCH)
def test_names_that_torch_uses_are_names_for_inputs_too(name: str) -> None:
    assert load_recipe({"inputs": {name: {}}}).looked_at == [name]


OVERRIDES: list[tuple[dict[str, Any], list[str], dict[str, Any]]] = [
    (ONE, ["decoder.size=64"], {"decoder.size": 64}),
    (ONE, ["training.learning_rate=3e-4"], {"training.learning_rate": 3e-4}),
    (ONE, ["inputs.source.tokens=character"], {"inputs.source.tokens": "character"}),
    (ONE, ["inputs.source.encoder.size=32"], {"inputs.source.encoder.size": 32}),
    (ONE, ["decoder.start=[source]"], {"decoder.start": ["source"]}),
    (ONE, ["decoder.size=1", "decoder.size=2"], {"decoder.size": 2}),
    (ONE, ["attention=deep", "attention.layers=4"], {"attention.score": "deep", "attention.layers": 4}),
    ({**ONE, "attention": "deep"}, ["attention.layers=4"], {"attention.score": "deep", "attention.layers": 4}),
]


@pytest.mark.parametrize(
    ("raw", "overrides", "expected"), OVERRIDES, ids=[",".join(given) for _, given, _ in OVERRIDES]
)
def test_one_key_is_overridden(raw: dict[str, Any], overrides: list[str], expected: dict[str, Any]) -> None:
    recipe: Any = load_recipe(raw, overrides=overrides)
    for path, value in expected.items():
        here = recipe
        for key in path.split("."):
            here = here[key] if isinstance(here, dict) else getattr(here, key)
        assert here == value


def test_perplexity_picks_the_best_model_though_it_is_not_named() -> None:
    for raw in ({}, ONE, LABEL, {**ONE, "evaluation": {"metrics": ["wer", "a_measure_of_my_own"]}}):
        assert load_recipe({**raw, "training": {"metric": "perplexity"}}).training.metric == "perplexity"


DROPPED: list[tuple[dict[str, Any], str, list[str]]] = [
    ({**ONE, "attention": {"score": "deep", "layers": 4, "size": 9}}, "attention.score=none", ["attention.layers"]),
    ({**ONE, "attention": {"score": "deep", "layers": 4, "size": 9}}, "attention=additive", ["attention.layers"]),
    ({**ONE, "search": {"replace_unknown": True}}, "attention=none", ["search.replace_unknown"]),
    ({**ONE, "encoder": {"reset": "before"}}, "encoder.cell=lstm", ["encoder.reset"]),
    (
        {**ONE, "decoder": {"start": "source", "start_by": "copy", "size": 512}},
        "decoder.start=none",
        ["decoder.start_by"],
    ),
    ({**ONE, "training": {"betas": [0.5, 0.9]}}, "training.optimizer=sgd", ["training.betas"]),
    ({"data": {"stream": True}, "training": {"bptt": 9, "lanes": 2}}, "data.stream=false", ["training.bptt"]),
    ({**ONE, "decoder": {"readout": 9}}, "decoder.tied=true", ["decoder.readout"]),
    (
        {
            **ONE,
            "output": {"tokens": "character"},
            "decoder": {"kind": "recurrent", "cell": "lstm"},
            "search": {"beam": 4},
        },
        "output.kind=label",
        ["decoder.cell", "search.beam"],
    ),
    (
        {**ONE, "evaluation": {"metrics": ["bleu"], "baseline": "unigram"}},
        "output.kind=label",
        ["evaluation.metrics", "evaluation.baseline"],
    ),
    ({"output": {"max_length": 9}}, "data.stream=true", []),
    (
        {**ONE, "evaluation": {"metrics": ["wer"]}, "training": {"metric": "wer"}},
        "evaluation.metrics=[chrf]",
        ["training.metric"],
    ),
    ({**LABEL, "decoder": {"kind": "label"}, "loss": {"class_weights": "balanced"}}, "output.kind=text", []),
]


@pytest.mark.parametrize(("raw", "override", "lost"), DROPPED, ids=[given for _, given, _ in DROPPED])
def test_what_an_override_makes_meaningless_falls_back(raw: dict[str, Any], override: str, lost: list[str]) -> None:
    assert load_recipe(raw)
    recipe = load_recipe(raw, overrides=[override])
    assert droppable(recipe) == {}
    for path in lost:
        group, key = path.split(".")
        settings = getattr(recipe, group)
        assert key not in settings.known_keys() or getattr(settings, key) == getattr(getattr(Recipe(), group), key)
    assert load_recipe(load_recipe(raw), overrides=[override]) == recipe


def test_what_the_user_has_just_set_is_refused_rather_than_dropped() -> None:
    with pytest.raises(UserError, match=r"attention\.size: has no effect here: attention\.score is none"):
        load_recipe(ONE, overrides=["attention=none", "attention.size=9"])
    with pytest.raises(UserError, match=r"decoder\.kind: recurrent cannot write an output of kind label"):
        load_recipe(ONE, overrides=["output.kind=label", "decoder.kind=recurrent"])


def test_an_override_that_a_later_one_undoes_is_refused() -> None:
    for later in ("attention=none", "attention={score: deep}"):
        with pytest.raises(UserError, match=r"--set attention: undoes the --set attention\.size before it"):
            load_recipe(ONE, overrides=["attention.size=4", later])


def test_what_was_meaningless_before_an_override_is_still_refused() -> None:
    with pytest.raises(UserError, match=r"training\.momentum: has no effect here"):
        load_recipe({**ONE, "training": {"momentum": 0.5}}, overrides=["decoder.size=64"])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("decoder.size", "--set decoder.size: not KEY=VALUE, for example decoder.size=256"),
        ("=3", "--set =3: not KEY=VALUE"),
        ("decoder.size=[", r"--set decoder.size=\[: '\[' is not a YAML value"),
        ("decoder.size=x", "decoder.size: should be a whole number"),
        ("decoder.sise=3", r"decoder.sise: unknown key \(did you mean 'size'\?\)"),
        ("decoder=label", "decoder: should be mapping of keys, got 'label'"),
        ("output.kind=picture", "output.kind: 'picture' is not allowed; allowed: image, label"),
        ("decoder.start.first=source", "decoder.start: should be text or list of texts"),
    ],
)
def test_a_wrong_override_is_named(override: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_recipe(ONE, overrides=[override])


def test_every_shipped_recipe_loads_and_says_what_it_is_for() -> None:
    for name, description in shipped().items():
        assert description, name
        assert load_recipe(name)


@pytest.mark.parametrize("name", shipped())
def test_one_setting_adds_attention_to_a_shipped_recipe_or_takes_it_away(name: str) -> None:
    assert load_recipe(name, overrides=["attention=none"]).attention.score == "none"
    made = load_recipe(name)
    if made.with_places:
        ordered = all(given.kind != "set" for given in made.inputs.values())
        for score in ("additive", "general", "static", "uniform", *(["location"] if ordered else [])):
            assert load_recipe(name, overrides=[f"attention={score}"]).attention.score == score
            assert load_recipe(name, overrides=["attention=none", f"attention={score}"]).attention.score == score
    else:
        with pytest.raises(UserError, match="has nothing to look at"):
            load_recipe(name, overrides=["attention=additive"])


def test_an_unknown_recipe_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UserError, match=r"unknown recipe 'no such thing'; allowed: a YAML file, or one of "):
        load_recipe("no such thing")


def test_an_inputs_encoder_says_only_how_it_differs() -> None:
    recipe = load_recipe(
        {
            "encoder": {"cell": "lstm", "embedding": {"dropout": 0.5}},
            "inputs": {"a": {}, "b": {"encoder": {"size": 7}}},
        },
        overrides=["encoder.layers=2", "inputs.b.encoder.embedding.size=5"],
    )
    one = recipe.encoder_of("b")
    assert (one.cell, one.layers, one.size, one.embedding.size, one.embedding.dropout) == ("lstm", 2, 7, 5, 0.5)
    assert recipe.encoder_of("a").size != 7
    assert load_recipe(recipe.to_dict()) == recipe


def test_what_shares_a_vocabulary_shares_the_encoder() -> None:
    inputs: dict[str, Any] = {"a": {}, "b": {"share": "a"}, "c": {}}
    recipe = load_recipe({"inputs": inputs, "output": {"share": "c"}})
    owners = {name: recipe.vocabulary_owner(name) for name in [*recipe.inputs, "output"]}
    assert owners == {"a": "a", "b": "a", "c": "c", "output": "c"}
    assert [recipe.reader_of(name) for name in recipe.inputs] == ["a", "a", "c"]
    assert load_recipe({**ONE, "output": {"kind": "label"}}).vocabulary_owner("output") == "output"


def test_a_kind_written_out_and_one_left_to_its_default_are_the_same_kind() -> None:
    plain = {"cell": "lstm", "embedding": {"dropout": 0.5}}
    named = {"kind": "recurrent", "size": 8, "embedding": {"kind": "learned", "size": 5}}
    for common, own in ((plain, named), (named, plain)):
        one = load_recipe({"encoder": common, "inputs": {"x": {"encoder": own}}}).encoder_of("x")
        assert (one.cell, one.size, one.embedding.size, one.embedding.dropout) == ("lstm", 8, 5, 0.5)


def test_settings_of_another_kind_stand_alone() -> None:
    common, own = {"embedding": {"size": 5, "dropout": 0.5}}, {"embedding": {"kind": "one-hot"}}
    one = load_recipe({"encoder": common, "inputs": {"x": {"encoder": own}, "y": {}}}).encoder_of("x")
    assert (one.embedding.kind, one.embedding.dropout) == ("one-hot", 0.0)
