"""Sequence-level training (`loss.reward`): outputs drawn from the model, and what a metric gives each of them.

Self-critical training (Rennie et al. 2017) with several samples of each input, each of which is compared with the mean
of the others (Luo 2020): samples above the mean become likelier, by an estimate of the gradient of the expected reward.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import exp, log
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.data.batches import Batch, Sequences, pad_lists
from seq2see.data.columns import OUTPUT
from seq2see.data.vocabulary import EOS, PAD, SOS, UNK
from seq2see.decoders import State
from seq2see.evaluation.ngrams import Cider, InverseDocumentFrequency
from seq2see.evaluation.strings import edit_distance
from seq2see.model import EncoderDecoder
from seq2see.pipeline.dataset import Dataset
from seq2see.recipe.schema import RewardSettings

Symbols = tuple[int, ...]
"""The ids of an output, with its `<eos>` where it has one: an output that does not end is not worth a whole one."""


class Reward(ABC):
    """What an output is worth, compared with its references. references: of each group of rows with equal inputs."""

    def __init__(self, references: Sequence[Sequence[Symbols]]):
        self.references = references

    @abstractmethod
    def __call__(self, group: int, output: Symbols) -> float: ...


class CiderReward(Reward):
    """CIDEr-D of a single output, from 0 to 10; n-grams are weighted by how rare they are among the training rows."""

    def __init__(self, references: Sequence[Sequence[Symbols]]):
        super().__init__(references)
        self._cider = Cider("cider")
        self._grams = [[self._cider.grams(_written(output)) for output in group] for group in references]
        self._weights = InverseDocumentFrequency.of(self._grams)

    def __call__(self, group: int, output: Symbols) -> float:
        return self._cider.row(self._cider.grams(_written(output)), self._grams[group], self._weights)


def _written(output: Symbols) -> list[str]:
    return [str(symbol) for symbol in output]


class BleuReward(Reward):
    """BLEU of a single output, from 0 to 1: n-grams up to 4, of which those of 2 and more are counted from 1 (Lin and
    Och 2004), and the brevity penalty of the closest reference."""

    longest: ClassVar[int] = 4

    def __call__(self, group: int, output: Symbols) -> float:
        """
        >>> BleuReward([[(5, 6, 2)]])(0, (5, 6, 2))
        1.0
        """
        references = self.references[group]
        total = 0.0
        for n in range(1, self.longest + 1):
            own, most = _grams(output, n), Counter[Symbols]()
            for reference in references:
                most |= _grams(reference, n)
            right, of, start = (own & most).total(), own.total(), int(n > 1)
            if right + start == 0:
                return 0.0
            total += log((right + start) / (of + start))
        closest = min((len(reference) for reference in references), key=lambda n: (abs(n - len(output)), n))
        return exp(total / self.longest + min(0.0, 1 - closest / max(len(output), 1)))


def _grams(output: Symbols, n: int) -> Counter[Symbols]:
    return Counter(output[start : start + n] for start in range(len(output) - n + 1))


class EditReward(Reward):
    """1 - edits / symbols of the closest reference, from -1 to 1: 1 for what is right, less for each wrong symbol."""

    def __call__(self, group: int, output: Symbols) -> float:
        """
        >>> EditReward([[(5, 6, 7, 2)]])(0, (5, 6, 2))
        0.75
        """
        written = _written(output)
        rates = [edit_distance(written, _written(true)) / max(len(true), 1) for true in self.references[group]]
        return max(1 - min(rates), -1.0)


REWARDS: dict[str, type[Reward]] = {"cider": CiderReward, "bleu": BleuReward, "edit": EditReward}


class Rewards:
    """The reward of outputs for rows of a data set; rows with equal inputs are references of each other."""

    def __init__(self, settings: RewardSettings, data: Dataset):
        self.samples = settings.samples
        groups: dict[tuple[bytes, ...], int] = {}
        references: list[list[Symbols]] = []
        self._group: list[int] = []
        stores = [data.stores[name] for name in data.fields.inputs]
        for row in range(len(data)):
            key = tuple(store[row].tobytes() for store in stores)
            group = groups.setdefault(key, len(groups))
            if group == len(references):
                references.append([])
            references[group].append((*data.stores[OUTPUT][row].tolist(), EOS))
            self._group.append(group)
        self.reward = REWARDS[settings.metric](references)

    def __call__(self, rows: Sequence[int], outputs: Sequence[Symbols]) -> Float[Tensor, " rows"]:
        """The reward of one output for each of these rows of the data."""
        each = [self.reward(self._group[row], output) for row, output in zip(rows, outputs, strict=True)]
        return torch.tensor(each)


@contextmanager
def without_dropout(model: EncoderDecoder) -> Iterator[None]:
    """Outputs are drawn and learned by the same probabilities. Under dropout a drawn output could be almost impossible;
    where its reward is low, it would be made less likely still, without limit."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def drawable(log_probs: Float[Tensor, "*rows symbols"]) -> Float[Tensor, "*rows symbols"]:
    """log P of what can be drawn, without `<unk>`, which stands for no particular word. The same log P is learned: as
    `<unk>` is never drawn, no reward would ever make it less likely, and each output that becomes less likely would
    make `<unk>` likelier."""
    never = torch.zeros(log_probs.shape[-1], dtype=torch.bool, device=log_probs.device)
    never[[PAD, SOS, UNK]] = True
    return torch.log_softmax(log_probs.float().masked_fill(never, -torch.inf), -1)


@torch.no_grad()
def draw_outputs(model: EncoderDecoder, batch: Batch, *, longest: int, samples: int = 1) -> list[Symbols]:
    """Outputs for each row of a batch, drawn symbol by symbol: one of every row, then the next of every row; at most so
    many symbols of each.

    Random numbers are torch's own, so that a resumed run draws the same.
    """
    ready = model.ready(batch.inputs, len(batch.rows))
    state: State = model.begin(ready, width=samples)
    token = torch.full((len(batch.rows) * samples,), SOS, device=model.head.device)
    ended = torch.zeros_like(token, dtype=torch.bool)
    drawn: list[Int[Tensor, " rows"]] = []
    while len(drawn) < longest and not ended.all():
        step = model.step(ready, state, token)
        token = torch.multinomial(drawable(model.log_probs(step, ready)).exp(), 1).squeeze(1).masked_fill(ended, PAD)
        drawn.append(token)
        ended |= token == EOS
        state = step.state
    rows = [tuple(symbol for symbol in row if symbol != PAD) for row in torch.stack(drawn, 1).tolist()]
    return [row for sample in range(samples) for row in rows[sample::samples]]


def most_drawn(model: EncoderDecoder, batch: Batch) -> int:
    """Symbols after which a drawn output is cut off: twice as many as the longest true one has, as far as the decoder
    reaches."""
    assert isinstance(batch.target, Sequences)
    longest = 2 * batch.target.ids.shape[1]
    return longest if model.most_steps is None else min(longest, model.most_steps)


def with_outputs(batch: Batch, outputs: Sequence[Symbols]) -> Batch:
    """The batch with these outputs instead of its own, possibly several of each row, and without true alignments."""
    target = pad_lists(outputs, eos=False)
    like = batch.target
    assert isinstance(like, Sequences)
    return Batch(batch.inputs, target.to(like.ids.device), batch.rows)


def advantages(rewards: Float[Tensor, " rows"], samples: int) -> Float[Tensor, " rows"]:
    """Each reward less the mean of the other samples of its row. Rows are in a run of samples: all rows once, then all
    rows again.

    >>> advantages(torch.tensor([1.0, 5.0, 3.0, 5.0]), samples=2)
    tensor([-2.,  0.,  2.,  0.])
    """
    each = rewards.view(samples, -1)
    others = (each.sum(0) - each) / (samples - 1)
    return (each - others).view(-1)
