"""Random YAML that tries to grow, to nest, to deceive, and texts of feedstocks after a few random changes."""

from __future__ import annotations

import random
from collections.abc import Callable

#: The files of a feedstock, each with the keys that its readers look at.
FILES = {
    "conda-forge.yml": "provider build_platform docker recipe_dir os_version github_actions azure test "
    "noarch_platforms skip_render conda_build_tool linux_64 upload_on_branch",
    "recipe/conda_build_config.yaml": "python zip_keys pin_run_as_build extend_keys c_compiler numpy "
    "MACOSX_SDK_VERSION migrator_ts channel_targets docker_image",
    ".ci_support/linux_64_.yaml": "python zip_keys pin_run_as_build target_platform docker_image channel_targets",
    ".ci_support/migrations/a.yaml": "__migrator migrator_ts python zip_keys operation primary_key ordering numpy",
    "recipe/variants.yaml": "python zip_keys c_compiler if then else",
    "recipe/meta.yaml": "package build requirements outputs source about test extra",
    "recipe/recipe.yaml": "context package build requirements outputs source about tests extra recipe",
    "feedstock.yaml": "name version source cuda build outputs requirements about tests variants gpu",
}
_SCALARS = (
    *("1", "1.0", "3.10", "true", "null", "~", "''", "linux", "0x7f", "1e999", ".nan", ".inf", "2020-01-01", "-1"),
    *("2020-01-01T00:00:00+99:99", "1_000", "0o777", "1:2:3", "'${{ python }}'", "'{{ python }}'"),
    *("9" * 5000, "a" * 70000),
    *("!!python/object:os.system x", "!!binary AAAA", "!!set {a, b}", "!!omap [a: 1]", "!!int x", "!!float x", "! x"),
    *('"\\u0000"', '"\\ud800"', '"\\x1b[2J"', "\u2028", "\ufeff", "&", "*", "*none", "? ", "%TAG ! x", "---", "..."),
    *("'../../outside'", "/etc/passwd", "- - - - 1", "<<", "=", "|\n    x\n", ">\n    x\n"),
    *('"\\U0001F600"', "\t", "@", "`"),
)
_OF_HOSTS = ("cores", "memory", "count", "jobs", "platforms", "gpus", "images", "labels", "price", "preempted", "back")
_SHORT = tuple(scalar for scalar in _SCALARS if len(scalar) < 100)
#: Characters of a text; readers refuse files of more than half a million.
_LONGEST = 1_000_000


def _node(chance: random.Random, depth: int, anchors: list[str]) -> str:
    """A random node in flow style; some have anchors, some are aliases."""
    if anchors and chance.random() < 0.2:
        return f"*{chance.choice(anchors)}"
    if depth <= 0 or chance.random() < 0.3:
        return chance.choice(_SCALARS if chance.random() < 0.1 else _SHORT)
    mark = ""
    if chance.random() < 0.3:
        anchors.append(f"x{len(anchors)}")
        mark = f"&{anchors[-1]} "
    count = chance.choice((0, 1, 2, 3, 9))
    if chance.random() < 0.5:
        return f"{mark}[{', '.join(_node(chance, depth - 1, anchors) for _ in range(count))}]"
    keys = (chance.choice(("python", "a", "b", "1", "<<", "zip_keys", "null", "[a]", "{a: b}")) for _ in range(count))
    return f"{mark}{{{', '.join(f'{key}: {_node(chance, depth - 1, anchors)}' for key in keys)}}}"


def _growing(chance: random.Random) -> str:
    """Aliases of aliases, merges of merges, or depth."""
    size = chance.choice((2, 9, 30, 90))
    times = chance.choice((2, 9, 99))
    kind = chance.randrange(8)
    if kind == 0:
        return "g0: &g0 [a]\n" + "".join(f"g{n}: &g{n} [{', '.join([f'*g{n - 1}'] * times)}]\n" for n in range(1, size))
    if kind == 1:
        return "g0: &g0 {a: 1}\n" + "".join(
            f"g{n}: &g{n} {{<<: [*g{n - 1}, *g{n - 1}], k{n}: 1}}\n" for n in range(1, size)
        )
    if kind == 2:
        keys = ", ".join(f"k{n}: v" for n in range(size * 50))
        return f"g: &g {{{keys}}}\n" + "".join(f"h{n}: {{<<: [{', '.join(['*g'] * times)}]}}\n" for n in range(size))
    if kind == 3:
        return f"g: {chance.choice('[{')}" * (size * times * 9) + "\n"
    if kind == 4:
        return "".join(f"{' ' * n}k{n}:\n" for n in range(size * 9))
    if kind == 5:
        return "g: &g [*g, *g]\n"
    if kind == 6:
        return "".join(f"k{n % 7}: {n}\n" for n in range(size * times))
    return "g: &g\n  - a\n" + "? *g\n: b\n" * size


def yaml_text(keys: str, chance: random.Random) -> str:
    """The text of a file whose readers look at some keys, separated by spaces."""
    parts: list[str] = []
    anchors: list[str] = []
    for key in chance.sample(keys.split(), min(len(keys.split()), chance.randrange(1, 9))):
        parts.append(f"{key}: {_node(chance, 4, anchors)}\n")
    if chance.random() < 0.5:
        parts.insert(chance.randrange(len(parts) + 1), _growing(chance))
    if chance.random() < 0.1:
        parts.insert(0, chance.choice(("%YAML 1.3\n---\n", "---\n---\n", "\ufeff", "#\x00\n", "\r", "\x85", "...\n")))
    text = "".join(parts)
    if chance.random() < 0.3:  # selectors, on some lines
        text = text.replace("\n", chance.choice(("  # [linux]\n", "  # [win]\n", "  # [python * 9 ** 9]\n")), 2)
    return (text * chance.choice((1, 1, 1, 1, 1, 50)))[:_LONGEST]


def hosts_text(chance: random.Random) -> str:
    """The text of a file of hosts for `plan --simulate`, with valid keys more often than not."""
    if chance.random() < 0.3:
        return yaml_text("hosts currency a", chance)
    valid = ("4", "4 GiB", "1 h", "0.5", "[a]", "[linux-64]", "0", "99999")
    entry = {"cores": "4", "memory": "4 GiB"}
    for key in chance.sample(_OF_HOSTS, 3):
        entry[key] = chance.choice(_SHORT if chance.random() < 0.4 else valid)
    return "hosts:\n  a:\n" + "".join(f"    {key}: {value}\n" for key, value in entry.items())


def times_text(chance: random.Random) -> str:
    """The text of a file of times for `plan --simulate`, likewise."""
    if chance.random() < 0.3:
        return yaml_text("linux_64_ '*' '[' '**'", chance)
    names = chance.sample(("linux_64_", "'*'", "'linux_[6'", "p", "'**/**'"), 2)
    valid = ("1 h", "9999 h", "0.001 s", "0 s", "1 s")
    return "".join(f"{name}: {chance.choice(_SHORT if chance.random() < 0.4 else valid)}\n" for name in names)


TOKENS = (
    *("{{ ", " }}", "{% for x in range(9) %}", "{% endfor %}", "{% if ", "{% set a = a ~ a %}", "{{ a|join(a) }}"),
    *("${{ ", "[linux]", "  # [", "]", "[py<3 and (", "[not ", "'''", '"', "'", "`", "\\", "|\n", ">\n", "- - - "),
    *("? ", ": ", ":", "&a ", "*a", "<<: *a", "!!python/object:os.system ", "!!binary ", "!!set ", "---\n"),
    *("...\n", "%YAML 1.1\n", "~", "null", "true", "1e999", "-1", "0x10", "9" * 400, "1_000", "2020-01-01", ".inf"),
    *("None", "__class__", "os.environ", "../../x", "/etc/passwd", "..", "a/b", "zip_keys:\n"),
    *("  - [python, numpy]\n", "migrator_ts: 1\n", "operation: key_add\n", "primary_key: python\n", "ordering:\n"),
    *("pin_run_as_build:\n", "extend_keys: [python]\n", "python:\n  - 3.12\n", "skip: true\n", "noarch: python\n"),
    *("outputs:\n", "{{ compiler('cuda') }}", "{{ pin_subpackage('a', exact=True) }}"),
    *("{{ pin_compatible('numpy') }}", "if: ", "then: ", "else: ", "match(python, '<3')", "\x00", "\r", "\r\n"),
    *("\t", "\x0c", "\u2028", "\x85", "\ufeff", "\U0001f600", "\u0130", "[" * 60, "{" * 60, "(" * 200, "a" * 5000),
    *("*" * 40, "#"),
)


def changed(text: str, other: str, chance: random.Random) -> str:
    """`text` after one to four changes; some take a piece of `other`."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 4))):
        text = chance.choice(CHANGES)(text, other, chance)
    return text


def _spliced(text: str, _other: str, chance: random.Random) -> str:
    """Insert a token, or put it in the place of a span; delete, repeat or change a span."""
    start = chance.randrange(len(text) + 1)
    end = min(len(text), start + chance.randrange(chance.choice((12, 60, 200))))
    token, span = chance.choice(TOKENS), text[start:end]
    repeated = span * chance.choice((2, 3, 50, 2000))
    middle = chance.choice((token + span, token, "", repeated, chr(chance.randrange(256)) + span[1:]))
    return text[:start] + middle + text[end:]


def _lines(text: str, other: str, chance: random.Random) -> str:
    """Take lines of another file, or of this one from elsewhere, or drop or indent some lines."""
    lines, others = text.splitlines(True), other.splitlines(True)
    at = chance.randrange(len(lines) + 1)
    source = chance.choice((lines, others))
    start = chance.randrange(len(source) + 1)
    piece = source[start : start + chance.randrange(12)]
    indent = " " * chance.randrange(5)
    return "".join([*lines[:at], *(indent + line for line in piece), *lines[at + chance.randrange(4) :]])


def _value(text: str, _other: str, chance: random.Random) -> str:
    """Give a line `key: value` another value."""
    lines = text.splitlines(True)
    places = [at for at, line in enumerate(lines) if ":" in line]
    if places:
        at = chance.choice(places)
        lines[at] = f"{lines[at].split(':')[0]}: {chance.choice(TOKENS)}\n"
    return "".join(lines)


CHANGES: tuple[Callable[[str, str, random.Random], str], ...] = (*(_spliced,) * 5, _lines, _lines, _value, _value)
