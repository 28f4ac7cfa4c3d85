from __future__ import annotations

from pathlib import Path

import pytest

from seq2see.data.locate import locate
from seq2see.errors import UserError


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the folder of data sets beside it, in which there is one, `words`."""
    data = tmp_path / "data" / "words"
    data.mkdir(parents=True)
    for stem in ("train", "dev"):
        (data / f"{stem}.tsv").write_text("source\ttarget\na\tb\n", encoding="utf-8")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("SEQ2SEE_DATA", str(tmp_path / "data"))
    return data


def test_a_data_set_is_found_by_name_with_its_dev(beside: Path) -> None:
    assert locate("words") == (beside / "train.tsv", beside / "dev.tsv")


def test_a_run_called_after_its_data_does_not_hide_them(beside: Path) -> None:
    Path("words").mkdir()
    assert locate("words") == (beside / "train.tsv", beside / "dev.tsv")


@pytest.mark.parametrize("mark", ["train.csv", "state.json"])
def test_a_folder_of_data_here_comes_first(beside: Path, mark: str) -> None:
    Path("words").mkdir()
    (Path("words") / mark).write_text("{}", encoding="utf-8")
    assert not locate("words")[0].is_relative_to(beside)


def test_an_unknown_name_is_told_what_there_is(beside: Path) -> None:
    with pytest.raises(UserError, match="words"):
        locate("word")
