from __future__ import annotations

import pytest

from seq2see.evaluation.baselines import first_sentence


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One here. Two there.", "One here."),
        ("No end", "No end"),
        ("", ""),
        ("  Spaces around.  Next.", "Spaces around."),
        ("Really?! Yes.", "Really?!"),
        ('He said "Go." Then he went.', 'He said "Go."'),
        ("It costs 3.50 at example.org today. Buy it.", "It costs 3.50 at example.org today."),
        (
            "Dr. Bo and J. R. Jones (cf. Fig. 3) agree. Others do not.",
            "Dr. Bo and J. R. Jones (cf. Fig. 3) agree.",
        ),
        ("He said no. Then he left.", "He said no."),
        ("We follow Vaswani et al. (2017) here. It works.", "We follow Vaswani et al. (2017) here."),
        ("Ask what? he said. Fine.", "Ask what? he said."),
        ("Wait... what? Yes.", "Wait... what?"),
        ("all lower case . no capitals to go by .", "all lower case ."),
        ("A tokenised sentence . Another one .", "A tokenised sentence ."),
        ("A heading\n\nthen text.", "A heading"),
        ("यह पहला है। यह दूसरा है।", "यह पहला है।"),
        ("یہ پہلا ہے۔ یہ دوسرا ہے۔", "یہ پہلا ہے۔"),
        ("第一句。第二句。", "第一句。"),
        ("It ends in an initial, J.", "It ends in an initial, J."),
    ],
)
def test_first_sentence(text: str, first: str) -> None:
    assert first_sentence(text) == first
