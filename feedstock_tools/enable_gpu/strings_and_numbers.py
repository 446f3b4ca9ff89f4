"""Build strings and numbers that tell CPU and CUDA builds apart, and make solvers prefer one of them.

The number grows with the CUDA version, so that a solver takes the newest build that the driver supports.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from feedstock_tools.conditions.spec import to_expression, to_selector
from feedstock_tools.enable_gpu.insertion import Edits, Setting, free_name, placed
from feedstock_tools.enable_gpu.owners import GpuParts
from feedstock_tools.enable_gpu.wishes import GpuWishes
from feedstock_tools.generate.texts.lines import Line
from feedstock_tools.generate.texts.resolved import CPU, CUDA
from feedstock_tools.generate.texts.v0 import PYTHON_PREFIX, build_strings
from feedstock_tools.generate.texts.v1 import ACCELERATOR, build_string
from feedstock_tools.generate.texts.wording import CUDA_DIGITS, PREFERRED_CPU, RAISED
from feedstock_tools.recipe.written.document import Document, Entry, TextEdit
from feedstock_tools.recipe.written.owners import Owner
from feedstock_tools.recipe.written.variables import Variable, read_variables

_LITERAL = re.compile(r"\d{1,9}")
_TEMPLATE = re.compile(r"\$?\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_VARIABLE = re.compile(r"(\w+)(?:\s*\|\s*int)?")
#: Sums and differences, which are whole numbers if their terms are.
_WHOLE = re.compile(r"\w+(?:\s*[-+]\s*\w+)*")
_BLOCK_END = re.compile(r"\{%[-+]?\s*(?:endif|endfor)\s*[-+]?%\}")


@dataclass(frozen=True, slots=True)
class Numbering:
    """The edits for the numbers of CUDA builds.

    `replaced` are the templates that no longer give the number of the build: build strings that end with one of them
    must name the new number. For an output of a `meta.yaml` that got a number of its own, `own` has this number, since
    `PKG_BUILDNUM` in its strings is the number of the recipe.
    """

    edits: Edits
    replaced: frozenset[str] = frozenset()
    own: Mapping[Owner, str] = field(default_factory=dict)


def numbering(parts: GpuParts, wishes: GpuWishes) -> Numbering:
    """The numbers of CUDA builds, raised with the CUDA version, or those of CPU builds above them.

    Where only some outputs vary, those get a number of their own, so that the others stay one build for all jobs.
    """
    if wishes.by == "track_features":
        return Numbering(Edits())
    own = {owner: _numbers(owner) for owner in parts.varying if owner is not parts.recipe}
    shared = _numbers(parts.recipe)
    together = not parts.others and not any(own.values())
    if parts.recipe.document.has_templates:
        return _numbering_v0(parts, wishes, shared, own, together=together)
    return _numbering_v1(parts, wishes, shared, own, together=together)


def _numbers(owner: Owner) -> list[Entry]:
    return [entry for entry in owner.settings if entry.key == "number" and entry.value.kind == "scalar"]


def _numbering_v0(
    parts: GpuParts, wishes: GpuWishes, shared: list[Entry], own: dict[Owner, list[Entry]], *, together: bool
) -> Numbering:
    document = parts.recipe.document
    base, lines, changes = _base_v0(document, shared)
    if together and base is not None:
        steps = _steps(base, wishes)
        if lines or not shared:  # a literal so far, or no number at all
            setting = _number_setting(parts, shared, f"{{{{ {base} }}}}")
            return Numbering(Edits(tuple(changes), setting, (*lines, *steps)))
        return Numbering(Edits((*changes, *_after_last(document, base, steps))))
    offset = free_name(document, "cuda_build", "cuda_build_number")
    raised = (Line(f"{{% set {offset} = 0 %}}"), *_steps(offset, wishes))
    settings: list[Setting] = []
    replaced: set[str] = set()
    for entry in shared if together else (entry for entries in own.values() for entry in entries):
        changes.append(_summed(entry, offset, "{{"))
        replaced.add(entry.value.text)
    numbers: dict[Owner, str] = {}
    for owner in parts.varying if not together else ():
        if own.get(owner):
            continue
        written = _own_numbers(document, shared, base, offset)
        settings.append(Setting(owner, tuple(Line(f"number: {line.text}", line.selector) for line in written)))
        replaced |= {entry.value.text for entry in shared}
        if len(written) == 1:
            numbers[owner] = written[0].text
    edits = Edits(tuple(changes), tuple(settings), (*lines, *raised))
    return Numbering(edits, frozenset(replaced), numbers)


def _own_numbers(document: Document, shared: list[Entry], base: str | None, offset: str) -> list[Line]:
    """The numbers for an output without any: those of the recipe plus an offset, each with its selector."""
    if base is not None:
        statements = [variable for variable in read_variables(document) if variable.name == base]
        whole = base if all(_is_whole(variable) for variable in statements) else f"{base} | int"
        return [Line(f"{{{{ {whole} + {offset} }}}}")]
    return [Line(_summed(entry, offset, "{{").text, document.selector_of(entry) or None) for entry in shared]


def _base_v0(document: Document, shared: list[Entry]) -> tuple[str | None, list[Line], list[TextEdit]]:
    """The variable of the shared number, with its definition if that is a literal so far; None for several numbers."""
    if len(shared) > 1:
        return None, [], []
    text = shared[0].value.text if shared else "0"
    if _LITERAL.fullmatch(text):
        name = free_name(document, "build", "build_number")
        changes = [TextEdit(shared[0].value.start, shared[0].value.end, f"{{{{ {name} }}}}")] if shared else []
        return name, [Line(f"{{% set {name} = {text} %}}")], changes
    inside = _TEMPLATE.fullmatch(text)
    variable = _VARIABLE.fullmatch(inside[1]) if inside else None
    names = {statement.name for statement in read_variables(document)}
    return (variable[1] if variable and variable[1] in names else None), [], []


def _steps(base: str, wishes: GpuWishes) -> tuple[Line, ...]:
    """The statements that raise a variable in CUDA builds, and above them in CPU builds, if those are preferred."""
    steps = [Line(f"{{% set {base} = {base} + {RAISED} %}}", to_selector(CUDA, ()))]
    if wishes.prefer == "cpu":
        steps.append(Line(f"{{% set {base} = {base} + {PREFERRED_CPU} %}}", to_selector(CPU, ())))
    return tuple(steps)


def _after_last(document: Document, name: str, lines: Sequence[Line]) -> list[TextEdit]:
    """Statements below the last one that sets a variable, and below the block that it is in."""
    statements = [variable for variable in read_variables(document) if variable.name == name]
    if not all(_is_whole(variable) for variable in statements):
        lines = [Line(line.text.replace(f"= {name} +", f"= {name} | int +"), line.selector) for line in lines]
    offset = statements[-1].end
    while document.is_in_block(offset):
        end = _BLOCK_END.search(document.text, offset)
        if end is None:
            break
        offset = end.end()
    text = [f"{line.text}  # [{line.selector}]" for line in lines]
    return placed(document, text, after=offset)


def _is_whole(variable: Variable) -> bool:
    """Whether a variable is a whole number to Jinja rather than text."""
    if variable.part is not None:
        return variable.part.style not in {"'", '"'} and _LITERAL.fullmatch(variable.part.text) is not None
    return _WHOLE.fullmatch(variable.expression) is not None


def _summed(entry: Entry, offset: str, opening: str) -> TextEdit:
    """The change that adds an offset to a number, a literal or a template."""
    text = entry.value.text
    inside = _TEMPLATE.fullmatch(text)
    inner = text if inside is None else inside[1]
    base = inner if re.fullmatch(r"\w+", inner) and inside is None else f"({inner}) | int"
    return TextEdit(entry.value.start, entry.value.end, f"{opening} {base} + {offset} }}}}")


def _number_setting(parts: GpuParts, shared: list[Entry], text: str) -> tuple[Setting, ...]:
    """A number for a recipe that has none."""
    return () if shared else (Setting(parts.recipe, (Line(f"number: {text}"),)),)


def _numbering_v1(
    parts: GpuParts, wishes: GpuWishes, shared: list[Entry], own: dict[Owner, list[Entry]], *, together: bool
) -> Numbering:
    document = parts.recipe.document
    test = to_expression(CUDA)
    otherwise = PREFERRED_CPU if wishes.prefer == "cpu" else 0
    text = shared[0].value.text if shared else "0"
    lines: list[Line] = []
    inside = _TEMPLATE.fullmatch(text)
    if inside is None and _LITERAL.fullmatch(text):
        base = free_name(document, "build", "build_count")
        lines.append(Line(f"{base}: {text}"))
    else:
        base = _whole(document, inside[1] if inside else text)
    number = free_name(document, "number", "numbered")
    if re.fullmatch(r"\w+", base):  # as in a recipe that the generator writes
        cpu = f"{base} + {otherwise}" if otherwise else base
        lines.append(Line(f"{number}: ${{{{ {base} + {RAISED} if {test} else {cpu} }}}}"))
    else:
        lines.append(Line(f"{number}: ${{{{ {base} + ({RAISED} if {test} else {otherwise}) }}}}"))
    changes: list[TextEdit] = []
    settings: list[Setting] = []
    replaced = {text}
    if together:
        changes += [TextEdit(entry.value.start, entry.value.end, f"${{{{ {number} }}}}") for entry in shared]
        settings += _number_setting(parts, shared, f"${{{{ {number} }}}}")
        return Numbering(Edits(tuple(changes), tuple(settings), tuple(lines)), frozenset(replaced))
    inherited = False
    for owner in parts.varying:
        for entry in own.get(owner, []):
            offset = f"({RAISED} if {test} else {otherwise})"
            changes.append(_summed(entry, offset, "${{"))
            replaced.add(entry.value.text)
        if not own.get(owner):
            inherited = True
            settings.append(Setting(owner, (Line(f"number: ${{{{ {number} }}}}"),)))
    if inherited and inside is None and shared:
        changes += [TextEdit(shared[0].value.start, shared[0].value.end, f"${{{{ {base} }}}}")]
    edits = Edits(tuple(changes), tuple(settings), tuple(lines if inherited else ()))
    return Numbering(edits, frozenset(replaced))


def _whole(document: Document, expression: str) -> str:
    """An expression as a whole number: a variable of the context that is one, else converted."""
    variables = [variable for variable in read_variables(document) if variable.name == expression]
    if re.fullmatch(r"\w+", expression):
        return expression if variables and all(_is_whole(variable) for variable in variables) else f"{expression} | int"
    return f"({expression}) | int"


#: The hash in a build string, with the Python before it.
_HASH = re.compile(r"(?:py\$?\{\{[^{}]*\}\}_?)?h?(?:\{\{-?\s*PKG_HASH\s*-?\}\}|\$\{\{\s*hash\s*\}\})")
#: What conda-build puts into build strings for packages in `host`, whose versions it leaves out of the hash.
_PREFIXES = {
    "python": PYTHON_PREFIX,
    "perl": 'pl{{ perl | replace(".", "") }}',
    "r-base": 'r{{ r_base | replace(".", "") }}',
}
_LAST_TEMPLATE = re.compile(r"(\$?\{\{[^{}]*\}\})[ \t]*(?=#|\r?$|[\"']$)", re.MULTILINE)


def build_string_edits(parts: GpuParts, numbers: Numbering) -> Edits:
    """The build strings of all packages that vary: a new one, or the recipe's own with the accelerator before the hash."""
    document = parts.recipe.document
    accelerator = free_name(document, "accelerator", "cuda_or_cpu")
    changes: list[TextEdit] = []
    settings: list[Setting] = []
    remarks: list[str] = []
    used = not document.has_templates
    for owner in parts.varying:
        holder = _holder(parts, owner)
        entries = [entry for entry in holder.settings if entry.key == "string"]
        number = numbers.own.get(owner, "{{ PKG_BUILDNUM }}" if document.has_templates else "${{ build_number }}")
        replaced = numbers.replaced | ({"{{ PKG_BUILDNUM }}"} if owner in numbers.own else frozenset())
        for entry in entries:
            edited = _with_accelerator(document, entry, accelerator, replaced, number)
            if edited is None:
                place = f"{document.path.name}:{document.line_of(entry.start)}"
                remarks.append(
                    f"{place} has no hash, so CPU and CUDA builds of {owner.name} may share this build string"
                )
            else:
                used = True
                changes.append(edited)
        if not entries:
            settings.append(Setting(holder, _new_string(owner, holder, accelerator, number)))
    variables = _variables(document, accelerator) if used else ()
    return Edits(tuple(changes), tuple(settings), variables, tuple(remarks))


def _holder(parts: GpuParts, owner: Owner) -> Owner:
    """The holder of the build string of an owner: the recipe for an output of a `meta.yaml` with the recipe's own name.

    conda-build looks for the place of the hash in the recipe's own text, and names the package `h1234567` if it is not
    there (conda_build/metadata.py: build_id). Outputs without a section inherit the recipe's string, so it stays with
    the output if one of them is the same for CPU and CUDA.
    """
    is_recipe = (
        owner.document.has_templates
        and owner.name == parts.recipe.name
        and not any(entry.key == "string" for entry in owner.settings)
    )
    return parts.recipe if is_recipe and all(other.build is not None for other in parts.others) else owner


def _new_string(owner: Owner, holder: Owner, accelerator: str, number: str) -> tuple[Line, ...]:
    if not owner.document.has_templates:
        return (Line(f"string: {build_string(accelerator, python=owner.is_python)}"),)
    required = owner.names("host") | holder.names("host")
    is_python = owner.is_python or holder.is_python
    names = [name for name in _PREFIXES if (is_python if name == "python" else name in required)]
    strings = build_strings("".join(_PREFIXES[name] for name in names), number)
    return tuple(Line(f"string: {text}", to_selector(condition, ())) for condition, text in strings.items())


def _variables(document: Document, accelerator: str) -> tuple[Line, ...]:
    if not document.has_templates:
        return (Line(f"{accelerator}: {ACCELERATOR}"),)
    return (
        Line(f'{{% set {accelerator} = "cpu_" %}}'),
        Line(f'{{% set {accelerator} = "cuda" ~ ({CUDA_DIGITS}) %}}', to_selector(CUDA, ())),
    )


def _with_accelerator(
    document: Document, entry: Entry, accelerator: str, replaced: Collection[str], number: str
) -> TextEdit | None:
    """The build string with the accelerator before its hash, and a number for those replaced; None without a hash."""
    opening = "{{" if document.has_templates else "${{"
    source = document.text[entry.value.start : entry.value.end]
    text, hashes = _HASH.subn(lambda match: f"{opening} {accelerator} }}}}{match[0]}", source)
    if not hashes:
        return None
    text = _LAST_TEMPLATE.sub(lambda match: number if match[1] in replaced else match[0], text)
    return TextEdit(entry.value.start, entry.value.end, text)


def preference(parts: GpuParts, wishes: GpuWishes) -> Edits:
    """The features that make solvers avoid some builds, if the wishes prefer builds by features."""
    if wishes.by == "build_number":
        return Edits()
    document = parts.recipe.document
    avoided = CPU if wishes.prefer == "gpu" else CUDA
    word = "cpu" if wishes.prefer == "gpu" else "gpu"
    key = "track_features" if document.has_templates else "variant"
    changes: list[TextEdit] = []
    settings: list[Setting] = []
    remarks: list[str] = []
    for owner in parts.varying:
        existing = next((entry for entry in owner.settings if entry.key == key), None)
        priority = f"down_prioritize_variant: ${{{{ 1 if {to_expression(avoided)} else 0 }}}}"
        if existing is not None and (document.has_templates or "down_prioritize_variant" in existing.value.members):
            place = f"{document.path.name}:{document.line_of(existing.start)}"
            remarks.append(
                f"{place} prefers other builds of {owner.name} already: add CPU and CUDA builds to it by hand"
            )
        elif existing is not None and existing.value.entries:
            lead = " " * document.column_of(existing.value.entries[0].start)
            changes += placed(document, [lead + priority], after=existing.value.entries[-1].end)
        elif document.has_templates:
            feature = Line(f"  - {owner.name}-{word}", to_selector(avoided, ()))
            settings.append(Setting(owner, (Line("track_features:"), feature)))
        else:
            settings.append(Setting(owner, (Line("variant:"), Line(f"  {priority}"))))
    return Edits(tuple(changes), tuple(settings), remarks=tuple(remarks))
