"""What the server does, apart from HTTP: from checked requests to records that can be written as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from seq2see.data.columns import OUTPUT
from seq2see.data.image_files import data_url
from seq2see.errors import UserError, counted
from seq2see.evaluation import perplexity
from seq2see.looks import Prediction
from seq2see.pipeline.explain import explain
from seq2see.pipeline.input_warnings import Notices, unknown_in
from seq2see.pipeline.oracles import Oracle, read_oracle, unreached
from seq2see.pipeline.predictor import answer_options, predict
from seq2see.pipeline.scoring import Score, follow, given_ids, score_rows
from seq2see.search import SearchOptions
from seq2see.studio import dynamic_batching, schemas
from seq2see.studio.dynamic_batching import Question
from seq2see.studio.http import Refused, aside, long
from seq2see.studio.inputs import Reader, Row, shown
from seq2see.studio.served import Served
from seq2see.studio.settings import Limits

SEARCH = (
    *("beam", "n_best", "sample", "temperature", "top_k", "top_p", "seed", "min_length", "max_length"),
    *("length_penalty", "coverage_penalty", "avoid_unknown", "runners_up"),
)

Made = TypeVar("Made")


@dataclass
class Service:
    """One model answering one request; reader: of its inputs. All that it waits for together, files and turns of the
    model, takes no longer than `limits.patience` from now on."""

    served: Served
    reader: Reader
    limits: Limits

    def __post_init__(self) -> None:
        self._until = monotonic() + self.limits.patience

    async def predict(self, body: schemas.Predict) -> dict[str, Any]:
        given = self._inputs(body)
        if body.target is not None:
            _alone(body)
            return await self._followed(body, body.target, given)
        rows, questions = await self._read(given, lambda rows: self._questions(body, rows), shown=body.shown)
        found = await self._answered(self._ask(questions))

        def told() -> dict[str, Any]:
            notices = self._noticed(rows, body.prefix) + unreached(questions[0].oracle, found)
            return self._told(body, rows, found, notices)

        seen = body.looks or body.shown or self.served.model.recipe.output.kind == "image"
        return await self._aside(told, large=seen or long(rows))

    async def oracle(self, body: schemas.Oracle) -> dict[str, Any]:
        """Before and after: the symbols before the first step whose weights are the caller's stay as they were."""
        if not body.oracle:
            raise schemas.Invalid("oracle: missing; give {step: weights}, one weight for each place")
        if body.said is not None and body.prefix is not None:
            raise UserError("prefix: no meaning with said, which is the whole output that was edited")
        free = body.model_copy(update={"oracle": None, "prefix": body.said or body.prefix})
        (row,), questions = await self._read([body.input], lambda rows: self._questions(free, rows), shown=body.shown)
        (before,) = await self._answered(self._ask(questions))
        edited = await self._aside(lambda: self._edited(body, row, [token.text for token in before.tokens]))
        (after,) = await self._answered(self._ask([edited]))

        def told() -> dict[str, Any]:
            notices = self._noticed([row], None) + unreached(edited.oracle, [after])
            return self._told(schemas.Predict(looks=True, shown=body.shown), [row, row], [before, after], notices)

        made = await self._aside(told)
        one, two = made.pop("predictions")
        return made | {"before": one, "after": two}

    async def explain(self, body: schemas.Explain) -> dict[str, Any]:
        self._spoken("explain")
        if len(self.served.model.bundles) > 1:
            raise UserError("explain takes one model, and this is an ensemble")
        if body.target is not None and body.beam is not None:
            raise UserError("beam: no meaning with target: nothing is searched for")
        bundles = self.served.model.bundles
        (row,), (options, oracle) = await self._read([body.input], lambda rows: self._explained(body, rows))

        def work() -> dict[str, Any]:
            if body.target is not None:
                said = follow(bundles, row, body.target, oracle=oracle)
            else:
                said = predict(bundles, [row], options, replace_unknown=False)[0]
            return explain(bundles[0], row, said, body.step, oracle=oracle).to_dict()

        (made,) = await self._answered([self._do(work)])
        notices = await self._aside(partial(self._noticed, [row], body.target, what="target"), large=long([row]))
        return {"model": self.served.name, "explanation": made, "notices": notices}

    async def score(self, body: schemas.Score) -> dict[str, Any]:
        self._spoken("score")
        model = self.served.model
        if model.recipe.data.stream:
            raise UserError("score: the model reads one contiguous text; `seq2see score` takes a file of it")
        pairs = self._pairs(body)
        inputs, outputs = [one.input for one in pairs], [one.output for one in pairs]
        _, rows = await self._read(inputs, lambda rows: self._scored(rows, outputs))
        (each,) = await self._answered([self._do(lambda: score_rows(model.bundles, rows))])

        def told() -> dict[str, Any]:
            total, count = sum(one.log_probability for one in each), sum(len(one.log_probs) for one in each)
            given = model.recipe.attention.conditions
            whole = Score(len(rows), count, total, perplexity(total, count), each, given)
            named = [self._named(one.to_dict(row)) for one, row in zip(each, rows, strict=True)]
            notices = self._noticed(rows, None, outputs=True)
            return {"model": self.served.name, "score": whole.to_dict(), "each": named, "notices": notices}

        return await self._aside(told, large=long(rows))

    # ------------------------------------------------------------ what is asked

    def _inputs(self, body: schemas.Predict) -> list[Any]:
        if body.inputs is None:
            return [body.input]
        if body.input is not None:
            raise schemas.Invalid("input and inputs: give one of them")
        if not 1 <= len(body.inputs) <= self.limits.inputs:
            raise schemas.Invalid(f"inputs: {len(body.inputs):,} given; allowed: 1 to {self.limits.inputs}")
        return body.inputs

    def _pairs(self, body: schemas.Score) -> list[schemas.Pair]:
        if body.rows is None:
            if body.output is None:
                raise schemas.Invalid("output: missing; give `input` and `output`, or `rows`")
            return [schemas.Pair(input=body.input, output=body.output)]
        if body.input is not None or body.output is not None:
            raise schemas.Invalid("rows: give either these or `input` and `output`")
        if not 1 <= len(body.rows) <= self.limits.inputs:
            raise schemas.Invalid(f"rows: {len(body.rows):,} given; allowed: 1 to {self.limits.inputs}")
        return body.rows

    async def _aside(self, work: Callable[[], Made], *, large: bool = True) -> Made:
        """Work that is large by a thread; where the model reads files, by one that no text waits for."""
        if self.reader.media is not None and large:
            return await self.reader.media.aside(work)
        return await aside(work, large=large)

    async def _read(
        self, given: Sequence[Any], make: Callable[[list[Row]], Made], *, shown: bool = False
    ) -> tuple[list[Row], Made]:
        """(the rows of these inputs, what is made of them); their files are decoded before that, shown: to be shown."""

        def read() -> list[Row]:
            return [self.reader.row(one) for one in given]

        def read_all() -> tuple[list[Row], Made]:
            rows = read()
            return rows, make(rows)

        if self.reader.media is None:
            return await asyncio.to_thread(read_all)
        rows = await self._aside(read)
        await self.reader.decode(rows, shown=shown, until=self._until)
        return rows, await self._aside(lambda: make(rows))

    def _edited(self, body: schemas.Oracle, row: Row, said: list[str]) -> Question:
        """The question that goes on from what was said before the first edited step."""
        first = min(read_oracle(body.oracle, self.served.model.recipe.looked_at))
        if self.served.model.recipe.output.kind == "text":
            if first >= len(said):
                raise UserError(f"oracle: step {first}; the output has {counted(len(said), 'step')}, counted from 0")
            body = body.model_copy(update={"prefix": said[:first] or None})
        return self._questions(body, [row])[0]

    def _explained(self, body: schemas.Explain, rows: Sequence[Row]) -> tuple[SearchOptions, Oracle | None]:
        recipe = self.served.model.recipe
        oracle = None if body.oracle is None else read_oracle(body.oracle, recipe.looked_at)
        options = answer_options(recipe, beam=body.beam, oracle=oracle)
        self._bounded(rows, options, body.target)
        return options, oracle

    def _scored(self, inputs: Sequence[Row], outputs: Sequence[str]) -> list[Row]:
        for output in outputs:
            dynamic_batching.check_given("output", output, self.limits)
        rows = [row | {OUTPUT: output} for row, output in zip(inputs, outputs, strict=True)]
        self._check_work(rows, width=1, steps=dynamic_batching.scored(self.served.model.bundle.fields, rows))
        return rows

    def _bounded(self, rows: Sequence[Row], options: SearchOptions, target: schemas.Symbols | None = None) -> list[int]:
        """Symbols of each row, where searching (or following the target) is not too much for one request."""
        model = self.served.model
        if target is not None:
            dynamic_batching.check_given("target", target, self.limits)
            return self._check_work(rows, width=1, steps=dynamic_batching.written(model.bundle.fields, target))
        steps = 1 if model.recipe.output.one_step else options.max_length
        return self._check_work(rows, width=dynamic_batching.hypotheses(options), steps=steps)

    def _check_work(self, rows: Sequence[Row], *, width: int, steps: int) -> list[int]:
        model = self.served.model
        symbols = dynamic_batching.rooms(model.bundle.fields, rows, self.limits)
        dynamic_batching.check_work(symbols, self.limits, width=width, steps=steps, models=len(model.bundles))
        return symbols

    def _questions(self, body: schemas.Searching, rows: Sequence[Row]) -> list[Question]:
        recipe, bundle = self.served.model.recipe, self.served.model.bundle
        options = answer_options(recipe, **{name: getattr(body, name) for name in SEARCH})
        if body.seed is not None and not options.sample:
            raise UserError("seed: no meaning without sample: a search finds the same each time")
        oracle = {} if body.oracle is None else read_oracle(body.oracle, recipe.looked_at)
        dynamic_batching.check_given("prefix", body.prefix, self.limits)
        symbols = self._bounded(rows, options)
        prefixes = [() if body.prefix is None else tuple(given_ids(bundle, row, body.prefix)) for row in rows]
        return [
            Question(row, options, number, prefix, oracle, body.replace_unknown, body.maps, room)
            for number, (row, prefix, room) in enumerate(zip(rows, prefixes, symbols, strict=True))
        ]

    def _spoken(self, what: str) -> None:
        if self.served.model.recipe.output.numeric:
            said = self.served.model.recipe.output.said
            raise UserError(f"{what}: the model gives {said}, which is near or far and has no probability")

    # ------------------------------------------------------------ what is answered

    async def _followed(self, body: schemas.Predict, target: schemas.Symbols, given: Sequence[Any]) -> dict[str, Any]:
        self._spoken("target")
        bundles, recipe = self.served.model.bundles, self.served.model.recipe

        def checked(rows: Sequence[Row]) -> Oracle | None:
            self._bounded(rows, answer_options(recipe), target)
            return None if body.oracle is None else read_oracle(body.oracle, recipe.looked_at)

        rows, oracle = await self._read(given, checked, shown=body.shown)
        tasks = [self._do(partial(follow, bundles, row, target, oracle=oracle)) for row in rows]
        found = await self._answered(tasks)
        return await self._aside(lambda: self._told(body, rows, found, self._noticed(rows, target, what="target")))

    def _ask(self, questions: Sequence[Question]) -> list[Future[Prediction]]:
        return self.served.batcher.ask(questions, held=self.reader.held)

    def _do(self, work: Callable[[], Made]) -> Future[Made]:
        return self.served.batcher.do(work, held=self.reader.held)

    async def _answered(self, futures: Sequence[Future[Any]]) -> list[Any]:
        """Answers, or the first that failed; whoever has waited too long takes nobody else's turn."""
        waiting = asyncio.gather(*map(asyncio.wrap_future, futures))
        try:
            return await asyncio.wait_for(waiting, max(self._until - monotonic(), 0.0))
        except TimeoutError:
            message = f"no answer within {self.limits.patience:g} s; ask for less (inputs, beam, max_length), or later"
            raise Refused(504, message) from None
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                waiting.exception()  # Python 3.11 logs it otherwise, as one that nobody has heard of
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise  # the request itself is cancelled: its client has left, or the server ends
            raise Refused(503, "the server is closing") from None
        finally:
            for future in futures:
                future.cancel()

    def _told(
        self, body: schemas.Predict, rows: Sequence[Row], found: Sequence[Prediction], notices: list[str]
    ) -> dict[str, Any]:
        told = []
        for row, one in zip(rows, found, strict=True):
            record = self._named(one.to_dict(looks=body.looks, runners_up=True))
            if one.image is not None and not isinstance(one.image, str):
                record["image"] = data_url(one.image)
            if body.shown:
                record["shown"] = shown(self.served.model.bundle.fields, row)
            told.append(record)
        return {"model": self.served.name, "predictions": told, "notices": notices}

    def _named(self, record: dict[str, Any]) -> dict[str, Any]:
        """Files by the names their senders know; an example's by its own, without the server's folders."""
        names = self.reader.file_names()

        def known(value: Any) -> Any:
            return names.get(value, value) if isinstance(value, str) else value

        given = record["input"]
        told = {name: known(value) for name, value in given.items()} if isinstance(given, dict) else known(given)
        return record | {"input": told}

    def _noticed(
        self, rows: Sequence[Row], given: schemas.Symbols | None, *, what: str = "prefix", outputs: bool = False
    ) -> list[str]:
        notices = Notices(self.served.model.bundles, outputs=outputs)
        notices.read(rows)
        if isinstance(given, str) and self.served.model.recipe.output.kind == "text":
            return unknown_in(self.served.model.bundle, given, rows, what=what) + notices.lines()
        return notices.lines()


def _alone(body: schemas.Predict) -> None:
    """Nothing is searched for where the whole output is given."""
    others = [name for name in (*SEARCH, "prefix") if getattr(body, name) is not None]
    if others:
        raise UserError(f"{', '.join(others)}: no meaning with target: nothing is searched for")
