"""The algebra of variants: properties that hold for all configurations."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from feedstock_tools.variants.model import Axis, VariantConfig, VariantSpace, combine, explode

KEYS = ("a", "b", "c", "d", "e")
VALUES = st.text("xyz", min_size=1, max_size=2)


@st.composite
def configurations(draw: st.DrawFn) -> VariantConfig:
    """A configuration of five keys, of which the first few are one zip group, or none are."""
    zipped = draw(st.integers(0, 3))
    length = draw(st.integers(1, 3))
    values = {}
    for place, key in enumerate(KEYS):
        size = length if place < zipped else draw(st.integers(1, 3))
        values[key] = tuple(draw(st.lists(VALUES, min_size=size, max_size=size)))
    return VariantConfig(values, (KEYS[:zipped],) if zipped > 1 else ())


@settings(max_examples=40)
@given(configurations())
def test_the_axes_of_a_configuration_have_its_values_and_groups(config: VariantConfig) -> None:
    axes = explode(config).axes

    assert {key: axis.column(key) for axis in axes for key in axis.keys} == dict(config.values)
    assert tuple(axis.keys for axis in axes if len(axis.keys) > 1) == config.zip_keys


@settings(max_examples=40)
@given(configurations())
def test_the_space_is_the_product_with_groups_in_step(config: VariantConfig) -> None:
    space = explode(config)
    plain = [dict(zip(KEYS, row, strict=True)) for row in product(*(config.values[key] for key in KEYS))]
    group = config.zip_keys[0] if config.zip_keys else ()
    rows = set(zip(*(config.values[key] for key in group), strict=True)) if group else set()
    wanted = {tuple(v.items()) for v in plain if not group or tuple(v[key] for key in group) in rows}

    assert {tuple((key, variant[key]) for key in KEYS) for variant in space} == wanted
    assert space.count == len(list(space))


@settings(max_examples=40)
@given(configurations(), st.dictionaries(st.sampled_from(KEYS), st.sets(VALUES, max_size=3)))
def test_selecting_by_key_is_selecting_variants(config: VariantConfig, choice: dict[str, set[str]]) -> None:
    space = explode(config)

    kept = [variant for variant in space if all(variant[key] in allowed for key, allowed in choice.items())]

    assert list(space.where(choice)) == kept


@settings(max_examples=40)
@given(configurations(), st.dictionaries(st.sampled_from(KEYS), st.sets(VALUES, max_size=3)))
def test_the_order_of_selections_does_not_matter(config: VariantConfig, choice: dict[str, set[str]]) -> None:
    forward = backward = explode(config)
    for key in choice:
        forward = forward.where({key: choice[key]})
    for key in reversed(choice):
        backward = backward.where({key: choice[key]})

    assert list(forward) == list(backward) == list(explode(config).where(choice))


@settings(max_examples=40)
@given(configurations())
def test_combining_with_itself_or_nothing_changes_nothing(config: VariantConfig) -> None:
    once = combine([config])

    assert combine([config, config]).values == once.values
    assert combine([VariantConfig({}), config]).values == once.values


def test_a_space_of_a_billion_variants_is_never_made() -> None:
    space = VariantSpace(tuple(Axis((f"k{n}",), tuple((str(v),) for v in range(100))) for n in range(10)))

    assert space.count == 10**20
    assert space.where({"k3": {"7"}}).first()["k3"] == "7"


@settings(max_examples=40)
@given(configurations(), st.sets(st.sampled_from((*KEYS, "unknown"))))
def test_the_axes_along_keys_are_those_that_have_one(config: VariantConfig, keys: set[str]) -> None:
    space = explode(config)
    assert space.along(keys).axes == tuple(axis for axis in space.axes if not keys.isdisjoint(axis.keys))


@settings(max_examples=40)
@given(configurations())
def test_a_part_of_a_space_finds_its_keys(config: VariantConfig) -> None:
    space = explode(config)
    part = space.where({"c": space.values("c")[:1], "e": space.values("e")[:1]})
    assert part == VariantSpace(part.axes)
    assert {key: part.values(key) for key in part.keys} == {
        key: VariantSpace(part.axes).values(key) for key in space.keys
    }
    assert part.first() == next(iter(part))
