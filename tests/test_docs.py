"""What the front page and the docs show is true: commands run, snippets run, generated pages are up to date."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from seq2see.cli.app import parse_command
from seq2see.errors import UserError
from seq2see.pipeline.fields import unbuilt_fields
from seq2see.pipeline.five_answers import answers_of
from seq2see.recipe import load_recipe, shipped
from tests.commands import Commands

PROJECT = Path(__file__).resolve().parent.parent
README = (PROJECT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """Fenced blocks of that language (an empty name: commands)."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stranger's folder: two small CSVs, as the front page speaks of."""
    made = tmp_path_factory.mktemp("readme")
    letters = dict(zip("abdeghiklmnoprstuy", "абдегхиклмнопрстуы", strict=True))
    words = [
        "india",
        "delhi",
        "mumbai",
        "berlin",
        "madrid",
        "london",
        "tokyo",
        "moskau",
        "kairo",
        "lima",
        "oslo",
        "ankara",
    ]
    words += [a + b for a in words[:6] for b in words[6:]]
    rows = [f"{word},{''.join(letters[letter] for letter in word)}\n" for word in words]
    (made / "names.csv").write_text("english,cyrillic\n" + "".join(rows[:-8]), encoding="utf-8")
    (made / "test.csv").write_text("english,cyrillic\n" + "".join(rows[-8:]), encoding="utf-8")
    return made


@pytest.mark.filterwarnings("error::seq2see.errors.Notice")
def test_the_commands_of_the_front_page_run(folder: Path, here: Path, call: Commands) -> None:
    shutil.copytree(folder, here, dirs_exist_ok=True)
    commands = [line for block in blocks("") for line in block.splitlines() if "seq2see " in line]
    assert len(commands) >= 4
    for command in commands:
        program, *words = shlex.split(command, comments=True)
        assert program == "seq2see"
        done = call(*words, *["--updates", "30"] * (words[0] == "train"))
        assert done.code == 0, f"{command}\n{done.err}"
    assert (here / "india.png").stat().st_size > 1000
    assert "prediction" in (here / "answers.csv").read_text("utf-8").splitlines()[0]


@pytest.mark.filterwarnings("error::seq2see.errors.Notice")
def test_the_python_of_the_front_page_runs(folder: Path, here: Path, call: Commands) -> None:
    shutil.copytree(folder, here, dirs_exist_ok=True)
    (snippet,) = blocks("python")
    assert len([line for line in snippet.splitlines() if line.strip()]) <= 12
    (here / "snippet.py").write_text(snippet, encoding="utf-8")
    call.script(here / "snippet.py")
    assert (here / "names-model" / "model.safetensors").is_file()


def test_the_make_targets_of_the_front_page_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text("utf-8"), flags=re.MULTILINE))
    assert set(re.findall(r"^make ([a-z]+)", "\n".join(blocks("")), flags=re.MULTILINE)) <= targets


def test_every_recipe_is_on_the_front_page_and_every_name_there_is_a_recipe() -> None:
    assert set(re.findall(r"^\| `([a-z-]+)`", README, flags=re.MULTILINE)) == set(shipped())


def test_what_the_front_page_points_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    for link in links:
        assert "://" in link or (PROJECT / link).exists(), link


PAGES = sorted([*(PROJECT / "docs").rglob("*.md"), *PROJECT.glob("*.md")])


def commands_of(page: Path) -> list[str]:
    """Lines of a page's fenced blocks that call seq2see, with their continuations joined."""
    text = page.read_text("utf-8")
    found = []
    for block in re.findall(r"^```(?:sh|bash|console)?\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            called = re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\S*/)?seq2see (.*)", line.strip())
            if called:
                found.append(called[1])
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_commands_that_a_page_shows_can_be_parsed(page: Path) -> None:
    for command in commands_of(page):
        words = shlex.split(command, comments=True)
        words = words[: next((i for i, word in enumerate(words) if word in ("|", ">", "&", "&&", ";")), len(words))]
        if not words or words[0].isupper() or "..." in words:
            continue
        try:
            parse_command(f"seq2see.cli.{words[0]}", words[0], words[1:])
        except UserError as error:
            pytest.fail(f"{command}: {error}")


def _make_tasks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_tasks", PROJECT / "docs" / "make_tasks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(shipped()))
def test_the_page_of_a_task_is_up_to_date(name: str) -> None:
    written = (PROJECT / "docs" / "tasks" / f"{name}.md").read_text("utf-8")
    assert written == _make_tasks().page(name), "run `python docs/make_tasks.py`"


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_page_of_a_task_gives_inputs_that_can_be_read(name: str) -> None:
    tasks = _make_tasks()
    for input_name, field in unbuilt_fields(load_recipe(name)).items():
        example = tasks._example(input_name, field)
        assert field.output or field.settings.file == ("." in example and " " not in example)
        assert field.output or field.settings.file or field.problem(example) is None


def test_sizes_that_data_tell_are_each_called_what_they_count() -> None:
    (line,) = [line for line in answers_of(load_recipe("series-classification")).text().splitlines() if "|: " in line]
    assert "|series|: numbers of each step, |output|: labels" in line
