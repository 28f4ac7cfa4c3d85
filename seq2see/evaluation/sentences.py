"""The first sentence of a text: what a summary has to beat."""

from __future__ import annotations

from seq2see.data.sentences import split_sentences


def first_sentence(text: str) -> str:
    """The text up to and including the end of its first sentence; all of it where no end is found.

    >>> first_sentence("Dr. A. Smith et al. paid 3.50 dollars. Then they left.")
    'Dr. A. Smith et al. paid 3.50 dollars.'
    """
    return next(split_sentences(text), "")
