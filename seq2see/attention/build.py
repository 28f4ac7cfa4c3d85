"""The attention of a recipe: its settings, and how it is put together from score, scope, normaliser and choice."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from seq2see.attention.attention import Attention
from seq2see.attention.choices import HardSettings, choices
from seq2see.attention.heads import MultiHead, TwoLevelMultiHead
from seq2see.attention.normalisers import normalisers
from seq2see.attention.scopes import scopes
from seq2see.attention.scores import CoverageSettings, ScoreSettings, build_score, scores
from seq2see.attention.two_level import TwoLevelAttention
from seq2see.errors import UserError
from seq2see.memory import View
from seq2see.settings.base import NameOf, Parts, Settings, Size, Temperature
from seq2see.settings.plugins import construct


class NoAttentionSettings(ScoreSettings):
    """No attention: the other keys of attention have no meaning."""

    alone = ("score",)
    switched_off = "attention.score is none"


class AttentionSettings(Settings):
    """Where the decoder looks; `attention: none` switches it off."""

    parts = {
        "score": Parts(ChainMap[str, type[Settings]](scores.settings, {"none": NoAttentionSettings})),
        "scope": Parts(scopes.settings),
        "normaliser": Parts(normalisers.settings),
        "choice": Parts(choices.settings),
    }
    plugin_keys = ("options",)
    score: Annotated[str, NameOf(scores.settings, ("none",))] = Field(
        "additive", description="how well a query and a place match; none: no attention"
    )
    over: str | list[str] | None = Field(
        None, description="inputs to look at (NAME.words: the words of a document); not given: all that have places"
    )
    scope: Annotated[str, NameOf(scopes.settings)] = Field(
        "global", description="which places are candidates: all, or a window around p_t = t or around a predicted p_t"
    )
    normaliser: Annotated[str, NameOf(normalisers.settings)] = Field(
        "softmax", description="how energies become weights; the last two give most places exactly zero"
    )
    temperature: Temperature = Field(
        1.0, description="energies are divided by it: below 1 sharper looks, above 1 flatter ones"
    )
    choice: Annotated[str, NameOf(choices.settings)] = Field(
        "soft", description="what weights become: a weighted mean of the places, or one place drawn by them"
    )
    through: Literal["sentences"] | None = Field(
        None, description="words of a document: the weight of a sentence times that of a word in it; not given: of all"
    )
    heads: Size = Field(
        1, description="number of heads, each with its own projections; 1: a single look without projections"
    )
    query: Literal["previous", "current"] = Field("previous", description="the state s_{t-1}, or s_t")
    input_feeding: bool = Field(True, description="query current: the context also enters the next step")

    @property
    def constant(self) -> bool:
        """Whether no weight of a look depends on anything that is learned."""
        return self.score != "none" and scores[self.score].constant and not scopes[self.scope].learned

    @property
    def by_score(self) -> bool:
        """Whether places are drawn, and the draw is learned by its score."""
        return isinstance(self, HardSettings) and self.estimator == "score-function"

    @property
    def conditions(self) -> str:
        """What the model's probabilities are given beside the input and the symbols so far; nothing for most."""
        return "" if self.score == "none" else choices[self.choice].conditioned_on

    @property
    def zeros(self) -> str:
        """What gives places exactly zero, however well they agree with the query; nothing where all have a share."""
        if normalisers[self.normaliser].sparse:
            return f"normaliser {self.normaliser} gives most places exactly zero"
        local = scopes[self.scope].local
        return f"scope {self.scope} gives places outside its window exactly zero" if local else ""

    @property
    def goes_by_order(self) -> bool:
        """Whether the score depends on the positions of places. Coverage that sees one place at a time does not."""
        narrow = isinstance(self, CoverageSettings) and self.kernel == 1
        return self.score != "none" and scores[self.score].ordered and not narrow

    @property
    def sees_order(self) -> bool:
        """Whether looks at places that know nothing of each other depend on their order."""
        positions = self.score != "none" and scores[self.score].ordered and not scores[self.score].remembers
        return positions or scopes[self.scope].local

    @property
    def score_settings(self) -> dict[str, Any]:
        """Every setting a score may want by its name, its own options beside those that recipes know."""
        values = dict(self)
        return values | dict(values.pop("options", {}))


def reading_scores() -> list[str]:
    """The scores by which an encoder may look back at its own states while it reads: where they lie is not known."""
    return [name for name in scores if not scores[name].ordered]


def build_attention(
    settings: AttentionSettings, *, query: int, view: View
) -> Attention | MultiHead | TwoLevelAttention:
    """The attention of these settings, for queries of size `query` and the places of `view`."""
    heads, two_level = settings.heads, settings.through is not None and view.inside is not None
    if heads == 1:
        build = _build_two_level if two_level else _build_single
        return build(settings, query=query, view=view)
    part = MultiHead.head_size(view.size, heads)
    inside = None if view.inside is None else replace(view.inside, size=part)
    each = replace(view, size=part, inside=inside)
    if two_level:
        return TwoLevelMultiHead(query, view, heads=heads, inner=_build_two_level(settings, query=part, view=each))
    return MultiHead(query, view.size, heads=heads, inner=_build_single(settings, query=part, view=each))


def _build_two_level(settings: AttentionSettings, *, query: int, view: View) -> TwoLevelAttention:
    """Choice and scope are those of words: sentences are always weighed softly, and all of them."""
    if view.inside is None:
        raise ValueError("these places are not part of larger ones")
    sentences = _build_single(settings, query=query, view=view.inside, plain=True)
    return TwoLevelAttention(sentences, _build_single(settings, query=query, view=view))


def _build_single(settings: AttentionSettings, *, query: int, view: View, plain: bool = False) -> Attention:
    """An attention without heads. plain: softly over all places, whatever choice and scope are."""
    options = settings.score_settings | {"axes": 2 if view.layout == "grid" else 1}
    score = build_score(settings.score, query, view.size, options)
    if view.layout == "set" and score.ordered:
        raise UserError(f"attention.score: {settings.score} depends on the position of a place, and a set has no order")
    return Attention(
        score,
        scope=None if plain else scopes[settings.scope].build(settings, view, query=query),
        normalise=construct(normalisers[settings.normaliser], settings),
        choice=None if plain else choices[settings.choice].build(settings),
        temperature=settings.temperature,
    )
