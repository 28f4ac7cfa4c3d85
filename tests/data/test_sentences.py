from __future__ import annotations

import pytest

from seq2see.data.sentences import join_texts, split_sentences, split_texts


@pytest.mark.parametrize(
    "sentences",
    [
        ["One here.", "Two there."],
        ["No end"],
        ["Mr. and Mrs. Jones met Dr. J. R. Bo at 5 p.m. on Friday.", "They left."],
        ["It fell by 3.5 % to 1.200,50 at example.org.", "Then it rose."],
        ['"Is it?" he asked.', '"It is!"', "She went."],
        ['He said "Go."', "Then he went."],
        ["Wait... what?", "Well… yes.", "So!"],
        ["Really?!", "Yes."],
        ["See Fig. 3 and p. 5 (cf. Sec. 2).", "It shows no.", "Others do."],
        ["We follow Vaswani et al. (2017) here.", "It works."],
        ["यह पहला है।", "यह दूसरा है॥", "क्या यह तीसरा है?"],
        ["هل هذا صحيح؟", "نعم."],
        ["یہ پہلا ہے۔", "یہ دوسرا ہے۔"],
        ["all lower case .", "no capitals to go by ."],
        ["Er kam z.B. am 3. mai.", "Dann ging er."],
    ],
)
def test_the_rule_finds_the_sentences(sentences: list[str]) -> None:
    assert list(split_sentences(" ".join(sentences))) == sentences


def test_marks_of_scripts_without_spaces_end_sentences_alone() -> None:
    assert split_texts("第一句。第二句！「第三句？」第四句", "rule") == [
        "第一句。",
        "第二句！",
        "「第三句？」",
        "第四句",
    ]


def test_an_empty_line_ends_a_sentence_and_a_single_newline_does_not() -> None:
    assert split_texts("A heading\n\nsome text that\nruns over lines", "rule") == [
        "A heading",
        "some text that\nruns over lines",
    ]


@pytest.mark.parametrize("by", ["newline", "tab", "|||", "<s>"])
def test_a_mark_cuts_where_it_stands_and_nowhere_else(by: str) -> None:
    given = ["Hello. How are you?", "Fine", "bye"]
    assert split_texts(join_texts(given, by), by) == given


def test_a_mark_inside_a_sentence_does_not_make_two_of_it() -> None:
    assert split_texts(join_texts(["a ||| b", "c"], "|||"), "|||") == ["a   b", "c"]


def test_a_long_document_takes_time_in_proportion() -> None:
    text = "Dr. No paid 3.50 dollars to Mr. Bo. " * 20_000
    assert len(list(split_sentences(text))) == 20_000
