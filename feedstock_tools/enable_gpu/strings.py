"""Build strings that tell CPU and CUDA builds apart, and features that make solvers avoid one of them."""

from __future__ import annotations

import re
from collections.abc import Collection

from feedstock_tools.conditions.spec import to_expression, to_selector
from feedstock_tools.enable_gpu.insertion import placed
from feedstock_tools.enable_gpu.numbers import Numbering
from feedstock_tools.enable_gpu.owners import GpuParts
from feedstock_tools.enable_gpu.settings import Edits, Setting, free_name
from feedstock_tools.enable_gpu.wishes import GpuWishes
from feedstock_tools.generate.texts.lines import Line
from feedstock_tools.generate.texts.needs import CPU, CUDA
from feedstock_tools.generate.texts.v0 import PYTHON_PREFIX, build_strings
from feedstock_tools.generate.texts.v1 import ACCELERATOR, build_string
from feedstock_tools.generate.texts.wording import CUDA_DIGITS
from feedstock_tools.recipe.written.document import Document, Entry, TextEdit
from feedstock_tools.recipe.written.owners import Owner

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
    """The build strings of all packages that vary: a new one, or the recipe's own with the accelerator before the hash.

    Args:
        parts: the parts of the recipe.
        numbers: the build numbers, which build strings end with.
    """
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
