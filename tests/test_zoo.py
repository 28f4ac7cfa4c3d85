"""Ready-made models: the list, building, the cache, the card and the figures that the pages show."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import shlex
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file

import seq2see
from seq2see import zoo
from seq2see.cli import main
from seq2see.errors import Notice, UserError
from seq2see.evaluation import lookup
from seq2see.files import new_folder
from seq2see.pipeline.weights import read_tensors, write_tensors
from seq2see.recipe import load_recipe, shipped
from seq2see.samples import SAMPLES
from seq2see.studio.model_repository import find_examples
from seq2see.zoo import MODELS, building
from seq2see.zoo.building import BUILT, MOST_BYTES, built, cached, cached_folder, damage, get, measured

PROJECT = Path(__file__).resolve().parents[1]
SMALL = "small-digits"
ENTRY = dataclasses.replace(MODELS["digits"], updates=300)
pytest.importorskip("sklearn", reason="the extra `samples` is not installed")


def called(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(one) for one in arguments])
    return int(left.value.code or 0)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of its own, and a model in the list that is built in a few seconds."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQ2SEE_CACHE", str(folder))
        listed = {**MODELS, SMALL: ENTRY}
        patch.setattr(zoo, "MODELS", listed)
        patch.setattr(building, "MODELS", listed)
        yield folder


@pytest.fixture(scope="module")
def model(cache: Path) -> Path:
    return built(SMALL, listeners=[])


@pytest.mark.parametrize("name", MODELS)
def test_every_entry_can_be_built_as_it_says(name: str) -> None:
    entry = MODELS[name]
    recipe = load_recipe(entry.recipe, overrides=[*entry.overrides, f"training.updates={entry.updates}"])
    assert recipe.training.updates == entry.updates
    assert recipe.training.minutes == recipe.training.epochs == 0
    assert entry.sample in SAMPLES
    assert set(entry.options) <= set(SAMPLES[entry.sample].options)
    assert entry.metric in recipe.evaluation.metrics
    assert set(entry.extras) <= set(building.MODULES)


WITHOUT_A_MODEL = {
    "question-answering-passage",
    "text-line-recognition",
    "speech-recognition",
    "summarisation-hierarchical",
    "video-captioning",
    "video-classification",
    "arrow-of-time",
}
"""Recipes without settings that learn their sample in a minute or two. A model that is added is taken out of here."""


def test_tasks_with_a_model() -> None:
    assert {entry.recipe for entry in MODELS.values()} == shipped().keys() - WITHOUT_A_MODEL


@pytest.mark.parametrize("name", MODELS)
def test_every_entry_was_measured_is_small_and_better_than_a_trivial_model(name: str) -> None:
    record = measured()[name]
    assert (record.recipe, record.updates, record.metric) == (
        MODELS[name].recipe,
        MODELS[name].updates,
        MODELS[name].metric,
    )
    assert record.bytes < MOST_BYTES
    assert record.baseline is not None
    gain = record.figure - record.baseline
    assert gain > 0 if lookup(record.metric).higher_is_better else gain < 0


def test_a_model_learns_what_an_untrained_one_does_not_know(model: Path, tmp_path: Path) -> None:
    record = cached(SMALL)
    assert record is not None
    assert record.baseline is not None
    untrained = shutil.copytree(model, tmp_path / "untrained")
    random = torch.Generator().manual_seed(1)
    weights = read_tensors(untrained / "model.safetensors")
    drawn = {name: 0.1 * torch.randn(weight.shape, generator=random) for name, weight in weights.items()}
    write_tensors(untrained / "model.safetensors", drawn)
    errors = [seq2see.load(folder).evaluate(model / building.TABLE).metrics["mse"] for folder in (model, untrained)]
    assert record.figure < record.baseline / 2
    assert errors[0] < record.baseline / 2 < errors[1]


def test_weights_are_float16_and_what_is_measured_was_not_trained_on(model: Path) -> None:
    weights = load_file(model / "model.safetensors")
    assert {weight.dtype for weight in weights.values() if weight.is_floating_point()} == {torch.float16}
    report = seq2see.load(model).evaluate(model / building.TABLE)
    assert report.seen is not None
    assert report.seen.trained_on == report.seen.other_output == 0


def test_a_model_says_what_it_does_in_its_own_words(model: Path) -> None:
    assert seq2see.load(model).recipe.description == ENTRY.about


def test_the_card_says_what_it_is_and_how_good(model: Path) -> None:
    card = (model / "README.md").read_text("utf-8")
    record = cached(SMALL)
    assert record is not None
    assert "license: cc-by-4.0" in card
    assert f"seq2see get {SMALL}" in card
    assert record.figures in card
    assert f"{record.measured:,} rows" in card
    assert "seq2see pull" not in card
    assert "An encoder-decoder, trained" in card  # without attention
    assert "## The five answers" in card


def test_a_figure_stands_beside_the_trivial_model_of_its_metric() -> None:
    says = "copying the input; perplexity: the unigram model"
    records = [
        dataclasses.replace(measured()["german"], metric=metric, baseline_says=says)
        for metric in ("exact", "perplexity")
    ]
    assert [record.baseline_name for record in records] == ["copying the input", "the unigram model"]


def test_get_writes_a_folder_or_a_file_that_every_command_takes(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(building, "build", lambda *given, **more: pytest.fail("it is built already"))
    for out in (tmp_path / "folder", tmp_path / "file.seq2see"):
        assert called("get", SMALL, "--out", out) == 0
        assert capsys.readouterr().out.strip() == str(out)
        assert called("predict", out, "--file", model / building.TABLE, "--json") == 0
        assert len(capsys.readouterr().out.splitlines()) == building.SHOWN
    assert called("get", SMALL, "--out", tmp_path / "folder") == 0  # it is there already
    assert called("evaluate", tmp_path / "folder", "--data", tmp_path / "folder" / building.TABLE) == 0


def test_get_prints_a_command_that_works(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("get", SMALL, "--out", tmp_path / "here") == 0
    tried = next(line for line in capsys.readouterr().err.splitlines() if "predict" in line)
    assert called(*shlex.split(tried)[shlex.split(tried).index("predict") :]) == 0
    assert len(capsys.readouterr().out.splitlines()) == building.SHOWN


def test_the_studio_has_the_examples_of_a_model(model: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(model, tmp_path / "moved")
    assert len(find_examples(seq2see.load(moved), moved).rows) == building.SHOWN


def test_get_leaves_alone_what_it_did_not_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("my own", encoding="utf-8")
    for out in (tmp_path / "mine", tmp_path / "mine" / "notes.txt"):
        assert called("get", SMALL, "--out", out) == 2
        assert str(out) in capsys.readouterr().err
    assert (tmp_path / "mine" / "notes.txt").read_text("utf-8") == "my own"
    assert called("get", SMALL, "--out", "") == 2


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(building, "_build_if_needed", pytest.fail)
    for name in ("model", "deep/model", "model.seq2see"):
        with pytest.raises(UserError, match=r"file is no folder that can be written to"):
            get(SMALL, tmp_path / "file" / name)


def test_a_record_with_an_unknown_metric_is_no_record(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (model / BUILT).read_text("utf-8")
    assert cached(SMALL) is not None
    monkeypatch.setattr(building, "read_json", lambda *_, **__: json.loads(content.replace('"mse"', '"nope"')))
    assert cached(SMALL) is None


def test_make_zoo_writes_records_and_tables(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = _make_zoo()
    pages = tmp_path / "docs"
    pages.mkdir()
    for name in ("models.md", "results.md"):
        (pages / name).write_text(f"before\n{tool.START}\nSTALE\n{tool.END}\nafter\n")
    monkeypatch.setattr(tool, "PROJECT", tmp_path)
    monkeypatch.setattr(tool, "RECORDS", tmp_path / "measured.json")
    monkeypatch.setattr(tool, "MODELS", building.MODELS)
    monkeypatch.setattr("sys.argv", ["make_zoo.py", "--kept", SMALL])
    tool.main()
    assert [each["name"] for each in json.loads((tmp_path / "measured.json").read_text())][-1] == SMALL
    for name in ("models.md", "results.md"):
        text = (pages / name).read_text()
        assert "STALE" not in text
        assert SMALL in text


def test_get_again_keeps_what_was_added(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, weights = get(SMALL, tmp_path / "out"), model / "model.safetensors"
    notes = out / "notes.txt"
    notes.write_text("my own", encoding="utf-8")
    assert get(SMALL, out) == out
    (out / weights.name).write_bytes(b"")  # the model has to be written again
    assert called("get", SMALL, "--out", out) == 2
    assert "notes.txt" in capsys.readouterr().err
    assert notes.read_text("utf-8") == "my own"
    notes.unlink()
    assert called("get", SMALL, "--out", out) == 0
    assert (out / weights.name).read_bytes() == weights.read_bytes()
    (tmp_path / "link").symlink_to(out)
    assert called("get", SMALL, "--out", tmp_path / "link") == 2
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_folder_is_replaced_once_the_new_one_is_complete(tmp_path: Path) -> None:
    old = tmp_path / "folder"
    old.mkdir()
    (old / "a").write_text("old", encoding="utf-8")
    with suppress(RuntimeError), new_folder(old, replace=True) as part:
        (part / "a").write_text("half", encoding="utf-8")
        raise RuntimeError
    assert (old / "a").read_text("utf-8") == "old"
    with new_folder(old, replace=True) as part:
        (part / "b").write_text("new", encoding="utf-8")
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "b"]


@pytest.mark.parametrize("harm", ["flip", "cut", "remove", "record", "outside", "added", "link", "types"])
def test_a_damaged_cache_is_noticed_and_built_again(model: Path, harm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    weights = model / "model.safetensors"
    if harm == "flip":
        weights.write_bytes(before[weights][:-1] + bytes([before[weights][-1] ^ 1]))
    elif harm == "cut":
        weights.write_bytes(before[weights][:1000])
    elif harm == "remove":
        weights.unlink()
    elif harm == "record":
        (model / BUILT).write_text("[", encoding="utf-8")
    elif harm == "added":
        (model / "row_index.safetensors").write_bytes(b"0")
    elif harm == "link":
        weights.rename(model.parent / "elsewhere")
        weights.symlink_to(model.parent / "elsewhere")
    else:
        record = json.loads(before[model / BUILT])
        if harm == "outside":
            record["files"]["../outside"] = "0"
        else:
            record["built"]["bytes"] = "x"
        (model / BUILT).write_text(json.dumps(record), encoding="utf-8")
    assert damage(model)
    assert called("models", "--json") == 0

    def build_again(name: str, entry: object, folder: Path, **more: object) -> None:
        for path, content in before.items():
            (folder / path.relative_to(model)).parent.mkdir(exist_ok=True)
            (folder / path.relative_to(model)).write_bytes(content)

    monkeypatch.setattr(building, "build", build_again)
    with pytest.warns(Notice, match="built again"):
        assert built(SMALL) == model
    assert not damage(model)


def test_a_building_that_fails_leaves_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*given: object, **more: object) -> None:
        raise UserError("the disk is full")

    monkeypatch.setattr(building, "build", fail)
    assert called("get", "dates", "--out", tmp_path / "dates") == 2
    assert "the disk is full" in capsys.readouterr().err
    assert not cached_folder("dates").exists()
    assert not (tmp_path / "dates").exists()


def test_another_setting_is_another_model(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = {**MODELS, SMALL: dataclasses.replace(ENTRY, updates=151)}
    before = cached_folder(SMALL)
    monkeypatch.setattr(building, "MODELS", changed)
    assert cached_folder(SMALL) != before


def test_an_unknown_name_gives_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert called("get", "date") == 2
    assert "did you mean 'dates'?" in capsys.readouterr().err
    with pytest.raises(UserError, match="allowed"):
        get("../dates")


def test_the_list_says_what_is_here(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("models", "--json") == 0
    lines = {line["name"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert list(lines) == [*MODELS, SMALL]
    assert [name for name, line in lines.items() if line["here"]] == [SMALL]
    for line in lines.values():
        assert {"task", "description", "bytes", "metric", "figure", "baseline", "seconds"} <= set(line)
    assert called("models") == 0
    out = capsys.readouterr().out
    assert all(name in out for name in MODELS)


def _make_zoo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_zoo", PROJECT / "tools" / "make_zoo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_show_what_was_measured() -> None:
    tool, records = _make_zoo(), [measured()[name] for name in MODELS]
    for page, table in (("models.md", tool.what_it_does(records)), ("results.md", tool.figures(records))):
        assert table in (PROJECT / "docs" / page).read_text("utf-8"), "run `make zoo ARGS=--tables`"
