"""`BatchPredictor`: batches of rows with predictions, the same as `predict --to` gives, and by real engines."""

from __future__ import annotations

import csv
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seq2see
from seq2see import BatchPredictor
from seq2see.errors import UserError
from tests.commands import Run

Call = Callable[..., Run]
PROJECT = Path(__file__).resolve().parent.parent
SMALL = {
    "encoder": {"size": 12, "embedding": {"size": 8}},
    "decoder": {"size": 16, "embedding": {"size": 8}},
    "training": {"learning_rate": 0.01, "dev_rows": 10, "samples": 1, "epochs": 0, "report_every": 60},
    "search": {"max_length": 12},
}
WORDS = ["abcd", "feed", "", "bead", "cafe", "abcd"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that spells words."""
    draw = random.Random(1)
    words = sorted({"".join(draw.choice("abcdef") for _ in range(4)) for _ in range(120)})
    recipe = {
        "task": "spelling",
        "inputs": {"source": {"column": "word", "tokens": "character"}},
        "output": {"column": "spelled", "tokens": "symbol"},
        "attention": {"score": "additive", "size": 8},
        **SMALL,
    }
    rows = [{"word": word, "spelled": " ".join(word.upper())} for word in words]
    folder = tmp_path_factory.mktemp("batches") / "speller"
    seq2see.train(recipe, rows, out=folder, updates=60, listeners=[])
    return folder


def arrays(words: list[str], **others: list[Any]) -> dict[str, Any]:
    return {name: np.array(values, dtype=object) for name, values in {"word": words, **others}.items()}


def listed(batch: Any) -> dict[str, list[Any]]:
    """Columns as lists, with None for NaN."""
    columns = batch.to_pydict() if hasattr(batch, "to_pydict") else {name: list(batch[name]) for name in batch}
    return {name: [None if value != value else value for value in values] for name, values in columns.items()}


@pytest.mark.parametrize("options", [{}, {"n_best": 2, "beam": 3}], ids=["greedy", "n-best"])
@pytest.mark.filterwarnings("ignore::seq2see.errors.Notice")
def test_a_batch_gets_the_columns_of_predict_to(
    call: Call, model: Path, tmp_path: Path, options: dict[str, int]
) -> None:
    (tmp_path / "in.csv").write_text("word,prediction\n" + "".join(f"{word},mine\n" for word in WORDS))
    flags = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    assert call("predict", model, "--file", tmp_path / "in.csv", "--to", tmp_path / "out.csv", *flags).code == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        expected = list(csv.DictReader(file))
    batch = BatchPredictor(model, **options)(arrays(WORDS, prediction=["mine"] * len(WORDS)))
    assert list(batch) == list(expected[0])
    for name, values in listed(batch).items():
        assert ["" if value is None else str(value) for value in values] == [row[name] for row in expected]


@pytest.mark.filterwarnings("ignore::seq2see.errors.Notice")
def test_every_kind_of_batch_comes_back_as_it_is(model: Path) -> None:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    predictor = BatchPredictor(model)
    number = [1, 2, 3, 4, 5, 6]
    frame = pandas.DataFrame({"id": number, "word": WORDS}, index=[7, 7, 8, 9, 1, 0])
    of_frame = predictor(frame)
    assert list(frame) == ["id", "word"]
    assert list(of_frame.index) == [7, 7, 8, 9, 1, 0]
    table = pyarrow.table({"id": number, "word": WORDS})
    of_table = predictor(table)
    assert of_table.schema.field("score").type == pyarrow.float64()
    of_arrays = predictor(arrays(WORDS, id=number))
    assert of_arrays["score"].dtype == np.float64
    assert listed(of_frame) == listed(of_table) == {name: listed(of_arrays)[name] for name in of_frame}
    assert listed(of_frame)["id"] == number
    assert listed(of_frame)["prediction"][2] == ""
    assert listed(of_frame)["score"][2] is None


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.filterwarnings("ignore::seq2see.errors.Notice")
def test_a_row_does_not_depend_on_its_batch(model: Path, sample: bool) -> None:
    predictor = BatchPredictor(model, **({"sample": True, "seed": 3, "temperature": 3.0} if sample else {}))
    whole = listed(predictor(arrays(WORDS)))
    for number, word in enumerate(WORDS):
        alone = listed(predictor(arrays([word])))
        assert alone["prediction"] == [whole["prediction"][number]]
    assert len(set(whole["prediction"])) == 5
    if sample:
        other = listed(BatchPredictor(model, sample=True, seed=4, temperature=3.0)(arrays(WORDS)))
        assert other["prediction"] != whole["prediction"]


def test_an_empty_batch_has_the_columns_too(model: Path) -> None:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    predictor = BatchPredictor(model, n_best=2, beam=2)
    names = ["word", "prediction", "score", "prediction_2", "score_2"]
    assert list(predictor({"word": np.array([], dtype=object)})) == names
    assert list(predictor(pandas.DataFrame({"word": []}))) == names
    assert predictor(pyarrow.table({"word": pyarrow.array([], pyarrow.string())})).column_names == names
    assert list(predictor.map_in_pandas(iter([]))) == []


def test_other_columns_may_hold_anything(model: Path) -> None:
    odd = [b"\xff", {"a": 1}, object()]
    batch = BatchPredictor(model)(arrays(["abcd", "feed", "bead"], odd=odd))
    assert list(batch["odd"]) == odd


def test_bad_rows_stop_or_are_left_out(model: Path) -> None:
    words = ["abcd", {"no": "text"}, "feed"]
    with pytest.raises(UserError, match=r"row 2, column 'word'"):
        BatchPredictor(model)(arrays(words))
    lists: list[Any] = ["abcd", ["no", "text"], "feed"]
    with pytest.warns(seq2see.errors.Notice, match="1 bad row skipped"):
        left = BatchPredictor(model, on_error="skip")(arrays(lists, id=[1, 2, 3]))
    assert list(left["id"]) == [1, 3]
    assert list(left["prediction"]) == list(BatchPredictor(model)(arrays(["abcd", "feed"]))["prediction"])
    with pytest.warns(seq2see.errors.Notice, match="1 bad row skipped"):
        assert len(BatchPredictor(model, on_error="skip")(arrays(lists[1:2], id=[1]))["prediction"]) == 0
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow (extra parquet) is not installed")
    with pytest.warns(seq2see.errors.Notice, match="1 bad row skipped"):
        assert BatchPredictor(model, on_error="skip")(pyarrow.table({"word": [["no", "text"]]})).num_rows == 0


def test_columns_are_found_by_name_or_as_given(model: Path) -> None:
    batch = {"a": np.array(["feed", "bead"]), "b": np.array(["abcd", "cafe"])}
    with pytest.raises(UserError, match="no column 'word'"):
        BatchPredictor(model)({**batch, "c": batch["a"]})
    chosen = BatchPredictor(model, columns=["b"])(batch)
    assert list(chosen["prediction"]) == list(BatchPredictor(model)({"word": batch["b"]})["prediction"])


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (["abcd"], "got list"),
        ({"word": ["abcd"], "id": [1, 2]}, "different lengths"),
        ({"word": ["abcd"], 7: [1]}, "names of columns"),
    ],
)
def test_what_is_no_batch_is_refused(model: Path, batch: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        BatchPredictor(model)(batch)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"beem": 3}, "did you mean 'beam'"),
        ({"oracle": {}}, "unknown option 'oracle'"),
        ({"n_best": 0}, "n_best"),
        ({"n_best": "2"}, "n_best"),
        ({"on_error": "ignore"}, "on_error"),
        ({"plugins": ["no_such_module_here"]}, "no_such_module_here"),
    ],
)
def test_options_are_checked(model: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        BatchPredictor(model, **options)(arrays(["abcd"]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"threads": 0}, "threads: .*0"),
        ({"columns": "word"}, "columns: .*'word'"),
        ({"on_error": "no"}, "on_error: .*no"),
    ],
)
def test_what_needs_no_model_is_checked_at_once(model: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        BatchPredictor(model, **options)


def test_what_is_sent_to_workers_is_the_path_and_the_options(
    model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(model.parent)
    predictor = BatchPredictor("speller", beam=2)
    before = predictor(arrays(["feed"]))
    monkeypatch.chdir(tmp_path)
    copied = deepcopy(predictor)  # as pickle does it: by __getstate__
    assert predictor.__getstate__()["_model"] is None
    assert copied.__dict__["_model"] is None
    assert listed(copied(arrays(["feed"]))) == listed(before)
    assert copied.model is predictor.model


def test_a_model_that_was_trained_again_is_loaded_again(model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "copy")
    first = BatchPredictor(tmp_path / "copy")
    loaded = first.model
    os.utime(tmp_path / "copy" / "model.safetensors", (1, 1))
    assert first.model is loaded
    assert BatchPredictor(tmp_path / "copy").model is not loaded


def test_nothing_is_loaded_before_the_first_batch() -> None:
    code = "import sys, seq2see; seq2see.BatchPredictor('nowhere', beam=3); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=PROJECT)


# ---------------- The engines themselves, in local mode


@pytest.fixture
def workers_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that engines start import the same seq2see as this one."""
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")


@pytest.fixture
def ray(workers_path: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    library = pytest.importorskip("ray", reason="ray is not installed: pip install 'seq2see[ray]'")
    pytest.importorskip("ray.data", reason="ray[data] is not installed: pip install 'seq2see[ray]'")
    library.init(  # cores by name: two workers take one each, and what feeds them needs one too
        address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000
    )
    yield library
    library.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch_format", ["numpy", "pandas", "pyarrow"])
def test_ray_data_maps_batches(ray: Any, model: Path, batch_format: str) -> None:
    words = WORDS * 20
    rows = [{"id": number, "word": word} for number, word in enumerate(words)]
    dataset = ray.data.from_items(rows, override_num_blocks=4)
    predicted = dataset.map_batches(
        BatchPredictor,
        fn_constructor_args=[str(model)],
        fn_constructor_kwargs={"beam": 2},
        batch_format=batch_format,
        batch_size=16,
        concurrency=2,
    )
    taken = sorted(predicted.take_all(), key=lambda row: row["id"])
    expected = listed(BatchPredictor(model, beam=2)(arrays(words)))
    assert [row["id"] for row in taken] == list(range(len(words)))
    assert [row["prediction"] for row in taken] == expected["prediction"]
    scores = [None if row["score"] is None or np.isnan(row["score"]) else row["score"] for row in taken]
    assert scores == [None if score is None else pytest.approx(score, abs=1e-5) for score in expected["score"]]


@pytest.fixture
def spark(workers_path: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install 'seq2see[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, and there is no java on the PATH")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(tmp_path))
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "16")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_spark_maps_in_pandas(spark: Any, model: Path) -> None:
    words = WORDS * 20
    table = spark.createDataFrame(list(enumerate(words)), "id long, word string").repartition(3)
    predictor = BatchPredictor(model, beam=2, n_best=2)
    schema = predictor.spark_schema(table.schema)
    assert schema.names == ["id", "word", "prediction", "score", "prediction_2", "score_2"]
    rows = sorted(table.mapInPandas(predictor.map_in_pandas, schema).collect(), key=lambda row: row["id"])
    expected = listed(predictor(arrays(words)))
    assert [row["id"] for row in rows] == list(range(len(words)))
    for name in ("prediction", "prediction_2"):
        assert [row[name] for row in rows] == expected[name]
    assert [row["score"] for row in rows] == [
        None if score is None else pytest.approx(score, abs=1e-5) for score in expected["score"]
    ]
