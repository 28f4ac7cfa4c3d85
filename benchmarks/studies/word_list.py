"""A list of words as a language model: unigrams in ARPA format, out of word frequencies and lists of words.

pip install wordfreq                                         # 26,653 Hindi words with frequencies (CC BY-SA 4.0)
apt-get install aspell-hi && zcat /usr/share/aspell/hi.cwl.gz | precat > aspell.txt  # 83,389 words (GPL)
python benchmarks/studies/word_list.py --language hi --words aspell.txt --out hindi.arpa
seq2see evaluate MODEL --data TABLE --beam 10 --language-model hindi.arpa --lm-use rescore --lm-weight 0.3

Outputs are ranked by log P(y | x) + w log P(word); a word of the lists without a frequency gets that of the rarest
word with one, any other word `--unknown`.
"""

from __future__ import annotations

import argparse
import unicodedata
from pathlib import Path


def normalised(word: str) -> str:
    return unicodedata.normalize("NFC", word.strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--language", help="of wordfreq, for instance hi")
    parser.add_argument("--words", type=Path, action="append", default=[], help="a word in each line")
    parser.add_argument("--unknown", type=float, default=-8.0, help="log10 of P(any other word)")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    log_probs: dict[str, float] = {}
    if options.language:
        from math import log10

        from wordfreq import get_frequency_dict

        for word, frequency in get_frequency_dict(options.language, wordlist="best").items():
            log_probs[normalised(word)] = log10(frequency)
    rarest = min(log_probs.values(), default=-5.0)
    for path in options.words:
        for line in path.read_text("utf-8").splitlines():
            if word := normalised(line):
                log_probs.setdefault(word, rarest)
    rows = [("<s>", -99.0), ("</s>", 0.0), ("<unk>", options.unknown), *sorted(log_probs.items())]
    text = "".join(f"{log_prob:.4f}\t{word}\n" for word, log_prob in rows)
    options.out.write_text(f"\\data\\\nngram 1={len(rows)}\n\n\\1-grams:\n{text}\n\\end\\\n", "utf-8")
    print(f"{options.out}: {len(log_probs):,} words")


if __name__ == "__main__":
    main()
