"""`python -m seq2see` is `seq2see`."""

from __future__ import annotations

from seq2see.cli import main

main()
