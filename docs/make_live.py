"""The picture of docs/live.md, of a run that was recorded; needs the extra `dev`, Chromium.

python docs/make_live.py runs/translation
"""

from __future__ import annotations

import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).parent / "pictures" / "live.png"
CHROMIUM = "/usr/bin/chromium"
WIDTH, HEIGHT, COLOURS = 1280, 1320, 256


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    command = [sys.executable, "-m", "seq2see", "serve", sys.argv[1], "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server, sync_playwright() as started:
        assert server.stderr is not None
        line = server.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        if found is None:
            raise SystemExit(line + server.stderr.read())
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(f"{found[0]}live", timeout=120_000)
        page.wait_for_selector("body[data-state=recorded]", timeout=120_000)
        content = page.screenshot()
        browser.close()
        server.terminate()
    Image.open(BytesIO(content)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    print(f"{PICTURE} {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
