"""The inference service: from validated requests to records that can be written as JSON, apart from HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from time import monotonic
from typing import Any, TypeVar

from seq2see.data.columns import OUTPUT
from seq2see.data.image_files import data_url
from seq2see.data.vocabulary import EOS, SPECIALS
from seq2see.errors import UserError, counted
from seq2see.evaluation import perplexity
from seq2see.looks import Prediction, Token
from seq2see.modalities.base import Example
from seq2see.pipeline.explain import explain
from seq2see.pipeline.fields import Fields
from seq2see.pipeline.inputs import Notices, Oracle, read_oracle, unknown_symbols, unreached_steps
from seq2see.pipeline.nearest_rows import NearestRow, index_of, nearest_rows
from seq2see.pipeline.predictor import answer_options, predict
from seq2see.pipeline.scoring import Score, avoided_ids, follow, prefix_ids, score_rows
from seq2see.search import SearchOptions
from seq2see.studio import schemas
from seq2see.studio.dynamic_batching import QueuedInput, hypotheses
from seq2see.studio.http import InvalidRequest, RequestError, is_large, offload
from seq2see.studio.inputs import InputReader, Row, preview_inputs
from seq2see.studio.limits import Limits
from seq2see.studio.model_repository import ServedModel
from seq2see.studio.schemas import Symbols

SEARCH = (
    *("beam", "n_best", "sample", "temperature", "top_k", "top_p", "seed", "min_length", "max_length"),
    *("length_penalty", "coverage_penalty", "avoid_unknown", "runners_up"),
)

FIRST_PIECE = 4
"""Tokens of the first piece of a stream; each piece after it doubles what is written."""

Record = dict[str, Any]
Result = TypeVar("Result")


@dataclass
class InferenceService:
    """Answers one request with one model; reader: of the request's inputs; client: who asks, for the queue.

    Everything that the request waits for, files and the model's queue, takes at most `limits.timeout` seconds."""

    served: ServedModel
    reader: InputReader
    limits: Limits
    client: str = ""

    def __post_init__(self) -> None:
        self._deadline = monotonic() + self.limits.timeout

    async def predict(self, request: schemas.PredictRequest) -> Record:
        values = self._input_values(request)
        if request.target is not None:
            _check_target_alone(request)
            return await self._force(request, request.target, values) | self._next_page(request)
        rows, inputs = await self._read(
            values,
            lambda rows: self._queue_inputs(request, rows),
            key="" if request.inputs is None else "inputs",
            first=request.after or 0,
            shown=request.shown,
        )
        predictions = await self._wait_for(self._submit(inputs))

        def describe() -> Record:
            notices = self._notices(rows, request.prefix) + unreached_steps(inputs[0].oracle, predictions)
            return self._describe(rows, predictions, notices, looks=request.looks, shown=request.shown)

        large = request.looks or request.shown or any(prediction.image is not None for prediction in predictions)
        return await self._offload(describe, large=large or is_large(rows)) | self._next_page(request)

    async def stream(self, request: schemas.StreamRequest) -> AsyncIterator[tuple[str, Record]]:
        """Events of one output: ("token", {step, text, probability}) for each symbol, then ("done", its record).

        The output is written in pieces, each twice as long as the one before and each an input of the queue of its own,
        which continues what is written: other clients are answered in between, and no piece waits for the whole."""
        options = self._stream_options(request)
        (row,), _ = await self._read(
            [request.input], lambda rows: self._check_search(rows, options), shown=request.shown
        )
        written: list[Token] = []
        given, length, seed = request.prefix, 0, request.seed
        while True:
            length = min(max(2 * length, FIRST_PIECE), options.max_length)
            self._deadline = monotonic() + self.limits.timeout
            update = {"beam": None if options.sample else 1, "n_best": 1, "max_length": length, "prefix": given}
            least = min(options.min_length, length)
            piece = request.model_copy(update=update | {"min_length": least or None, "seed": seed})
            inputs = await self._offload(partial(self._queue_inputs, piece, [row]))
            if len(inputs[0].prefix) >= length and length < options.max_length:
                continue  # what was given is longer than the piece
            (prediction,) = await self._wait_for(self._submit(inputs))
            for step, token in enumerate(prediction.tokens[len(written) :], len(written)):
                yield "token", {"step": step, "text": token.text, "probability": token.probability}
            written = list(prediction.tokens)
            if length == options.max_length or len(written) < length or written[-1].text == SPECIALS[EOS]:
                break
            given, seed = [token.text for token in written], None if seed is None else seed + 1

        def describe() -> Record:
            notices = self._notices([row], request.prefix) + unreached_steps(inputs[0].oracle, [prediction])
            return self._describe([row], [prediction], notices, looks=request.looks, shown=request.shown)

        yield "done", await self._offload(describe)

    def _stream_options(self, request: schemas.StreamRequest) -> SearchOptions:
        """The options of the whole output; a UserError where it cannot be written from its beginning to its end."""
        recipe = self.served.model.recipe
        if recipe.output.one_step:
            raise UserError(f"stream: the model gives {recipe.output.noun}, which is not written token by token")
        for name in ("beam", "n_best"):
            if getattr(request, name) not in (None, 1):
                raise UserError(f"{name}: {getattr(request, name)}; a stream is greedy or sampled; allowed: 1")
        overrides = {name: getattr(request, name) for name in SEARCH}
        options = answer_options(recipe, **overrides)
        return options if options.sample else answer_options(recipe, **overrides | {"beam": 1, "n_best": 1})

    async def oracle(self, request: schemas.OracleRequest) -> Record:
        """Before and after: the symbols before the first edited step stay as they were."""
        if not request.oracle:
            raise InvalidRequest("oracle: missing; give {step: weights}, one weight for each place")
        if request.said is not None and request.prefix is not None:
            raise UserError("prefix: cannot be used with said, which is the whole output that was edited")
        unedited = request.model_copy(update={"oracle": None, "prefix": request.said or request.prefix})
        (row,), inputs = await self._read(
            [request.input], lambda rows: self._queue_inputs(unedited, rows), shown=request.shown
        )
        (before,) = await self._wait_for(self._submit(inputs))
        edited = await self._offload(lambda: self._edit(request, row, [token.text for token in before.tokens]))
        (after,) = await self._wait_for(self._submit([edited]))

        def describe() -> Record:
            notices = self._notices([row], None) + unreached_steps(edited.oracle, [after])
            return self._describe([row, row], [before, after], notices, looks=True, shown=request.shown)

        record = await self._offload(describe)
        first, second = record.pop("predictions")
        return record | {"before": first, "after": second}

    async def explain(self, request: schemas.ExplainRequest) -> Record:
        self._check_symbolic("explain")
        if len(self.served.model.bundles) > 1:
            raise UserError("explain takes one model, and this is an ensemble")
        if request.target is not None and request.beam is not None:
            raise UserError("beam: cannot be used with target: there is no search")
        bundles = self.served.model.bundles
        (row,), (options, oracle) = await self._read([request.input], lambda rows: self._explain_options(request, rows))

        def work() -> Record:
            if request.target is not None:
                prediction = follow(bundles, row, request.target, oracle=oracle)
            else:
                prediction = predict(bundles, [row], options, replace_unknown=False)[0]
            return explain(bundles[0], row, prediction, request.step, oracle=oracle).to_dict()

        (explanation,) = await self._wait_for([self._submit_work(work)])
        notices = await self._offload(
            partial(self._notices, [row], request.target, key="target"), large=is_large([row])
        )
        return {"model": self.served.name, "explanation": explanation, "notices": notices}

    async def nearest(self, request: schemas.NearestRequest) -> Record:
        model, bundle = self.served.model, self.served.model.bundle
        if len(model.bundles) > 1:
            raise UserError("nearest takes one model, and this is an ensemble")
        one_step = model.recipe.output.one_step
        if request.step is None or one_step:
            for name in ("target", "beam"):
                if getattr(request, name) is not None:
                    reason = f"{model.recipe.output.noun} is given in one step" if one_step else "needs step"
                    raise UserError(f"{name}: {reason}")
        if request.target is not None and request.beam is not None:
            raise UserError("beam: cannot be used with target: there is no search")

        def prepare(rows: Sequence[Row]) -> SearchOptions:
            options = answer_options(model.recipe, beam=request.beam)
            self._check_search(rows, options, request.target)
            index_of(bundle)  # read here, where the model's own thread does not wait for it
            return options

        (row,), options = await self._read([request.input], prepare)

        def work() -> list[NearestRow]:
            target = request.target
            if request.step is not None and target is None and not one_step:
                prediction = predict(model.bundles, [row], options, replace_unknown=False)[0]
                target = [token.text for token in prediction.tokens]
            return nearest_rows(bundle, row, step=request.step, target=target, k=request.k)

        (near,) = await self._wait_for([self._submit_work(work)])
        notices = await self._offload(
            partial(self._notices, [row], request.target, key="target"), large=is_large([row])
        )
        return {
            "model": self.served.name,
            "rows": [self._without_folders(each.to_dict()) for each in near],
            "notices": notices,
        }

    def _without_folders(self, record: Record) -> Record:
        """A training row with the names of its files alone."""
        settings = self.served.model.recipe.inputs

        def named(name: str, value: str) -> str:
            return PurePath(value).name if settings[name].file else value

        if self.served.model.recipe.output.file:
            record = record | {"output": PurePath(record["output"]).name}
        value = record.get("input")
        if isinstance(value, dict):
            return record | {"input": {name: named(name, part) for name, part in value.items()}}
        return record | ({} if value is None else {"input": named(next(iter(settings)), value)})

    async def score(self, request: schemas.ScoreRequest) -> Record:
        self._check_symbolic("score")
        model = self.served.model
        if model.recipe.data.stream:
            raise UserError("score: the model reads one contiguous text; `seq2see score` takes a file of it")
        pairs = self._score_rows(request)
        inputs, outputs = [pair.input for pair in pairs], [pair.output for pair in pairs]
        key = "" if request.rows is None else "rows"
        _, rows = await self._read(inputs, lambda rows: self._with_outputs(rows, outputs), key=key)
        (scores,) = await self._wait_for([self._submit_work(lambda: score_rows(model.bundles, rows))])

        def describe() -> Record:
            total = sum(score.log_probability for score in scores)
            count = sum(len(score.log_probs) for score in scores)
            conditions = model.recipe.attention.conditions
            whole = Score(len(rows), count, total, perplexity(total, count), scores, conditions)
            each = [self._with_file_names(score.to_dict(row)) for score, row in zip(scores, rows, strict=True)]
            notices = self._notices(rows, None, outputs=True)
            return {"model": self.served.name, "score": whole.to_dict(), "each": each, "notices": notices}

        return await self._offload(describe, large=is_large(rows))

    # ------------------------------------------------------------ reading requests

    def _input_values(self, request: schemas.PredictRequest) -> list[Any]:
        if request.inputs is None:
            if request.after is not None:
                raise InvalidRequest("after: needs `inputs`, the list of which it names a page")
            return [request.input]
        if request.input is not None:
            raise InvalidRequest("input and inputs: give one of them")
        if request.after is None:
            self._check_count("inputs", request.inputs, "; `after` answers longer lists page by page")
            return request.inputs
        most, count = self.limits.list_inputs, len(request.inputs)
        if not 1 <= count <= most:
            raise InvalidRequest(f"inputs: {count:,} given; allowed: 1 to {most:,}")
        if request.after >= count:
            raise UserError(f"after: {request.after}, and there are {counted(count, 'input')}, counted from 0")
        return request.inputs[request.after : request.after + self.limits.request_inputs]

    def _next_page(self, request: schemas.PredictRequest) -> Record:
        """Where the next page of a list begins; null: there is none."""
        if request.inputs is None or request.after is None:
            return {}
        after = request.after + self.limits.request_inputs
        return {"next": after if after < len(request.inputs) else None}

    def _score_rows(self, request: schemas.ScoreRequest) -> list[schemas.ScoreRow]:
        if request.rows is None:
            if request.output is None:
                raise InvalidRequest("output: missing; give `input` and `output`, or `rows`")
            return [schemas.ScoreRow(input=request.input, output=request.output)]
        if request.input is not None or request.output is not None:
            raise InvalidRequest("rows: give either these or `input` and `output`")
        self._check_count("rows", request.rows)
        return request.rows

    def _check_count(self, key: str, values: Sequence[Any], more: str = "") -> None:
        most = self.limits.request_inputs
        if not 1 <= len(values) <= most:
            raise InvalidRequest(f"{key}: {len(values):,} given; allowed: 1 to {most}{more}")

    def _check_symbolic(self, key: str) -> None:
        """Refuse what needs probabilities of symbols where the model's output is numbers."""
        output = self.served.model.recipe.output
        if output.numeric:
            raise UserError(f"{key}: the model gives {output.noun}, which has no probability")

    async def _read(
        self,
        values: Sequence[Any],
        prepare: Callable[[list[Row]], Result],
        *,
        key: str = "",
        first: int = 0,
        shown: bool = False,
    ) -> tuple[list[Row], Result]:
        """(the rows of these inputs, what `prepare` makes of them); files are decoded in between. key: of the list that
        they are, by which messages name one of them: inputs[1]; first: the number of the first of them."""

        def read_one(number: int, value: Any) -> Row:
            try:
                return self.reader.read(value)
            except InvalidRequest as error:
                raise InvalidRequest(f"{key}[{number}]: {error}" if key else str(error)) from None
            except UserError as error:
                raise UserError(f"{key}[{number}]: {error}" if key else str(error)) from None

        def read() -> list[Row]:
            return [read_one(number, value) for number, value in enumerate(values, first)]

        def read_and_prepare() -> tuple[list[Row], Result]:
            rows = read()
            return rows, prepare(rows)

        if self.reader.media is None:
            return await asyncio.to_thread(read_and_prepare)
        rows = await self._offload(read)
        await self.reader.decode(rows, shown=shown, deadline=self._deadline)
        return rows, await self._offload(lambda: prepare(rows))

    def _queue_inputs(self, request: schemas.SearchRequest, rows: Sequence[Row]) -> list[QueuedInput]:
        recipe, bundle = self.served.model.recipe, self.served.model.bundle
        tree = getattr(request, "tree", False) or None
        options = answer_options(recipe, **{name: getattr(request, name) for name in SEARCH}, tree=tree)
        if request.seed is not None and not options.sample:
            raise UserError("seed: needs sample: a search is deterministic")
        oracle = {} if request.oracle is None else read_oracle(request.oracle, recipe.looked_at)
        check_output_length("prefix", request.prefix, self.limits)
        avoided = request.avoid_prefixes or []
        check_avoided(avoided, self.limits, rows=len(rows))
        symbols = self._check_search(rows, options)
        prefixes = [() if request.prefix is None else tuple(prefix_ids(bundle, row, request.prefix)) for row in rows]
        return [
            QueuedInput(
                row,
                options,
                number,
                prefix=prefix,
                avoid_prefixes=own,
                oracle=oracle,
                replace_unknown=request.replace_unknown,
                maps=request.maps,
                symbols=size,
            )
            for number, (row, prefix, own, size) in enumerate(
                zip(rows, prefixes, avoided_ids(bundle, rows, avoided), symbols, strict=True)
            )
        ]

    def _edit(self, request: schemas.OracleRequest, row: Row, output: list[str]) -> QueuedInput:
        """The input with edited attention; the output before the first edited step is its prefix."""
        first = min(read_oracle(request.oracle, self.served.model.recipe.looked_at))
        if not self.served.model.recipe.output.one_step:
            if first >= len(output):
                raise UserError(f"oracle: step {first}; the output has {counted(len(output), 'step')}, counted from 0")
            request = request.model_copy(update={"prefix": output[:first] or None})
        return self._queue_inputs(request, [row])[0]

    def _explain_options(
        self, request: schemas.ExplainRequest, rows: Sequence[Row]
    ) -> tuple[SearchOptions, Oracle | None]:
        recipe = self.served.model.recipe
        oracle = None if request.oracle is None else read_oracle(request.oracle, recipe.looked_at)
        options = answer_options(recipe, beam=request.beam, oracle=oracle)
        self._check_search(rows, options, request.target)
        return options, oracle

    def _with_outputs(self, inputs: Sequence[Row], outputs: Sequence[str]) -> list[Row]:
        for output in outputs:
            check_output_length("output", output, self.limits)
        rows = [row | {OUTPUT: output} for row, output in zip(inputs, outputs, strict=True)]
        fields = self.served.model.bundle.fields
        self._check_work(rows, width=1, steps=max(output_steps(fields, output) for output in outputs))
        return rows

    def _check_search(self, rows: Sequence[Row], options: SearchOptions, target: Symbols | None = None) -> list[int]:
        """Symbols of each row; a UserError where searching, or forcing the target, is too much for one request."""
        model = self.served.model
        if target is not None:
            check_output_length("target", target, self.limits)
            return self._check_work(rows, width=1, steps=output_steps(model.bundle.fields, target))
        steps = 1 if model.recipe.output.one_step else options.max_length
        return self._check_work(rows, width=hypotheses(options), steps=steps)

    def _check_work(self, rows: Sequence[Row], *, width: int, steps: int) -> list[int]:
        model = self.served.model
        symbols = count_symbols(model.bundle.fields, rows, self.limits)
        check_work(symbols, self.limits, width=width, steps=steps, models=len(model.bundles))
        return symbols

    # ------------------------------------------------------------ the model's queue

    async def _force(self, request: schemas.PredictRequest, target: Symbols, values: Sequence[Any]) -> Record:
        """Predictions along a given output."""
        self._check_symbolic("target")
        bundles, recipe = self.served.model.bundles, self.served.model.recipe

        def prepare(rows: Sequence[Row]) -> Oracle | None:
            self._check_search(rows, answer_options(recipe), target)
            return None if request.oracle is None else read_oracle(request.oracle, recipe.looked_at)

        key = "" if request.inputs is None else "inputs"
        rows, oracle = await self._read(values, prepare, key=key, first=request.after or 0, shown=request.shown)
        predictions = await self._wait_for(
            [self._submit_work(partial(follow, bundles, row, target, oracle=oracle)) for row in rows]
        )

        def describe() -> Record:
            notices = self._notices(rows, target, key="target")
            return self._describe(rows, predictions, notices, looks=request.looks, shown=request.shown)

        return await self._offload(describe)

    def _submit(self, inputs: Sequence[QueuedInput]) -> list[Future[Prediction]]:
        return self.served.batcher.submit(inputs, client=self.client, held=self.reader.held)

    def _submit_work(self, work: Callable[[], Result]) -> Future[Result]:
        return self.served.batcher.submit_work(work, client=self.client, held=self.reader.held)

    async def _wait_for(self, futures: Sequence[Future[Any]]) -> list[Any]:
        """All results, or the first exception; what is still in the queue after that is cancelled."""
        results = asyncio.gather(*map(asyncio.wrap_future, futures))
        try:
            return await asyncio.wait_for(results, max(self._deadline - monotonic(), 0.0))
        except TimeoutError:
            message = f"no answer within {self.limits.timeout:g} s; ask for less (inputs, beam, max_length), or later"
            raise RequestError(504, message) from None
        except asyncio.CancelledError:
            if results.done() and not results.cancelled():
                results.exception()  # Python 3.11 logs it otherwise, as one that was never retrieved
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise  # the request itself is cancelled: its client has left, or the server shuts down
            raise RequestError(503, "the server is closing") from None
        finally:
            for future in futures:
                future.cancel()

    async def _offload(self, work: Callable[[], Result], *, large: bool = True) -> Result:
        """Large work in a thread; models that read files have threads of their own: text never waits for files."""
        if self.reader.media is not None and large:
            return await self.reader.media.run_in_thread(work)
        return await offload(work, large=large)

    # ------------------------------------------------------------ describing results

    def _describe(
        self, rows: Sequence[Row], predictions: Sequence[Prediction], notices: list[str], *, looks: bool, shown: bool
    ) -> Record:
        records = []
        for row, prediction in zip(rows, predictions, strict=True):
            record = self._with_file_names(prediction.to_dict(looks=looks, runners_up=True))
            if prediction.image is not None and not isinstance(prediction.image, str):
                record["image"] = data_url(prediction.image)
            if shown:
                record["shown"] = preview_inputs(self.served.model.bundle.fields, row)
            records.append(record)
        return {"model": self.served.name, "predictions": records, "notices": notices}

    def _with_file_names(self, record: Record) -> Record:
        """Files by the names that the client knows, without the server's folders."""
        names = self.reader.file_names()

        def known(value: Any) -> Any:
            return names.get(value, value) if isinstance(value, str) else value

        value = record["input"]
        named = {name: known(part) for name, part in value.items()} if isinstance(value, dict) else known(value)
        return record | {"input": named}

    def _notices(
        self, rows: Sequence[Row], output: Symbols | None, *, key: str = "prefix", outputs: bool = False
    ) -> list[str]:
        """Warnings about the inputs; output: what the client gave under `key`; outputs: rows have outputs too."""
        notices = Notices(self.served.model.bundles, outputs=outputs)
        notices.read(rows)
        if isinstance(output, str) and not self.served.model.recipe.output.one_step:
            return unknown_symbols(self.served.model.bundle, output, rows, what=key) + notices.lines()
        return notices.lines()


def _check_target_alone(request: schemas.PredictRequest) -> None:
    """Refuse search options beside a target, which is the whole output."""
    others = [name for name in (*SEARCH, "prefix", "avoid_prefixes") if getattr(request, name) is not None]
    others += ["tree"] if request.tree else []
    if others:
        raise UserError(f"{', '.join(others)}: cannot be used with target: there is no search")


# ---------------------------------------------------------------- what a request costs

PLACES_PER_SYMBOL = 100
"""Places that are looked at in about the time in which one symbol is read or written."""


def count_symbols(fields: Fields, rows: Sequence[Mapping[str, str]], limits: Limits) -> list[int]:
    """Symbols that the model reads of each row, all inputs together; a UserError where one text has too many.

    Characters are checked when a text comes in. How many symbols they become depends on the model, and symbols are
    what takes time.
    """
    return [sum(_input_symbols(name, example, limits) for name, example in fields.read(row).items()) for row in rows]


def _input_symbols(name: str, example: Example, limits: Limits) -> int:
    if example.symbols and example.length > limits.text_symbols:
        most = counted(limits.text_symbols, "symbol")
        raise UserError(f"input '{name}': {example.length:,} symbols; allowed: at most {most} (serve --max-symbols)")
    return example.length


def output_steps(fields: Fields, output: Symbols) -> int:
    """Decoding steps of a given output, its end included."""
    if fields.output.settings.one_step:
        return 1
    return (fields.output.read(output).length if isinstance(output, str) else len(output)) + 1


def check_output_length(key: str, output: Symbols | None, limits: Limits) -> None:
    """Refuse outputs of a client that are longer than its inputs may be."""
    length = 0 if output is None else sum(map(len, output))
    if length > limits.text_characters:
        most = counted(limits.text_characters, "character")
        raise InvalidRequest(f"{key}: {length:,} characters; allowed: at most {most}")


def check_avoided(prefixes: Sequence[Symbols], limits: Limits, *, rows: int) -> None:
    """The same for prefixes to avoid. All of them together are limited too, and so is reading them for every row."""
    for number, prefix in enumerate(prefixes):
        check_output_length(f"avoid_prefixes.{number}", prefix, limits)
    total = sum(len(symbol) for prefix in prefixes for symbol in prefix)
    if total > limits.text_characters:
        most = counted(limits.text_characters, "character")
        raise UserError(f"avoid_prefixes: {total:,} in all; allowed: at most {most}")
    symbols = sum(map(len, prefixes))
    if symbols * rows > limits.request_work:
        raise UserError(
            f"avoid_prefixes: {counted(symbols, 'symbol')} for each of {counted(rows, 'input')}; allowed: at most "
            f"{limits.request_work:,} in all (serve --max-work)"
        )


def check_work(symbols: Sequence[int], limits: Limits, *, width: int, steps: int, models: int = 1) -> None:
    """Refuse what would keep a model busy for long.

    symbols: of each row; width: hypotheses for each row; steps: of the longest, each of which looks at all symbols."""
    per_row = (size + width * steps * (PLACES_PER_SYMBOL + size) // PLACES_PER_SYMBOL for size in symbols)
    work = models * sum(per_row)
    if work <= limits.request_work:
        return
    parts = [counted(len(symbols), "input"), f"{counted(sum(symbols), 'symbol')} in total"]
    parts.append(f"{counted(width, 'output')} of up to {counted(steps, 'symbol')} for each")
    if models > 1:
        parts.append(f"{models} models")
    most = limits.request_work
    raise UserError(
        f"too much for one request: {', '.join(parts)} is the work of {work:,} symbols; allowed: at most "
        f"{most:,} (serve --max-work); ask for fewer or shorter inputs, a narrower beam, or a smaller max_length"
    )
