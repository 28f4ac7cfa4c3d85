"""What cannot work where an encoder looks back at what it has read."""

from __future__ import annotations

from seq2see.errors import nearest
from seq2see.recipe.schema import Recipe
from seq2see.settings.attention import SCORES, reading_scores
from seq2see.settings.encoders import RecurrentEncoderSettings


def unfit_scores(recipe: Recipe) -> list[str]:
    """Scores that are unknown, or that need more than the states written so far."""
    given = {f"inputs.{name}.encoder": one.encoder for name, one in recipe.inputs.items() if one.encoder is not None}
    found, allowed = [], [*reading_scores(), "none"]
    for path, settings in (given | {"encoder": recipe.encoder}).items():
        if not isinstance(settings, RecurrentEncoderSettings) or settings.self_attention in allowed:
            continue
        score = settings.self_attention
        if score in SCORES:
            reason = f"{score} goes by where places lie, and here they are still being written"
        else:
            reason = f"unknown score '{score}'{nearest(score, allowed)}"
        found.append(f"{path}.self_attention: {reason}; allowed: {', '.join(allowed)}, or one that --plugin brings")
    return found
