from __future__ import annotations

import pytest

from seq2see.evaluation import Rows


@pytest.fixture
def corpus() -> Rows:
    """Rows of unlike lengths with one to three references: right, nearly right, wrong and empty predictions."""
    return Rows(
        [
            "A man is riding a horse on the beach.",
            "Two dogs play in snow",
            "",
            "the The the the cat sat",
            "A woman, who wears a red hat, sells 3.5 kg of apples!",
            "completely unrelated words here",
        ],
        [
            ["A man rides a horse along the beach.", "A man is riding a horse on a beach."],
            ["Two dogs are playing in the snow.", "Dogs play in the snow", "Two dogs run."],
            ["Nothing was said here."],
            ["The cat sat on the mat.", "a cat sat"],
            ["A woman who wears a red hat sells 3.5 kg of apples."],
            ["Kinder spielen im Park."],
        ],
        inputs=[
            "Ein Mann reitet.",
            "Zwei Hunde spielen im Schnee.",
            "Nichts",
            "Die Katze sitzt auf der Matte.",
            "Eine Frau mit rotem Hut verkauft Äpfel.",
            "Kinder spielen im Park.",
        ],
    )
