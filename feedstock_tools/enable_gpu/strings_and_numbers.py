"""Build strings and numbers that tell CPU and CUDA builds apart, and make solvers prefer one of them.

The number grows with the CUDA version, so that a solver takes the newest build that the driver supports.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from feedstock_tools.conditions.spec import to_expression, to_selector
from feedstock_tools.enable_gpu.inputs import GpuParts, GpuWishes
from feedstock_tools.enable_gpu.insertion import Edits, free_name, placed
from feedstock_tools.generate.texts.resolved import CPU, CUDA
from feedstock_tools.generate.texts.v0 import PYTHON_PREFIX, build_strings
from feedstock_tools.generate.texts.v1 import ACCELERATOR, build_string
from feedstock_tools.generate.texts.wording import CUDA_DIGITS, PREFERRED_CPU, RAISED, Line
from feedstock_tools.recipe.written.document import Document, Entry, TextEdit
from feedstock_tools.recipe.written.owners import Owner
from feedstock_tools.recipe.written.variables import Variable, read_variables

_LITERAL = re.compile(r"\d{1,9}")
_TEMPLATE = re.compile(r"\$?\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_VARIABLE = re.compile(r"(\w+)(?:\s*\|\s*int)?")
#: Sums and differences, which are whole numbers if their terms are.
_WHOLE = re.compile(r"\w+(?:\s*[-+]\s*\w+)*")
_BLOCK_END = re.compile(r"\{%[-+]?\s*(?:endif|endfor)\s*[-+]?%\}")


@dataclass
class Numbering(Edits):
    """The edits for the numbers of CUDA builds.

    `replaced` are the templates that no longer give the number of the build: build strings that end with one of them
    must name the new number. For an output of a `meta.yaml` that got a number of its own, `own` has this number, since
    `PKG_BUILDNUM` in its strings is the number of the recipe.
    """

    replaced: set[str] = field(default_factory=set)
    own: dict[Owner, str] = field(default_factory=dict)


def numbering(parts: GpuParts, wishes: GpuWishes) -> Numbering:
    """The numbers of CUDA builds, raised with the CUDA version, or those of CPU builds above them.

    Where only some outputs vary, those get a number of their own, so that the others stay one build for all jobs.
    """
    if wishes.by == "track_features":
        return Numbering()
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
    edits = Numbering()
    base = _base_v0(document, shared, edits)
    if together and base is not None:
        steps = _steps(base, wishes)
        if shared and not edits.variables:  # a variable already
            edits.changes += _after_last(document, base, steps)
            return edits
        if not shared:
            edits.set(parts.recipe, Line(f"number: {{{{ {base} }}}}"))
        edits.variables += steps
        return edits
    offset = free_name(document, "cuda_build", "cuda_build_number")
    edits.variables += [Line(f"{{% set {offset} = 0 %}}"), *_steps(offset, wishes)]
    for entry in shared if together else (entry for entries in own.values() for entry in entries):
        edits.replace(entry, _summed(entry, offset, "{{"))
        edits.replaced.add(entry.value.text)
    for owner in parts.varying if not together else ():
        if own.get(owner):
            continue
        written = _own_numbers(document, shared, base, offset)
        edits.set(owner, *(Line(f"number: {line.text}", line.selector) for line in written))
        edits.replaced |= {entry.value.text for entry in shared}
        if len(written) == 1:
            edits.own[owner] = written[0].text
    return edits


def _own_numbers(document: Document, shared: list[Entry], base: str | None, offset: str) -> list[Line]:
    """The numbers for an output without any: those of the recipe plus an offset, each with its selector."""
    if base is not None:
        statements = [variable for variable in read_variables(document) if variable.name == base]
        whole = base if all(_is_whole(variable) for variable in statements) else f"{base} | int"
        return [Line(f"{{{{ {whole} + {offset} }}}}")]
    return [Line(_summed(entry, offset, "{{"), document.selector_of(entry) or None) for entry in shared]


def _base_v0(document: Document, shared: list[Entry], edits: Numbering) -> str | None:
    """The variable of the shared number, which a literal becomes; None for several numbers."""
    if len(shared) > 1:
        return None
    text = shared[0].value.text if shared else "0"
    if _LITERAL.fullmatch(text):
        name = free_name(document, "build", "build_number")
        if shared:
            edits.replace(shared[0], f"{{{{ {name} }}}}")
        edits.variables.append(Line(f"{{% set {name} = {text} %}}"))
        return name
    inside = _TEMPLATE.fullmatch(text)
    variable = _VARIABLE.fullmatch(inside[1]) if inside else None
    names = {statement.name for statement in read_variables(document)}
    return variable[1] if variable and variable[1] in names else None


def _steps(base: str, wishes: GpuWishes) -> list[Line]:
    """The statements that raise a variable in CUDA builds, and above them in CPU builds, if those are preferred."""
    steps = [Line(f"{{% set {base} = {base} + {RAISED} %}}", to_selector(CUDA, ()))]
    if wishes.prefer == "cpu":
        steps.append(Line(f"{{% set {base} = {base} + {PREFERRED_CPU} %}}", to_selector(CPU, ())))
    return steps


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


def _summed(entry: Entry, offset: str, opening: str) -> str:
    """A number, a literal or a template, with an offset added to it."""
    text = entry.value.text
    inside = _TEMPLATE.fullmatch(text)
    inner = text if inside is None else inside[1]
    base = inner if re.fullmatch(r"\w+", inner) and inside is None else f"({inner}) | int"
    return f"{opening} {base} + {offset} }}}}"


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
    edits = Numbering(replaced={text})
    if together:
        edits.variables = lines
        for entry in shared:
            edits.replace(entry, f"${{{{ {number} }}}}")
        if not shared:
            edits.set(parts.recipe, Line(f"number: ${{{{ {number} }}}}"))
        return edits
    for owner in parts.varying:
        for entry in own.get(owner, []):
            edits.replace(entry, _summed(entry, f"({RAISED} if {test} else {otherwise})", "${{"))
            edits.replaced.add(entry.value.text)
        if not own.get(owner):
            edits.variables = lines
            edits.set(owner, Line(f"number: ${{{{ {number} }}}}"))
    if edits.variables and inside is None and shared:
        edits.replace(shared[0], f"${{{{ {base} }}}}")
    return edits


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
    """The build strings of packages that vary: a new one, or the recipe's own with the accelerator before the hash."""
    document = parts.recipe.document
    accelerator = free_name(document, "accelerator", "cuda_or_cpu")
    edits = Edits()
    used = not document.has_templates
    for owner in parts.varying:
        holder = _holder(parts, owner)
        entries = [entry for entry in holder.settings if entry.key == "string"]
        number = numbers.own.get(owner, "{{ PKG_BUILDNUM }}" if document.has_templates else "${{ build_number }}")
        replaced = numbers.replaced | ({"{{ PKG_BUILDNUM }}"} if owner in numbers.own else set())
        for entry in entries:
            edited = _with_accelerator(document, entry, accelerator, replaced, number)
            if edited is None:
                place = document.place_of(entry.start)
                message = f"has no hash, so CPU and CUDA builds of {owner.name} may share this build string"
                edits.remarks.append(f"{place} {message}")
            else:
                used = True
                edits.replace(entry, edited)
        if not entries:
            edits.set(holder, *_new_string(owner, holder, accelerator, number))
    if used:
        edits.variables += _variables(document, accelerator)
    return edits


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
) -> str | None:
    """The build string with the accelerator before its hash, and a number for those replaced; None without a hash."""
    opening = "{{" if document.has_templates else "${{"
    source = document.text[entry.value.start : entry.value.end]
    text, hashes = _HASH.subn(lambda match: f"{opening} {accelerator} }}}}{match[0]}", source)
    if not hashes:
        return None
    return _LAST_TEMPLATE.sub(lambda match: number if match[1] in replaced else match[0], text)


def preference(parts: GpuParts, wishes: GpuWishes) -> Edits:
    """The features that make solvers avoid some builds, if the wishes prefer builds by features."""
    if wishes.by == "build_number":
        return Edits()
    document = parts.recipe.document
    avoided = CPU if wishes.prefer == "gpu" else CUDA
    word = "cpu" if wishes.prefer == "gpu" else "gpu"
    key = "track_features" if document.has_templates else "variant"
    edits = Edits()
    for owner in parts.varying:
        existing = next((entry for entry in owner.settings if entry.key == key), None)
        priority = f"down_prioritize_variant: ${{{{ 1 if {to_expression(avoided)} else 0 }}}}"
        if existing is not None and (document.has_templates or "down_prioritize_variant" in existing.value.members):
            message = f"prefers other builds of {owner.name} already: add CPU and CUDA builds to it by hand"
            edits.remarks.append(f"{document.place_of(existing.start)} {message}")
        elif existing is not None and existing.value.entries:
            lead = " " * document.column_of(existing.value.entries[0].start)
            edits.changes += placed(document, [lead + priority], after=existing.value.entries[-1].end)
        elif document.has_templates:
            feature = Line(f"  - {owner.name}-{word}", to_selector(avoided, ()))
            edits.set(owner, Line("track_features:"), feature)
        else:
            edits.set(owner, Line("variant:"), Line(f"  {priority}"))
    return edits
