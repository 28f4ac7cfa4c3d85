"""An attention from a recipe's settings."""

from __future__ import annotations

from dataclasses import replace

from seq2see.attention.attention import Attention
from seq2see.attention.choices import build_choice
from seq2see.attention.heads import MultiHead, TwoLevelMultiHead
from seq2see.attention.normalisers import NORMALISERS
from seq2see.attention.scopes import build_scope
from seq2see.attention.scores import build_score
from seq2see.attention.two_level import TwoLevelAttention
from seq2see.errors import UserError
from seq2see.memory import View
from seq2see.settings.attention import AttentionSettings


def build_attention(
    settings: AttentionSettings, *, query: int, view: View
) -> Attention | MultiHead | TwoLevelAttention:
    """A look of queries of size `query` at places as `view` says, through the larger ones they lie in if asked for."""
    heads, through = settings.heads, settings.through is not None and view.inside is not None
    if heads == 1:
        return _through(settings, query=query, view=view) if through else _one(settings, query=query, view=view)
    part = MultiHead.head_size(view.size, heads)
    inside = None if view.inside is None else replace(view.inside, size=part)
    each = replace(view, size=part, inside=inside)
    if through:
        return TwoLevelMultiHead(query, view, heads=heads, inner=_through(settings, query=part, view=each))
    return MultiHead(query, view.size, heads=heads, inner=_one(settings, query=part, view=each))


def _through(settings: AttentionSettings, *, query: int, view: View) -> TwoLevelAttention:
    """One word is drawn, by the weights of both levels, and a window is one of words: neither is asked of sentences."""
    if view.inside is None:
        raise ValueError("these places lie inside no larger ones")
    above = settings.model_copy(update={"choice": "soft", "scope": "global"})
    return TwoLevelAttention(_one(above, query=query, view=view.inside), _one(settings, query=query, view=view))


def _one(settings: AttentionSettings, *, query: int, view: View) -> Attention:
    """A single look, without heads."""
    options = settings.score_settings | {"axes": 2 if view.layout == "grid" else 1}
    score = build_score(settings.score, query, view.size, options)
    if view.layout == "set" and score.ordered:
        raise UserError(f"attention.score: {settings.score} goes by where a place lies, and a set has no order")
    return Attention(
        score,
        scope=build_scope(
            settings.scope, view, query=query, reach=settings.window, size=settings.size, gaussian=settings.gaussian
        ),
        normalise=NORMALISERS[settings.normaliser],
        choice=build_choice(settings.choice, estimator=settings.estimator, temperature=settings.gumbel_temperature),
        temperature=settings.temperature,
    )
