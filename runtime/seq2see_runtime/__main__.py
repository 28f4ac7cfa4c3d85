"""`python -m seq2see_runtime`."""

from __future__ import annotations

from seq2see_runtime.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
