"""Settings of attention: those of its score, scope, normaliser and choice together."""

from __future__ import annotations

from collections import ChainMap
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from pydantic.fields import FieldInfo

from seq2see.settings.base import Layers, NameOf, NoSettings, Parts, Settings, Size, Temperature

# --- Scores


class ScoreSettings(Settings):
    """A score without settings of its own.

    ordered: it goes by where a place lies; remembers: by where was looked before; own: a plug-in brought it.
    """

    ordered: ClassVar[bool] = False
    remembers: ClassVar[bool] = False
    own: ClassVar[bool] = False


class SizedScoreSettings(ScoreSettings):
    """A score that compares projections of query and place."""

    size: Size = Field(128, description="size of W_q q and W_k k, and of a predicted p_t")


class DeepSettings(SizedScoreSettings):
    """The deep score."""

    layers: Layers = Field(2, description="deep: hidden layers")


class CosineSettings(ScoreSettings):
    """The cosine score."""

    learned_temperature: bool = Field(False, description="cosine: learn a temperature")


class LocationSettings(ScoreSettings):
    """The location score."""

    ordered = True
    positions: Size = Field(200, description="location: the longest input it can look at")


class CoverageSettings(SizedScoreSettings):
    """The coverage score."""

    ordered = True
    remembers = True
    filters: Size = Field(16, description="coverage: rows of F, the convolution of earlier looks")
    kernel: Annotated[int, Field(gt=0, le=255)] = Field(
        5, description="coverage: width of F (its side on a grid), as many numbers at every place and step"
    )


class NoAttentionSettings(ScoreSettings):
    """No attention: the other keys of attention have no meaning."""

    alone = ("score",)
    switched_off = "attention.score is none"


SCORES: dict[str, type[ScoreSettings]] = {
    "dot": ScoreSettings,
    "scaled-dot": ScoreSettings,
    "cosine": CosineSettings,
    "general": ScoreSettings,
    "additive": SizedScoreSettings,
    "concat": SizedScoreSettings,
    "deep": DeepSettings,
    "location": LocationSettings,
    "coverage": CoverageSettings,
    "static": SizedScoreSettings,
    "uniform": ScoreSettings,
}
"""The settings of each score by its name; plug-ins add theirs."""

SCORE_KEYS: dict[str, FieldInfo] = {
    key: field for settings in SCORES.values() for key, field in settings.model_fields.items()
}
"""Keys that a score of a plug-in may share with ours; its other arguments stand under `attention.options`."""


# --- Scopes


class WindowSettings(Settings):
    """A window around p_t."""

    window: Annotated[int, Field(gt=0, le=1_000_000)] = Field(
        5, description="local scopes: how far the window reaches to each side of p_t"
    )


class MonotonicSettings(WindowSettings):
    """A window around p_t = t."""

    gaussian: bool = Field(True, description="add the logarithm of a Gaussian of the distance to p_t")


class PredictedSettings(WindowSettings):
    """A window around a predicted p_t."""

    size: Size = Field(128, description="size of W_q q and W_k k, and of a predicted p_t")


SCOPES: dict[str, type[Settings]] = {
    "global": NoSettings,
    "local-monotonic": MonotonicSettings,
    "local-predicted": PredictedSettings,
}

# --- Normalisers and choices

NORMALISERS: dict[str, type[Settings]] = {"softmax": NoSettings, "sparsemax": NoSettings, "entmax15": NoSettings}


class GumbelSettings(Settings):
    """A draw learned straight through a relaxed one."""

    gumbel_temperature: Temperature = Field(1.0, description="of the relaxed draw")


class HardSettings(Settings):
    """One place, drawn by the weights."""

    parts = {"estimator": Parts({"score-function": NoSettings, "gumbel": GumbelSettings})}
    estimator: Literal["score-function", "gumbel"] = Field(
        "score-function", description="how the draw is learned; gumbel: straight through a relaxed draw"
    )


CHOICES: dict[str, type[Settings]] = {"soft": NoSettings, "hard": HardSettings}


# --- All of them


class AttentionSettings(Settings):
    """Where the decoder looks; `attention: none` switches it off."""

    parts = {
        "score": Parts(ChainMap[str, type[ScoreSettings]](SCORES, {"none": NoAttentionSettings})),
        "scope": Parts(SCOPES),
        "normaliser": Parts(NORMALISERS),
        "choice": Parts(CHOICES),
    }
    plugin_keys = ("options",)
    score: Annotated[str, NameOf(SCORES, ("none",))] = Field(
        "additive", description="how well a query and a place agree; none: no attention"
    )
    over: str | list[str] | None = Field(
        None, description="inputs to look at (NAME.words: the words of a document); not given: all that have places"
    )
    scope: Annotated[str, NameOf(SCOPES)] = Field(
        "global", description="which places are candidates: all, or a window around p_t = t or around a predicted p_t"
    )
    normaliser: Annotated[str, NameOf(NORMALISERS)] = Field(
        "softmax", description="how energies become weights; the last two give most places exactly zero"
    )
    temperature: Temperature = Field(
        1.0, description="energies are divided by it: below 1 sharper looks, above 1 flatter ones"
    )
    choice: Annotated[str, NameOf(CHOICES)] = Field(
        "soft", description="what weights become: a weighted mean of the places, or one place drawn by them"
    )
    through: Literal["sentences"] | None = Field(
        None, description="words of a document: the weight of a sentence times that of a word in it; not given: of all"
    )
    heads: Size = Field(1, description="looks taken side by side, each at projections of its own; 1: none")
    query: Literal["previous", "current"] = Field("previous", description="the state s_{t-1}, or s_t")
    input_feeding: bool = Field(True, description="query current: the context also enters the next step")

    @property
    def constant(self) -> bool:
        """Whether no weight of a look depends on anything that is learned."""
        return self.score == "uniform" and self.scope != "local-predicted"

    @property
    def by_score(self) -> bool:
        """Whether places are drawn, and the draw is learned by its score."""
        return isinstance(self, HardSettings) and self.estimator == "score-function"

    @property
    def conditions(self) -> str:
        """What the model's probabilities are given beside the input and the symbols so far; nothing for most."""
        drawn = self.score != "none" and self.choice == "hard"
        return "the places chosen" if drawn else ""

    @property
    def zeros(self) -> str:
        """What gives places exactly zero, however well they agree with the query; nothing where all have a share."""
        if self.normaliser != "softmax":
            return f"normaliser {self.normaliser} gives most places exactly zero"
        return "" if self.scope == "global" else f"scope {self.scope} gives places outside its window exactly zero"

    @property
    def goes_by_order(self) -> bool:
        """Whether the score goes by where a place lies. What coverage sees through one place is that place alone."""
        ordered = isinstance(self, ScoreSettings) and self.ordered
        return ordered and not (isinstance(self, CoverageSettings) and self.kernel == 1)

    @property
    def score_settings(self) -> dict[str, Any]:
        """Every setting a score may want by its name, its own options beside those that recipes know."""
        values = dict(self)
        return values | dict(values.pop("options", {}))


def reading_scores() -> list[str]:
    """The scores by which an encoder may look back at its own states while it reads: where they lie is not known."""
    return [name for name, settings in SCORES.items() if not settings.ordered]
