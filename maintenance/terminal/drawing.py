"""Screens that follow each other as one animated SVG, readable on light and dark pages, without scripts.

It begins with a still picture, the whole session at a glance. Nothing else is shown to people who asked their system
for less motion, on paper, and by programs that know no animations. Then each row is one text that is visible from its
first screen to its last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from maintenance.terminal.screen import Row

#: A row's place and text, with the numbers of its first screen and of the one that follows its last.
Shown = tuple[int, Row, int, int]

_CHARACTER, _LINE, _MARGIN, _SIZE = 8.43, 19, 16, 14
#: How long the still picture is shown before the first screen, in seconds.
_STILL = 3.0
_STYLE = """\
:root{--back:#fff;--text:#1f2328;--edge:#d0d7de;--faint:#59636e;--red:#cf222e;--green:#1a7f37;--yellow:#9a6700;--cyan:#1b7c83}
@media(prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--edge:#30363d;--faint:#9198a1;--red:#ff7b72;\
--green:#3fb950;--yellow:#d29922;--cyan:#39c5cf}}
rect{fill:var(--back);stroke:var(--edge)}
text{fill:var(--text);font:%dpx ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}
.played text{visibility:hidden}
.bold{font-weight:600}.faint{fill:var(--faint)}
.red{fill:var(--red)}.green{fill:var(--green)}.yellow{fill:var(--yellow)}.cyan{fill:var(--cyan)}
"""
_MOVING = """\
@media screen and (prefers-reduced-motion:no-preference){
.still,.played text{animation-duration:%.2fs;animation-timing-function:step-end;animation-iteration-count:infinite}
.still{animation-name:still}@keyframes still{0%%{visibility:visible}%.2f%%{visibility:hidden}}
%s}
"""


def drawn(
    screens: Sequence[tuple[float, Sequence[Row]]],
    seconds: float,
    still: Sequence[Row],
    size: tuple[int, int],
    title: str,
) -> str:
    """The SVG.

    Args:
        screens: each with the time at which it begins, from 0.
        seconds: how long they take.
        still: the rows of the still picture.
        size: rows and columns.
        title: what a screen reader says of it.
    """
    (rows, columns), end = size, seconds + _STILL
    times = [_STILL + time for time, _ in screens]
    shown = list(_intervals([screen for _, screen in screens]))
    names = {span: f"s{number}" for number, span in enumerate(dict.fromkeys(span[2:] for span in shown))}
    width, height = columns * _CHARACTER + 2 * _MARGIN, rows * _LINE + 2 * _MARGIN
    frames = "".join(_keyframes(name, times, end, *span) for span, name in names.items())
    style = _STYLE % _SIZE + _MOVING % (end, 100 * _STILL / end, frames)
    stands = "\n".join(_text(place, row) for place, row in enumerate(still))
    played = "\n".join(_text(place, row, names[begin, past]) for place, row, begin, past in shown)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" '
        f'aria-label="{escape(title)}">\n<title>{escape(title)}</title>\n<style>\n{style}</style>\n'
        f'<rect x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1}" rx="8"/>\n'
        f'<g class="still">\n{stands}\n</g>\n<g class="played">\n{played}\n</g>\n</svg>\n'
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
    steps = f"{100 * times[begin] / seconds:.2f}%{{visibility:visible}}"
    steps += f"{100 * times[end] / seconds:.2f}%{{visibility:hidden}}" if end < len(times) else ""
    return f".played .{name}{{animation-name:{name}}}@keyframes {name}{{0%{{visibility:hidden}}{steps}}}\n"


def _text(place: int, row: Row, name: str = "") -> str:
    y = _MARGIN + place * _LINE + _SIZE
    classes = f' class="{name}"' if name else ""
    return f'<text{classes} x="{_MARGIN}" y="{y}">{_spans(row)}</text>'


def _spans(row: Row) -> str:
    parts = []
    for style, cells in groupby(row, key=lambda cell: cell[1]):
        text = escape("".join(character for character, _ in cells), quote=False)
        parts.append(f'<tspan class="{style}">{text}</tspan>' if style else text)
    return "".join(parts).rstrip()
