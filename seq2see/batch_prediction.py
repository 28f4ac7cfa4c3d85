"""Prediction of batches of rows inside other engines: Ray Data (`map_batches`) and Spark (`mapInPandas`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seq2see.errors import UserError, imported, listing, nearest
from seq2see.threads import configure

if TYPE_CHECKING:
    from seq2see.api import Model
    from seq2see.pipeline.prediction_columns import PredictionColumns

MODELS_KEPT = 2
"""Models that a process keeps; more than one where a job predicts with several."""


class BatchPredictor:
    """Adds the predictions of a model to batches of rows: those of Ray Data, of Spark, or your own.

    A batch is a dict of columns (NumPy arrays), a pandas DataFrame or a pyarrow Table, and comes back as one with the
    columns that `seq2see predict --to` adds: `prediction` and `score`, then `prediction_2` and so on with n_best. The
    other columns stay as they are. An empty input has an empty prediction and no score. What a row gets does not depend
    on its batch, samples included: they are drawn by the seed and the row's own inputs.

    model: a folder, or several joined by + (an ensemble), which all workers have to see under the same path.
    columns: the columns of the inputs in the recipe's order (default: found by the recipe's names).
    threads: of the processor, in each worker (None: torch's own number); engines start a worker per core.
    plugins: modules that register your own parts. on_error: "skip" leaves bad rows out, "stop" raises an error
    (default: as the recipe says). options: those of `Model.predict`, such as beam, n_best, sample, seed, max_length.

    The model is loaded when the first batch comes, once in each process: a predictor that is sent to workers consists
    of the path and the options alone.

        predictor = seq2see.BatchPredictor("runs/names", beam=5)
        predictor({"english": numpy.array(["india", "delhi"])})

    Ray: `ds.map_batches(seq2see.BatchPredictor, fn_constructor_args=["/shared/names"], concurrency=4)`.
    Spark: `df.mapInPandas(predictor.map_in_pandas, predictor.spark_schema(df.schema))`.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        columns: Sequence[str] | None = None,
        threads: int | None = 1,
        device: str = "cpu",
        plugins: Sequence[str] = (),
        on_error: str | None = None,
        n_best: int = 1,
        **options: Any,
    ):
        if isinstance(columns, str):
            raise UserError(f"columns: expected a list of names, got the text '{columns}'")
        if threads is not None and (type(threads) is not int or threads < 1):
            raise UserError(f"threads: expected a whole number of at least 1 or None, got {threads!r}")
        if on_error not in (None, "skip", "stop"):
            raise UserError(f"on_error: expected skip, stop or None, got {on_error!r}")
        self.folder = _absolute(model)
        self.columns = None if columns is None else list(columns)
        self.threads = threads
        self.device = device
        self.plugins = tuple(plugins)
        self.on_error = on_error
        self.options = {"n_best": n_best, **options}
        self._model: Model | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_model": None}

    @property
    def model(self) -> Model:
        """The model, loaded when it is needed first."""
        if self._model is None:
            if self.threads is not None:
                configure(self.threads)
            _check_options(self.options)
            self._model = _loaded(self.folder, _stamp(self.folder), self.device, self.plugins, self.on_error)
        return self._model

    def __call__(self, batch: Any) -> Any:
        """The batch with the columns of its predictions, as the kind of batch that it is."""
        columns = _Columns(batch)
        added = self._added(columns.names)
        rows, kept = self._rows(columns)
        drawn_as = [_number(row) for row in rows] if self.options.get("sample") else None
        predictions = self.model.predict(rows, drawn_as=drawn_as, **self.options) if rows else []
        values = [added.values(prediction) for prediction in predictions]
        types = self._types(columns.names)
        return columns.extended({name: ([row[name] for row in values], types[name]) for name in added.names}, kept)

    def map_in_pandas(self, frames: Iterable[Any]) -> Iterator[Any]:
        """Predict DataFrames one after the other, for Spark's `mapInPandas`."""
        for frame in frames:
            yield self(frame)

    def spark_schema(self, schema: Any) -> Any:
        """The schema of what `mapInPandas` gives: a DataFrame's own with the added columns. It loads the model."""
        types = imported("pyspark.sql.types", extra="spark")
        kinds = {str: types.StringType(), float: types.DoubleType()}
        added = [types.StructField(name, kinds[kind], True) for name, kind in self._types(schema.names).items()]
        return types.StructType([*schema.fields, *added])

    def _added(self, names: Sequence[str]) -> PredictionColumns:
        from seq2see.pipeline.prediction_columns import PredictionColumns

        scored = not self.model.recipe.output.numeric
        return PredictionColumns.beside(names, n_best=self.options["n_best"], scored=scored)

    def _types(self, names: Sequence[str]) -> dict[str, type]:
        """The added columns with the types of their values."""
        return {name: kind for rank in self._added(names).ranks for name, kind in zip(rank, (str, float), strict=False)}

    def _rows(self, columns: _Columns) -> tuple[list[dict[str, str]], list[int]]:
        """(the rows by the recipe's names, their indices in the batch: without bad rows that are left out)."""
        from seq2see.data.columns import OUTPUT, members
        from seq2see.pipeline.inputs import warn
        from seq2see.training.dataset import held_table

        recipe, names = self.model.recipe, list(self.model.recipe.inputs)
        if not columns.length:
            return [], []
        probe = [dict.fromkeys(columns.names, "")]
        read_table = partial(
            held_table, recipe, columns=self.columns, optional=[OUTPUT], fields=self.model.bundle.fields
        )
        _, resolution = read_table(probe)
        read = [resolution.mapping[name] for name in names]
        used = {one for column in read for one in [column, column.rpartition("[")[0], *members(column, columns.names)]}
        # The other columns may hold anything, such as bytes and dates, which a model need not be able to read.
        cells = [columns.cells(name) if name in used else [""] * columns.length for name in columns.names]
        records = [dict(zip(columns.names, values, strict=True)) for values in zip(*cells, strict=True)]
        table, resolution = read_table(records)
        rows, kept = [], []
        try:
            for row in resolution.rows(table):
                rows.append({name: row[name] for name in names})
                kept.append(row.line - 1)
        except UserError:
            if recipe.data.on_error != "skip" or rows:
                raise
        warn([*([resolution.note] if resolution.note else []), *table.notes])
        return rows, kept


class _Columns:
    """A batch as columns: a dict of arrays, a pandas DataFrame or a pyarrow Table."""

    def __init__(self, batch: Any):
        self.batch = batch
        if isinstance(batch, Mapping):
            names, lengths = list(batch), {len(values) for values in batch.values()}
        elif hasattr(batch, "column_names") and hasattr(batch, "num_rows"):
            names, lengths = list(batch.column_names), {batch.num_rows}
        elif hasattr(batch, "columns") and hasattr(batch, "iloc"):
            names, lengths = list(batch.columns), {len(batch)}
        else:
            allowed = "a dict of NumPy arrays, a pandas DataFrame or a pyarrow Table"
            raise UserError(f"batch: expected {allowed}, got {type(batch).__name__}")
        if len(lengths) > 1:
            raise UserError(f"batch: columns of different lengths: {', '.join(map(str, sorted(lengths)))}")
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise UserError(f"batch: the names of columns must be texts, each once, got {listing(map(str, names))}")
        self.names: list[str] = names
        self.length = lengths.pop() if lengths else 0

    def cells(self, name: str) -> list[Any]:
        """The values of a column."""
        if hasattr(self.batch, "column_names"):
            return list(self.batch.column(name).to_pylist())
        return list(self.batch[name])

    def extended(self, added: Mapping[str, tuple[list[Any], type]], kept: list[int]) -> Any:
        """The rows that are kept, with added columns (values and their type), as the same kind of batch."""
        batch, whole = self.batch, len(kept) == self.length
        if isinstance(batch, Mapping):
            old = {name: values if whole else np.asarray(values)[kept] for name, values in batch.items()}
            return old | {name: _array(values, kind) for name, (values, kind) in added.items()}
        if hasattr(batch, "column_names"):
            arrow = import_module("pyarrow")
            types = {str: arrow.string(), float: arrow.float64()}
            batch = batch if whole else batch.take(arrow.array(kept, type=arrow.int64()))
            for name, (values, kind) in added.items():
                batch = batch.append_column(name, arrow.array(values, type=types[kind]))
            return batch
        batch = batch.copy(deep=False) if whole else batch.iloc[kept].copy()
        for name, (values, kind) in added.items():
            batch[name] = _array(values, kind)
        return batch


def _array(values: list[Any], kind: type) -> NDArray[Any]:
    """Texts as objects, numbers as float64 with NaN for None."""
    if kind is float:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _number(row: Mapping[str, str]) -> int:
    """A number for the random draws of a row that depends on its inputs alone: nobody knows a row's place in the whole
    data set. Rows with equal inputs get equal samples."""
    return int.from_bytes(hashlib.sha256(json.dumps(row).encode()).digest()[:8], "big")


def _absolute(model: str | Path) -> str:
    """The model's path from the root: workers may have another working folder."""
    parts = [str(model)] if Path(model).exists() else str(model).split("+")
    return "+".join(str(Path(part).absolute()) for part in parts)


def _stamp(model: str) -> tuple[int, ...]:
    """What changes when a model is trained again, so that it is then loaded again."""
    from seq2see.pipeline.bundle import WEIGHTS, folders_of

    files = [Path(part) if Path(part).is_file() else Path(part) / WEIGHTS for part in folders_of(model)]
    return tuple(file.stat().st_mtime_ns for file in files if file.is_file())


@lru_cache(maxsize=MODELS_KEPT)
def _loaded(model: str, stamp: tuple[int, ...], device: str, plugins: tuple[str, ...], on_error: str | None) -> Model:
    """Load a model, once in a process: Spark sends a new copy of the predictor with every task."""
    for name in plugins:
        try:
            import_module(name)
        except ImportError as error:
            raise UserError(f"plugins: '{name}' cannot be imported: {error}") from None
    from seq2see.api import load

    loaded = load(model, device=device, on_error=on_error)
    if not loaded.recipe.inputs:
        raise UserError(f"{model}: a language model reads no rows; `seq2see predict` samples from it")
    if loaded.recipe.output.file:
        raise UserError(f"{model}: outputs images, which need files: use `seq2see predict --pictures`")
    return loaded


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that no prediction has, or that name single rows."""
    from seq2see.search.options import SearchOptions

    single = {"oracle", "runners_up"}
    allowed = sorted(set(SearchOptions.__dataclass_fields__) - single | {"replace_unknown"})
    for name in options:
        if name not in allowed:
            raise UserError(f"unknown option '{name}'{nearest(name, allowed)}; allowed: {', '.join(allowed)}")
    if type(options["n_best"]) is not int or options["n_best"] < 1:
        raise UserError(f"n_best: expected a whole number of at least 1, got {options['n_best']!r}")
