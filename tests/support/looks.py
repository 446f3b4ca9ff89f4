"""Small photographs of pages, and how different two of them are: `python -m tests.support.looks` takes them anew."""

from __future__ import annotations

import base64
import json
import tempfile
from pathlib import Path

from tests.support.browser import SCHEMES, Page, opened_browser
from tests.support.pages import NAMES, made_up_pages
from tests.support.paths import ROOT

LOOKS = ROOT / "tests" / "report" / "looks"
#: The widths in words that tell fonts apart.
_FONTS = """
(() => {
  const pen = document.createElement("canvas").getContext("2d");
  const fonts = ['15px system-ui, "Segoe UI", "Liberation Sans"', '12.5px ui-monospace, "Liberation Mono"'];
  return fonts.map(font => {
    pen.font = font;
    return Math.round(pen.measureText("Hamburgefonstiv 0123456789 ▸").width * 10) / 10;
  });
})()
"""
#: The mean difference of two pictures, and that of the tile of 8 by 8 pixels that differs most; colours are 0 to 255.
_DIFFERENCE = """
(async (first, second) => {
  const [one, other] = await Promise.all([first, second].map(async data => {
    const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], {type: "image/webp"}));
    const pen = new OffscreenCanvas(image.width, image.height).getContext("2d");
    pen.drawImage(image, 0, 0);
    return pen.getImageData(0, 0, image.width, image.height);
  }));
  if (one.width !== other.width || one.height !== other.height) { return [255, 255]; }
  const tiles = new Map();
  let sum = 0;
  for (let y = 0; y < one.height; y += 1) {
    for (let x = 0; x < one.width; x += 1) {
      const at = 4 * (y * one.width + x), tile = (y >> 3) * 1000 + (x >> 3);
      let apart = 0;
      for (let c = 0; c < 3; c += 1) { apart += Math.abs(one.data[at + c] - other.data[at + c]) / 3; }
      sum += apart;
      tiles.set(tile, (tiles.get(tile) || 0) + apart / 64);
    }
  }
  return [sum / (one.width * one.height), Math.max(...tiles.values())];
})
"""


def made_with(page: Page) -> dict[str, object]:
    """The browser's major version, and widths of texts in the fonts of the pages."""
    page.open("about:blank")
    return {"browser": page.version.partition(".")[0], "fonts": page.ask(_FONTS)}


def photograph(page: Page, file: Path, width: int, scheme: str) -> bytes:
    """The first window of a page at two fifths of its size."""
    page.open(file.as_uri(), width=width, scheme=scheme)
    return page.photograph(scale=0.4, form="webp")


def difference(page: Page, one: bytes, other: bytes) -> tuple[float, float]:
    """How different two photographs are: on the whole, and where they differ most."""
    page.open("about:blank")
    first, second = (json.dumps(base64.b64encode(data).decode()) for data in (one, other))
    mean, largest = page.ask(f"({_DIFFERENCE})({first}, {second})")
    return mean, largest


def _take() -> None:
    """Take all photographs anew."""
    LOOKS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, opened_browser() as page:
        files = made_up_pages(Path(folder))
        (LOOKS / "made-with.json").write_text(json.dumps(made_with(page)) + "\n")
        for name in NAMES:
            for width in (390, 1280):
                for scheme in SCHEMES:
                    taken = photograph(page, files[name], width, scheme)
                    (LOOKS / f"{name}-{width}-{scheme}.webp").write_bytes(taken)


if __name__ == "__main__":
    _take()
