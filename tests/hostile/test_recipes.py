"""Recipes that were made to fill the memory or to break their reader: a message with file, key or line, at once."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from seq2see.errors import UserError
from seq2see.recipe import load_recipe, shipped
from seq2see.recipe.load import MOST_BYTES, parse_yaml
from tests.hostile.mutations import SEED, mutate_bytes, mutate_settings, survived

Call = Callable[..., tuple[int, str, str]]


def refused(given: Any, *overrides: str) -> str:
    with pytest.raises(UserError) as caught:
        load_recipe(given, overrides=overrides)
    return str(caught.value)


def nested(each: str) -> str:
    """Nine lines, each of which holds the one before it nine times."""
    lines = [f"a: &a {each.format('x, ' * 8 + 'x')}"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} {each.format(', '.join([f'*{before}'] * 9))}")
    return "\n".join(lines) + "\n"


def merged() -> str:
    lines = ["a: &a {k: 1, l: 2}"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 9)}]}}")
    return "\n".join(lines) + "\n"


BOMBS = {
    "aliases": nested("[{}]"),
    "aliases as a setting": nested("[{}]") + "encoder: *i\n",
    "merge keys": merged(),
    "an alias of itself": "inputs: &a {x: *a}\n",
    "deep": "inputs: " + "[" * 5000,
    "deep mappings": "{a: " * 5000,
    "deep keys": "? " * 5000,
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused_with_file_and_line(tmp_path: Path, text: str, call: Call) -> None:
    """Without limits this would take hours, and the time that every test has would end it."""
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    assert refused(path).startswith(f"{path}, line ")
    code, _, err = call("show", path)
    assert code == 2
    assert f"{path}, line " in err
    assert len(err) < 2000
    assert refused({"inputs": {"x": {}}}, f"encoder={text}").startswith("--set encoder=")


def test_a_model_folder_has_the_same_limits(models: dict[str, Path], tmp_path: Path, call: Call) -> None:
    for name in ("vocabulary-source.txt", "vocabulary-output.txt", "model.safetensors"):
        (tmp_path / name).write_bytes((models["word"] / name).read_bytes())
    (tmp_path / "recipe.yaml").write_text(BOMBS["aliases"], encoding="utf-8")
    code, _, err = call("predict", tmp_path, "one")
    assert code == 2
    assert "recipe.yaml, line " in err


def test_a_few_honest_anchors_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "inputs:\n  a: &text {tokens: character, max_length: 20}\n  b: *text\n  c: {<<: *text, tokens: word}\n",
        encoding="utf-8",
    )
    inputs = load_recipe(path).to_dict()["inputs"]
    assert [inputs[name]["tokens"] for name in "abc"] == ["character", "character", "word"]
    assert {one["max_length"] for one in inputs.values()} == {20}


def test_a_merged_mapping_may_replace_what_it_merged() -> None:
    """Also where it is itself merged elsewhere: its keys are then those of the merge and its own."""
    text = "z: &z {x: 1, y: 1}\ntop: {inner: &a {<<: *z, x: 2}}\nb: {<<: *a, y: 3}\n"
    parsed = parse_yaml(text, origin="r")
    assert parsed == {"z": {"x": 1, "y": 1}, "top": {"inner": {"x": 2, "y": 1}}, "b": {"x": 2, "y": 3}}
    for twice in (text.replace("x: 2", "x: 2, x: 3"), text.replace("y: 3", "<<: *z")):
        with pytest.raises(UserError, match="is given twice"):
            parse_yaml(twice, origin="r")


BAD = {
    "!!float abc": "decoder: {size: !!float abc}",
    "!!int": "decoder: {size: !!int ''}",
    "!!bool": "data: {stream: !!bool maybe}",
    "!!binary": "task: !!binary aGFsbG8=",
    "!!timestamp": "task: !!timestamp 2001-99-99",
    "!!python": "task: !!python/name:os.system",
    "!!set": "inputs: !!set {a}",
    "!!omap": "inputs: !!omap [a: {}]",
    "!!map of a list": "inputs: !!map [a]",
    "beyond 2**63": "decoder: {size: 9223372036854775808}",
    "thousands of digits": f"decoder: {{size: {'9' * 5000}}}",
    "a long value": f"task: {'x' * 20_000}",
    "a character that is none": 'task: "\\UFFFFFFFF"',
    "half a pair": 'task: "\\ud800"',
    "a zero byte": "task: a\0b",
    "two documents": "task: a\n---\ntask: b",
    "a merge of no mapping": "inputs: {<<: 5}",
    "a key that is a list": "? [a]\n: b",
    "twice": "task: a\ntask: b",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_recipes_do_not_use_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("description: first\n" + text + "\n", encoding="utf-8")
    message = refused(path)
    assert message.startswith(f"{path}")
    assert "line " in message or text == BAD["a character that is none"]
    assert len(message) < 500


def test_dates_are_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("task: 2001-01-01\n", encoding="utf-8")
    assert load_recipe(path).task == "2001-01-01"
    path.write_bytes(b"\xef\xbb\xbftask: marked\n")
    assert load_recipe(path).task == "marked"


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("encoder.kind=[recurrent]", "encoder.kind"),
        ("encoder.kind={a: b}", "encoder.kind"),
        ("inputs.source.kind=[]", "inputs.source.kind"),
        ("output.kind={}", "output.kind"),
        ("decoder.kind=[]", "decoder.kind"),
        ("encoder=5", "encoder"),
        ("inputs=5", "inputs"),
        ("encoder.layers=100000", "encoder.layers"),
        ("decoder.layers=1000", "decoder"),
        ("encoder.size=100000000", "encoder.size"),
        ("decoder.size=9223372036854775807", "decoder.size"),
        ("decoder.size=9223372036854775808", "decoder.size"),
        ("decoder.size=" + "9" * 5000, "decoder.size"),
        ("training.seed=9223372036854775808", "training.seed"),
        ("training.learning_rate=.nan", "training.learning_rate"),
        ("training.clip=.inf", "training.clip"),
        ("search.beam=1000000", "search.beam"),
        ("inputs.source.share=nobody", "inputs.source.share"),
        (".".join("a" * 100) + "=1", "a.a.a"),
    ],
)
def test_a_bad_setting_is_named_by_its_key(override: str, key: str) -> None:
    message = refused({"inputs": {"source": {}}}, override)
    assert key in message
    assert len(message) < 1000


def test_a_backbone_is_named_without_a_place_to_fetch_it_from() -> None:
    for name in ("timm:hf-hub:somebody/model", "timm:local-dir:/tmp/x", "torchvision:../x"):
        message = refused({"inputs": {"x": {"kind": "image", "encoder": {"backbone": name}}}})
        assert "inputs.x.encoder.backbone: unknown backbone" in message


def test_sizes_no_machine_has_are_refused_by_every_command(table: Path, tmp_path: Path, call: Call) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("inputs: {source: {}}\n", encoding="utf-8")
    for setting in ("encoder.layers=100000", "encoder.size=2000000"):
        for command in (
            ["show", recipe],
            ["train", recipe, "--data", table, "--out", tmp_path / "run"],
            ["compare", recipe, "--data", table, "--out", tmp_path / "runs", "--vary", "decoder.size=8,9"],
        ):
            code, _, err = call(*command, "--set", setting)
            assert (code, "Traceback" in err) == (2, False), err
            assert setting.partition("=")[0] in err
    for command in (
        ["train", recipe, "--data", table, "--out", tmp_path / "run", "--set", "encoder.size=1000000"],
        ["compare", recipe, "--data", table, "--out", tmp_path / "runs", "--vary", "encoder.size=1000000,999999"],
    ):
        code, _, err = call(*command)
        assert code == 2
        assert "too large for this machine" in err


@pytest.mark.parametrize(("count", "lines"), [(5_000, 800), pytest.param(100_000, 16_000, marks=pytest.mark.slow)])
def test_a_great_many_unknown_keys_are_counted(tmp_path: Path, count: int, lines: int) -> None:
    message = refused({f"key{number}": 1 for number in range(count)})
    assert message.startswith(f"recipe: {count:,} problems")
    assert message.count("unknown key") == 20
    assert message.endswith(f"and {count - 20:,} more")
    path = tmp_path / "mine.yaml"
    path.write_text("".join(f"key{number}: 1\n" for number in range(lines)), encoding="utf-8")
    assert refused(path).count("unknown key") == 20


def test_what_is_no_file_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    assert refused(pipe).startswith(f"{pipe}: a device or a pipe")
    link = tmp_path / "link.yaml"
    link.symlink_to("/dev/zero")
    assert refused(link).startswith(f"{link}: a device or a pipe")
    folder = tmp_path / "folder.yaml"
    folder.mkdir()
    assert refused(folder).startswith(f"{folder}: a folder")
    path = tmp_path / "mine.yaml"
    path.write_bytes(b"task: a\ndescription: \xff\n")
    assert refused(path).startswith(f"{path}, line 2: not UTF-8")
    path.write_bytes(b"# " + b"x" * MOST_BYTES)
    assert "bytes, and a recipe" in refused(path)
    path.write_bytes(b"")
    assert "an empty file" in refused(path)


# ---------------------------------------------------------------- mutated at random


def known_recipes() -> list[dict[str, Any]]:
    """What is mutated: every shipped recipe, and a short one."""
    return [load_recipe(name).to_dict() for name in shipped()] + [{"inputs": {"source": {}}, "encoder": {"size": 8}}]


def read_text(path: Path, settings: dict[str, Any], draw: random.Random) -> bool:
    """Whether a recipe is still sound after changes of its text."""
    text = yaml.safe_dump(settings, sort_keys=False)
    path.write_bytes(mutate_bytes(text.encode("utf-8"), draw))
    return survived(lambda: load_recipe(path))


def read_settings(settings: dict[str, Any], draw: random.Random) -> bool:
    """Whether a recipe is still sound after changes of its values and keys."""
    changed = mutate_settings(settings, draw)
    value = draw.choice(["none", "[]", "{}", "5", "-1", "null", "{kind: []}", "!!float a", "text", "1e99", ".nan"])
    key = draw.choice(["encoder", "decoder", "inputs", "output", "attention", "training.seed", "inputs.source"])
    overrides = [f"{key}={value}"] if draw.random() < 0.3 else []
    return survived(lambda: load_recipe(changed, overrides=overrides))


def read_mutated(folder: Path, number: int, seed: int) -> int:
    """How many of so many mutated recipes are still sound."""
    draw, known, sound = random.Random(seed), known_recipes(), 0
    for _ in range(number):
        settings = draw.choice(known)
        as_text = draw.random() < 0.3
        sound += read_text(folder / "mutated.yaml", settings, draw) if as_text else read_settings(settings, draw)
    return sound


def test_mutated_recipes(tmp_path: Path) -> None:
    assert 0 < read_mutated(tmp_path, 100, seed=1) < 100


@pytest.mark.slow
def test_many_mutated_recipes(tmp_path: Path) -> None:
    assert read_mutated(tmp_path, 8000, seed=SEED)


def test_mutated_recipes_on_the_command_line(tmp_path: Path, call: Call) -> None:
    draw, path = random.Random(3), tmp_path / "mutated.yaml"
    text = yaml.safe_dump(load_recipe("translation").to_dict(), sort_keys=False).encode("utf-8")
    codes = []
    for _ in range(15):
        path.write_bytes(mutate_bytes(text, draw))
        code, _, err = call("show", path)
        codes.append(code)
        assert code in (0, 2), err
        assert "Traceback" not in err
    assert 2 in codes


@pytest.mark.parametrize("decoder", ["none", 5, [1], None])
def test_an_override_of_a_kind_meets_a_decoder_that_is_none(decoder: object) -> None:
    with pytest.raises(UserError, match="decoder"):
        load_recipe(
            {"inputs": {"source": {}}, "output": {"kind": "label"}, "decoder": decoder}, overrides=["output.kind=text"]
        )


def test_an_encoder_whose_kind_is_a_group_beside_an_unknown_key() -> None:
    """Found by `make fuzz`: the hint about encoders of inputs looked the group up in a dict."""
    message = refused({"inputs": {"source": {}}}, "encoder.sizes=8", "inputs.source.encoder.kind.a=250")
    assert "encoder.sizes" in message
    assert "inputs.source.encoder.kind" in message
