"""`predict --file SHARDS --to DIR`: every shard once, whoever predicts it, and the same as alone."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import seq2see
from seq2see.cli.predict_shards import process_of
from seq2see.errors import UserError
from seq2see.locking import lock_folder
from tests.commands import Run

Call = Callable[..., Run]
PROJECT = Path(__file__).resolve().parents[2]
WORDS = {
    "a.tsv": ["abcd", "feed"],
    "b.tsv.gz": ["bead", "face", "deaf", "cafe"],
    "c.jsonl": ["dada"],
    "d.csv": ["fade"],
}


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A folder of four tables in four formats."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name, words in WORDS.items():
        rows = [json.dumps({"word": word}) for word in words] if name.endswith("jsonl") else ["word", *words]
        text = "\n".join(rows) + "\n"
        (folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    return folder


def test_one_table_is_not_shared_out(
    call: Call, speller: Path, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    done = call("predict", speller, "--file", shards / "a.tsv", "--to", tmp_path / "out.tsv")
    assert done.code == 2
    assert "2 processes" in done.err
    assert not (tmp_path / "out.tsv").exists()


@pytest.fixture
def predict(call: Call, speller: Path, shards: Path, tmp_path: Path) -> Call:
    """Predict these shards into the folder `out`."""
    return lambda *options: call("predict", speller, "--file", shards, "--to", tmp_path / "out/", *options)


def text_of(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text("utf-8")


def outputs(folder: Path) -> dict[str, str]:
    return {path.name: text_of(path) for path in sorted(folder.iterdir()) if path.is_file()}


def times(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.is_file()}


# ---------------- What is predicted


def test_every_shard_is_what_it_is_alone(
    predict: Call, call: Call, speller: Path, shards: Path, tmp_path: Path
) -> None:
    run = predict("--n-best", 2)
    assert (run.code, run.out) == (0, "")
    assert "8 predictions" in run.err
    (tmp_path / "alone").mkdir()
    for name in WORDS:
        call("predict", speller, "--file", shards / name, "--to", tmp_path / "alone" / f"x{name}", "--n-best", 2)
        assert text_of(tmp_path / "out" / name) == text_of(tmp_path / "alone" / f"x{name}")
    assert "prediction_2" in text_of(tmp_path / "out" / "c.jsonl")


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("options", [("--beam", 2), ("--sample", "--seed", 3)], ids=["beam", "sample"])
def test_results_do_not_depend_on_the_number_of_processes(
    predict: Call, tmp_path: Path, count: int, options: tuple[object, ...]
) -> None:
    assert predict(*options).code == 0
    whole = outputs(tmp_path / "out")
    assert set(whole) == set(WORDS)
    shutil.rmtree(tmp_path / "out")
    seen: list[str] = []
    for number in reversed(range(count)):
        before = set(outputs(tmp_path / "out")) if (tmp_path / "out").exists() else set()
        assert predict(*options, "--shard", f"{number}/{count}").code == 0
        seen += set(outputs(tmp_path / "out")) - before if (tmp_path / "out").exists() else []
    assert sorted(seen) == sorted(WORDS)
    assert outputs(tmp_path / "out") == whole


def test_rows_of_two_shards_do_not_draw_the_same_samples(call: Call, speller: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / f"{name}.tsv").write_text("word\n" + "abcdef\n" * 20)
    options = ("--sample", "--temperature", 5, "--seed", 1)
    assert call("predict", speller, "--file", tmp_path / "in", "--to", tmp_path / "out/", *options).code == 0
    first, second = outputs(tmp_path / "out").values()
    assert first != second


def test_the_variables_of_launchers_share_shards_out(
    predict: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[set[str]] = []
    for number in ("0", "1"):
        monkeypatch.setenv("RANK", number)
        monkeypatch.setenv("WORLD_SIZE", "2")
        run = predict()
        assert run.code == 0
        assert all(line.startswith(f"[{number}/2] ") for line in run.err.splitlines())
        done.append(set(outputs(tmp_path / "out")))
    assert set() < done[0] < done[1] == set(WORDS)


def test_which_process_this_is() -> None:
    torchrun = {"RANK": "1", "WORLD_SIZE": "4"}
    slurm = {"SLURM_PROCID": "2", "SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "3"}

    def numbers(option: str | None, environment: dict[str, str]) -> tuple[int, int]:
        process = process_of(option, environment)
        return process.number, process.count

    assert numbers(None, {}) == (0, 1)
    assert numbers(None, torchrun | slurm) == (1, 4)
    assert numbers(None, slurm) == (2, 3)
    assert numbers(None, {"SLURM_PROCID": "2", "SLURM_NTASKS": "8"}) == (2, 8)
    assert numbers("0/2", torchrun) == (0, 2)


@pytest.mark.parametrize("option", ["2/2", "1", "a/2", "-1/2", "0/0", "1/", "1/2/3", "0/99999999999"])
def test_a_share_that_does_not_exist_is_refused(predict: Call, tmp_path: Path, option: str) -> None:
    run = predict(f"--shard={option}")
    assert run.code == 2
    assert option in run.err
    assert not (tmp_path / "out").exists()


def test_half_of_a_launchers_variables_is_refused() -> None:
    with pytest.raises(UserError, match="WORLD_SIZE"):
        process_of(None, {"RANK": "0"})
    with pytest.raises(UserError, match="RANK"):
        process_of(None, {"WORLD_SIZE": "2"})


# ---------------- Going on


def test_finished_shards_are_not_predicted_again(predict: Call, shards: Path, tmp_path: Path) -> None:
    assert predict().code == 0
    whole, written = outputs(tmp_path / "out"), times(tmp_path / "out")
    (tmp_path / "out" / "a.tsv").unlink()
    run = predict("--overwrite")
    assert run.code == 0
    assert "2 predictions" in run.err
    assert "3 of them finished before" in run.err
    assert outputs(tmp_path / "out") == whole
    again = times(tmp_path / "out")
    assert {name for name in WORDS if again[name] != written[name]} <= {"a.tsv"}


def test_a_record_says_what_an_output_was_made_from(predict: Call, tmp_path: Path) -> None:
    assert predict("--beam", 3).code == 0
    record = json.loads((tmp_path / "out" / ".seq2see" / "b.tsv.gz.json").read_text())
    assert record["rows"] == 4
    assert record["columns"] == ["word", "prediction", "score"]
    assert record["job"]["options"]["beam"] == 3
    assert record["output"]["bytes"] == (tmp_path / "out" / "b.tsv.gz").stat().st_size
    assert sorted(path.name for path in (tmp_path / "out" / ".seq2see").iterdir()) == sorted(
        f"{name}.json" for name in WORDS
    )


@pytest.mark.parametrize("change", ["options", "model", "input", "output", "record", "no record"])
def test_what_was_predicted_otherwise_is_refused_and_can_be_replaced(
    predict: Call, call: Call, speller: Path, shards: Path, tmp_path: Path, change: str
) -> None:
    assert predict().code == 0
    out, model, options = tmp_path / "out", speller, []
    if change == "options":
        options = ["--beam", 4]
    elif change == "model":
        model = tmp_path / "edited"
        shutil.copytree(speller, model)
        recipe = (model / "recipe.yaml").read_text("utf-8")
        (model / "recipe.yaml").write_text(recipe + "# edited\n", encoding="utf-8")
    elif change == "input":
        (shards / "a.tsv").write_text("word\nabba\nfeed\n")
    elif change == "output":
        (out / "a.tsv").write_text("word\tprediction\tscore\nmine\tmine\t0\n")
    elif change == "record":
        (out / ".seq2see" / "a.tsv.json").write_text('{"job": 7}')
    else:
        (out / ".seq2see" / "a.tsv.json").unlink()
    kept = outputs(out)
    arguments = ("predict", model, "--file", shards, "--to", f"{out}/", *options)
    run = call(*arguments)
    assert run.code == 2
    assert "a.tsv: " in run.err
    assert "--overwrite" in run.err
    assert ("beam is 1 there and 4 now" in run.err) is (change == "options")
    assert outputs(out) == kept
    assert call(*arguments, "--overwrite").code == 0
    words = [line.split("\t")[0] for line in text_of(out / "a.tsv").splitlines()]
    assert words == (shards / "a.tsv").read_text().splitlines()
    assert call(*arguments).code == 0


def test_a_record_without_its_output_is_an_attempt_that_was_ended(predict: Call, tmp_path: Path) -> None:
    assert predict().code == 0
    whole = outputs(tmp_path / "out")
    (tmp_path / "out" / "b.tsv.gz").unlink()
    left = tmp_path / "out" / ".seq2see" / "b.tsv.gz.part"
    left.mkdir()
    (left / "b.tsv.gz").write_bytes(b"half of it")
    (left / ".lock").write_bytes(b"")
    assert predict().code == 0
    assert outputs(tmp_path / "out") == whole
    assert not left.exists()


def test_a_shard_that_another_process_predicts_is_left_to_it(predict: Call, tmp_path: Path) -> None:
    with lock_folder(tmp_path / "out" / ".seq2see" / "b.tsv.gz.part"):
        run = predict()
    assert run.code == 2
    assert "b.tsv.gz" in run.err
    assert set(outputs(tmp_path / "out")) == {"a.tsv"}


def test_a_shard_that_changes_while_it_is_read_is_not_finished(
    predict: Call, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = seq2see.Model.predict

    def changing(self: seq2see.Model, *arguments: object, **options: object) -> object:
        with (shards / "a.tsv").open("a") as file:
            file.write("bead\n")
        return usual(self, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(seq2see.Model, "predict", changing)
    run = predict()
    assert run.code == 2
    assert "a.tsv: has changed" in run.err
    assert outputs(tmp_path / "out") == {}


# ---------------- Damage


def test_a_damaged_shard_ends_the_run_and_finished_ones_stay(predict: Call, shards: Path, tmp_path: Path) -> None:
    whole = (shards / "b.tsv.gz").read_bytes()
    (shards / "b.tsv.gz").write_bytes(whole[:-9])
    run = predict()
    assert run.code == 2
    assert "b.tsv.gz" in run.err
    assert set(outputs(tmp_path / "out")) == {"a.tsv"}
    (shards / "b.tsv.gz").write_bytes(whole)
    run = predict()
    assert run.code == 0
    assert "1 of them finished before" in run.err
    assert set(outputs(tmp_path / "out")) == set(WORDS)


def test_the_error_names_shard_line_and_column(predict: Call, shards: Path) -> None:
    (shards / "c.jsonl").write_text('{"word": "dada"}\n{"word": {"no": "text"}}\n')
    run = predict()
    assert run.code == 2
    assert f"{shards / 'c.jsonl'}, line 2, column 'word'" in run.err


def test_bad_rows_and_unreadable_shards_are_left_out_where_asked(predict: Call, shards: Path, tmp_path: Path) -> None:
    (shards / "b.tsv.gz").write_bytes(b"no gzip file")
    (shards / "c.jsonl").write_text('{"word": "dada"}\n{"word": {"no": "text"}}\n')
    (shards / "d.csv").write_text("word\n")
    run = predict("--on-error", "skip")
    assert run.code == 0
    assert "2 left out" in run.err
    assert set(outputs(tmp_path / "out")) == {"a.tsv", "c.jsonl"}
    assert len(text_of(tmp_path / "out" / "c.jsonl").splitlines()) == 1


def test_blank_inputs_keep_their_place(call: Call, speller: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"word": "abcd"}\n{"word": ""}\n{"word": "feed"}\n')
    assert call("predict", speller, "--file", tmp_path / "in.jsonl", "--to", f"{tmp_path / 'out'}/").code == 0
    rows = [json.loads(line) for line in text_of(tmp_path / "out" / "in.jsonl").splitlines()]
    assert [row["word"] for row in rows] == ["abcd", "", "feed"]
    assert (rows[1]["prediction"], rows[1]["score"]) == ("", None)
    assert all(row["prediction"] and row["score"] < 0 for row in rows[::2])


# ---------------- What --file and --to may be


def test_a_pattern_a_folder_and_one_table(call: Call, speller: Path, shards: Path, tmp_path: Path) -> None:
    (shards / "notes.md").write_text("no table")
    (shards / ".hidden.tsv").write_text("word\nabcd\n")
    for number, (file, names) in enumerate(
        [(shards / "*.tsv*", {"a.tsv", "b.tsv.gz"}), (shards, set(WORDS)), (shards / "d.csv", {"d.csv"})]
    ):
        assert call("predict", speller, "--file", file, "--to", f"{tmp_path / str(number)}/").code == 0
        assert set(outputs(tmp_path / str(number))) == names


def test_outputs_below_a_recursive_pattern_are_not_shards(
    call: Call, speller: Path, shards: Path, tmp_path: Path
) -> None:
    arguments = ("predict", speller, "--file", shards / "**" / "*.csv", "--to", f"{shards / 'out'}/")
    assert call(*arguments).code == 0
    run = call(*arguments)
    assert run.code == 0
    assert "1 table of --file" in run.err
    assert set(outputs(shards / "out")) == {"d.csv"}


@pytest.mark.parametrize(
    ("file", "to", "options", "said"),
    [
        ("in", "in/", [], "is in this folder"),
        ("in", "out.tsv", [], "names several tables"),
        ("none*.tsv", "out/", [], "no file has a name like that"),
        ("nothing", "out/", [], "no such file"),
        ("empty", "out/", [], "no table in this folder"),
        ("lines", "out/", [], "words.txt"),
        ("tw*/*.tsv", "out/", [], "same.tsv"),
        ("in/a.tsv", "out/", ["--json"], "--json"),
        ("in/a.tsv", "out/", ["--looks", "looks"], "--looks"),
        ("in/a.tsv", "out/", ["in/b.tsv"], "quote a pattern"),
        ("in/a.tsv", "out.tsv", ["--shard", "0/2"], "--shard 0/2"),
        ("in/a.tsv", "out/", ["--columns", "nothing"], "no column 'nothing'"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    call: Call,
    speller: Path,
    shards: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    to: str,
    options: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "lines", "two", "twice"):
        Path(name).mkdir()
    Path("lines/words.txt").write_text("abcd\n")
    for name in ("two", "twice"):
        Path(name, "same.tsv").write_text("word\nabcd\n")
    run = call("predict", speller, "--file", file, "--to", to, *options)
    assert (run.code, run.out) == (2, "")
    assert said in run.err
    assert not Path("out").exists() or outputs(Path("out")) == {}
    assert set(outputs(Path("in"))) == set(WORDS)


# ---------------- Real processes


def _command(*words: object) -> list[str]:
    return [sys.executable, *map(str, words)]


@pytest.mark.slow
def test_torchrun_predicts_every_row_once(
    call: Call, speller: Path, shards: Path, predict: Call, tmp_path: Path
) -> None:
    launch = _command("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, "-m", "seq2see", "predict")
    words = [speller, "--file", shards / "*", "--to", f"{tmp_path / 'two'}/"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"}
    run = subprocess.run([*launch, *map(str, words)], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "[0/2]" in run.stderr
    assert "[1/2]" in run.stderr
    predict()
    assert outputs(tmp_path / "two") == outputs(tmp_path / "out")


@pytest.mark.slow
def test_a_killed_process_goes_on(call: Call, speller: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    words = ["".join("abcdef"[(number * step) % 6] for step in (1, 2, 3, 5)) for number in range(400)]
    for number in range(12):
        (tmp_path / "in" / f"{number:02d}.tsv").write_text("\n".join(["word", *words]) + "\n")
    command = _command("-m", "seq2see", "predict", speller, "--file", tmp_path / "in", "--to", f"{tmp_path / 'out'}/")
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (tmp_path / "out" / "01.tsv").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = times(tmp_path / "out")
    assert 2 <= len(finished) < 12
    assert call("predict", speller, "--file", tmp_path / "in", "--to", tmp_path / "out").code == 0
    after = times(tmp_path / "out")
    assert len(after) == 12
    assert all(after[name] == finished[name] for name in finished)
    assert len(set(outputs(tmp_path / "out").values())) == 1
