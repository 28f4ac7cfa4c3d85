"""An attention from a recipe's settings."""

from __future__ import annotations

from seq2see.attention.attention import Attention
from seq2see.attention.choices import build_choice
from seq2see.attention.heads import MultiHead
from seq2see.attention.normalisers import NORMALISERS
from seq2see.attention.scopes import build_scope
from seq2see.attention.scores import build_score
from seq2see.attention.through import Through
from seq2see.errors import UserError
from seq2see.memory import View
from seq2see.recipe.schema import AttentionSettings


def build_attention(settings: AttentionSettings, *, query: int, view: View) -> Attention | MultiHead | Through:
    """A look of queries of size `query` at places as `view` says, through the larger ones they lie in if asked for."""
    if settings.through is None or view.inside is None:
        return _at_once(settings, query=query, view=view)
    softly = settings.model_copy(update={"choice": "soft"})  # one word is drawn, by the weights of both levels
    larger, smaller = _at_once(softly, query=query, view=view.inside), _at_once(settings, query=query, view=view)
    if isinstance(larger, MultiHead) or isinstance(smaller, MultiHead) or settings.scope != "global":
        raise UserError("attention.through: goes with scope global and one head only")
    return Through(larger, smaller)


def _at_once(settings: AttentionSettings, *, query: int, view: View) -> Attention | MultiHead:
    size = view.size
    if settings.heads > 1:
        query_size = key_size = MultiHead.head_size(size, settings.heads)
    else:
        query_size, key_size = query, size
    options = settings.score_settings | {"axes": 2 if view.layout == "grid" else 1}
    score = build_score(settings.score, query_size, key_size, options)
    if view.layout == "set" and score.ordered:
        raise UserError(f"attention.score: {settings.score} goes by where a place lies, and a set has no order")
    inner = Attention(
        score,
        scope=build_scope(
            settings.scope,
            view,
            query=query_size,
            reach=settings.window,
            size=settings.size,
            gaussian=settings.gaussian,
        ),
        normalise=NORMALISERS[settings.normaliser],
        choice=build_choice(settings.choice, estimator=settings.estimator, temperature=settings.gumbel_temperature),
        temperature=settings.temperature,
    )
    return MultiHead(query, size, heads=settings.heads, inner=inner) if settings.heads > 1 else inner
