"""Photograph pages at every width and in both colour schemes, and list what is wrong with them.

    python -m maintenance.looks PAGES OUT [--axe axe.min.js] [--only NAME]... [--sheets N]

PAGES is a folder with HTML files, or one file. Written into OUT: a photograph of each page at 390, 768, 1280 and 1920
pixels, light and dark, and contact sheets with N pages each. Printed: pages that are wider than their window, what
`checks.js` finds (contrast, names, targets, headings), and, with the file axe.min.js of the package axe-core, its
serious and critical findings. Exits with 1 if there is any.
"""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from html import escape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from maintenance.looks.browser import SCHEMES, WIDTHS, Page, opened_browser

#: Pixels of a page's photograph that a contact sheet shows, in each direction, and its width there.
_SHOWN, _THUMB = 2600, {390: 250, 768: 330, 1280: 420, 1920: 560}
_AXE = """
axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations
  .filter(violation => ["serious", "critical"].includes(violation.impact))
  .flatMap(violation => violation.nodes.slice(0, 5).map(node =>
    `${violation.impact} ${violation.id}: ${node.target.join(" ")} ${node.any[0]?.data?.contrastRatio ?? ""}`)))
"""


def main(words: Sequence[str]) -> int:
    """Photograph, check, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m maintenance.looks")
    parser.add_argument("pages", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--axe", type=Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--sheets", type=int, default=8, metavar="N")
    given = parser.parse_args(words)
    files = sorted(given.pages.rglob("*.html")) if given.pages.is_dir() else [given.pages]
    files = [file for file in files if not given.only or file.stem in given.only]
    given.out.mkdir(parents=True, exist_ok=True)
    axe = given.axe.read_text(encoding="utf-8") if given.axe else ""
    found = 0
    home = given.pages if given.pages.is_dir() else given.pages.parent
    with _served(home) as address, opened_browser() as page:
        page.obey_no_policy()
        for scheme in SCHEMES:
            for width in WIDTHS:
                for file in files:
                    for finding in _looked_at(
                        page, file, f"{address}/{file.relative_to(home).as_posix()}", width, scheme, axe, given.out
                    ):
                        found += 1
                        print(f"{file.name} {width} {scheme}: {finding}", flush=True)
                for number in range(0, len(files), given.sheets):
                    _sheet(page, files[number : number + given.sheets], width, scheme, given.out, number)
    print(f"{len(files)} pages, {found} findings ({page.version}{', axe' if axe else ''})")
    return 1 if found else 0


class _Quiet(SimpleHTTPRequestHandler):
    """A server of files that reports nothing."""

    def log_message(self, *_arguments: object) -> None:
        """Nothing."""


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """The address of a server of a folder, on this machine alone: a search and a page for lost visitors need one."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _looked_at(page: Page, file: Path, address: str, width: int, scheme: str, axe: str, out: Path) -> Iterator[str]:
    page.open(address, width=width, scheme=scheme)
    _photo(out, file, width, scheme).write_bytes(page.photograph(whole=True, scale=0.5 if width > 1000 else 1))
    yield from page.findings()
    if axe:
        page.ask(f"{axe};0")
        yield from page.ask(_AXE)


def _photo(out: Path, file: Path, width: int, scheme: str) -> Path:
    return out / f"{file.stem}-{width}-{scheme}.png"


def _sheet(page: Page, files: Sequence[Path], width: int, scheme: str, out: Path, number: int) -> None:
    """A contact sheet: the first part of some photographs side by side."""
    thumb = _THUMB[width]
    figures = ""
    for file in files:
        data = base64.b64encode(_photo(out, file, width, scheme).read_bytes()).decode()
        figures += f'<figure>{escape(file.stem)}<div><img src="data:image/png;base64,{data}"></div></figure>'
    style = (
        f"body{{margin:8px;background:#888;font:13px sans-serif}} figure{{display:inline-block;margin:4px}}"
        f"img{{width:{thumb}px;display:block}} div{{max-height:{_SHOWN * thumb // width}px;overflow:hidden}}"
    )
    sheet = out / "sheet.html"
    sheet.write_text(f"<!doctype html><style>{style}</style>{figures}", encoding="utf-8")
    page.open(sheet.resolve().as_uri(), width=(thumb + 9) * min(len(files), 4) + 20)
    (out / f"sheet-{width}-{scheme}-{number}.png").write_bytes(page.photograph(whole=True))
    sheet.unlink()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
