"""Screens that follow each other as one animated SVG, readable on light and dark pages, without scripts.

Each row is one text that is visible from its first screen to its last. Who asked the system for less motion sees the
last screen alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from maintenance.terminal.screen import Row

__all__ = ["drawn"]

#: A row's place and text, with the numbers of its first screen and of the one that follows its last.
Shown = tuple[int, Row, int, int]

_CHARACTER, _LINE, _MARGIN, _SIZE = 8.43, 19, 16, 14
_STYLE = """\
:root{--back:#fff;--text:#1f2328;--edge:#d0d7de;--red:#cf222e;--green:#1a7f37;--yellow:#9a6700;--cyan:#1b7c83}
@media(prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--edge:#30363d;--red:#ff7b72;--green:#3fb950;\
--yellow:#d29922;--cyan:#39c5cf}}
rect{fill:var(--back);stroke:var(--edge)}
text{fill:var(--text);font:%dpx ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;\
white-space:pre;visibility:hidden;animation-duration:%.2fs;animation-timing-function:step-end;\
animation-iteration-count:infinite}
.bold{font-weight:600}.red{fill:var(--red)}.green{fill:var(--green)}.yellow{fill:var(--yellow)}.cyan{fill:var(--cyan)}
@media(prefers-reduced-motion){text{animation:none!important}.last{visibility:visible}}
"""


def drawn(screens: Sequence[tuple[float, Sequence[Row]]], seconds: float, rows: int, columns: int, title: str) -> str:
    """The SVG.

    Args:
        screens: each with the time at which it begins, from 0.
        seconds: when it all begins again.
        title: what a screen reader says of it.
    """
    times = [time for time, _ in screens]
    shown = list(_intervals([screen for _, screen in screens]))
    names = {span: f"s{number}" for number, span in enumerate(dict.fromkeys(span[2:] for span in shown))}
    width, height = columns * _CHARACTER + 2 * _MARGIN, rows * _LINE + 2 * _MARGIN
    style = _STYLE % (_SIZE, seconds) + "".join(_keyframes(name, times, seconds, *span) for span, name in names.items())
    texts = "\n".join(_text(each, names[each[2:]], last=each[3] == len(screens)) for each in shown)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" '
        f'aria-label="{escape(title)}">\n<title>{escape(title)}</title>\n<style>\n{style}</style>\n'
        f'<rect x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1}" rx="8"/>\n{texts}\n</svg>\n'
    )


def _intervals(screens: Sequence[Sequence[Row]]) -> Iterator[Shown]:
    """The texts of all rows, each from the screen in which it appears to that in which it is gone."""
    for place in range(max(map(len, screens))):
        texts = [screen[place] if place < len(screen) else () for screen in screens]
        begin = 0
        for text, same in groupby(texts):
            end = begin + len(list(same))
            if any(character != " " for character, _ in text):
                yield place, text, begin, end
            begin = end


def _keyframes(name: str, times: Sequence[float], seconds: float, begin: int, end: int) -> str:
    first = 100 * times[begin] / seconds
    steps = f"{first:.2f}%{{visibility:visible}}"
    steps += f"{100 * times[end] / seconds:.2f}%{{visibility:hidden}}" if end < len(times) else ""
    before = "0%{visibility:hidden}" if first else ""
    return f".{name}{{animation-name:{name}}}@keyframes {name}{{{before}{steps}}}\n"


def _text(shown: Shown, name: str, *, last: bool) -> str:
    place, row, _, _ = shown
    y = _MARGIN + place * _LINE + _SIZE
    return f'<text class="{name}{" last" if last else ""}" x="{_MARGIN}" y="{y}">{_spans(row)}</text>'


def _spans(row: Row) -> str:
    parts = []
    for style, cells in groupby(row, key=lambda cell: cell[1]):
        text = escape("".join(character for character, _ in cells), quote=False)
        parts.append(f'<tspan class="{style}">{text}</tspan>' if style else text)
    return "".join(parts).rstrip()
