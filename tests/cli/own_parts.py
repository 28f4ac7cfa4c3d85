"""Modules of a user's own, as text: what `--plugin` brings in tests."""

from __future__ import annotations

ENCODER = '''
import torch
from torch import nn
from seq2see.encoders import Encoded, Encoder, encoders, masked_mean
from seq2see.memory import Places


@encoders.register("{name}")
class Window(Encoder):
    """h_j = tanh(W [e(x_{{j-r}}); ..; e(x_{{j+r}})] + b)"""

    def __init__(self, embedding, size: int = 24, reach: int = 1):
        super().__init__()
        self.embedding = embedding
        self.layers = nn.Sequential(nn.Conv1d(embedding.size, size, 2 * reach + 1, padding=reach), nn.Tanh())
        self.size = self.summary_size = size

    def read(self, column, *, maps=False):
        embedded = self.embedding(column.ids) * column.mask[..., None]
        states = self.layers(embedded.transpose(1, 2)).transpose(1, 2)
        return Encoded(Places(states, column.mask, tokens=column.symbols), masked_mean(states, column.mask))
'''

DECODER = '''
from dataclasses import replace
import torch
from torch import nn
from seq2see.decoders import Decoder, CrossAttention, Ready, State, Step, decoders


@decoders.register("{name}")
class Reader(Decoder):
    """s_t = tanh(W [e(y_{{t-1}}); p_t] + b): no memory but the last symbol and where it stands"""

    def __init__(self, settings, attention, conditions, *, longest: int = 16):
        super().__init__(settings, attention, conditions)
        self.embedding = conditions.embedding
        self.P = nn.Parameter(0.5 * torch.randn(longest, settings.size))
        self.W = nn.Linear(conditions.embedding.size, settings.size)
        self.looking = CrossAttention(attention, query=settings.size, views=conditions.looks)
        self.features_size = settings.size + self.looking.size

    def prepare(self, memory):
        return Ready(memory.rows, memory, self.looking.prepare(memory))

    def begin(self, ready, *, width=1):
        return State(ready.rows * width, width=width, past=self.looking.begin(ready.looks, width))

    def step(self, ready, state, token, *, forced=None, generator=None):
        place = self.P[min(state.position, len(self.P) - 1)]
        query = torch.tanh(self.W(self.embedding(token)) + place)
        seen = self.looking(
            query, ready.looks, position=state.position, past=state.past, forced=forced, generator=generator
        )
        after = replace(state, position=state.position + 1, past=seen.past)
        return Step(after, torch.cat([query, seen.context], dim=-1), seen.looks)
'''

JUDGE = """
from seq2see.decoders import LabelDecoder, decoders


@decoders.register("{name}")
class Judge(LabelDecoder):
    def __init__(self, settings, attention, conditions, doubt: float = 2.0):
        super().__init__(settings, attention, conditions)
        self.doubt = doubt

    def step(self, *given, **more):
        made = super().step(*given, **more)
        made.features = made.features / self.doubt
        return made
"""

SLOWER = '''
from torch import nn
from seq2see.decoders import Decoder, RecurrentDecoder, decoders


@decoders.register("{name}")
class Slower(RecurrentDecoder):
    """s_t = gru(...), its features scaled by `pace`"""

    teach = Decoder.teach

    def __init__(self, settings, attention, conditions, pace: float = 1.0):
        super().__init__(settings, attention, conditions)
        self.pace = pace

    def step(self, *given, **more):
        made = super().step(*given, **more)
        made.features = self.pace * made.features
        return made
'''
