"""Value recipes: numbers of one magnitude, of all magnitudes, about the edges of a domain, and special ones."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from conformance.dtypes import DType
from conformance.dtypes import dtype as dtype_of
from conformance.formats import component, hexadecimal, special_bits
from conformance.strategies.rarely import one_in
from conformance.values import Special, Values

_SEEDS = st.integers(0, 2**32 - 1)
_CENTERS = ("0", "1", "-1", "0.5", "2", "3.14159265358979323846", "10", "100")
_SMALL_INTEGER = 16
_ALL = 2**30

_CHEAP = ("constant", "arange", "integers", "moderate", "choice", "bits")

_USUAL = 10
"""One incoming gradient of so many has numbers of all kinds."""


@cache
def values(
    dtype: str, *, domain: tuple[float, float] | None = None, elementwise: bool = False
) -> st.SearchStrategy[Values]:
    """Recipes for tensors of ``dtype``, from a constant to anything.

    ``domain`` is the closed interval in which the op is defined: its ends become points of interest beside the
    usual ones, and half of the recipes of moderate numbers keep its sign if it has one. For ``elementwise`` ops half of
    the recipes mix values of all kinds; where elements meet, one NaN would hide all others.
    """
    layout = component(dtype_of(dtype))
    centers = (*(str(end) for end in domain or () if abs(end) < float("inf")), *_CENTERS)
    if not layout.is_float:
        centers = ("0", "1") if layout.width == 8 and not layout.is_signed else ("0", "1", "100")
    patterns = [
        st.sampled_from(("0", "1")).map(lambda number: Values("constant", params={"value": number})),
        _integers(layout.is_signed),
        st.builds(lambda step: Values("arange", params={"step": step}), st.integers(1, 3)),
        _moderate(layout.dtype, domain),
        _powers(layout.dtype),
        st.builds(
            lambda center, spread, seed: Values("near", seed, {"center": center, "spread": spread}),
            st.sampled_from(centers),
            st.sampled_from((4, 64, 4096)),
            _SEEDS,
        ),
        _choice(layout.dtype),
        _SEEDS.map(lambda seed: Values("bits", seed)),
        _SEEDS.map(lambda seed: Values("specials", seed)),
    ]
    if elementwise:
        patterns += [_SEEDS.map(lambda seed: Values("mixed", seed))] * len(patterns)
    # By an index of our own: a union would drop repeated strategies, and shrink to whatever has the fewest choices.
    pattern = st.integers(0, len(patterns) - 1).flatmap(patterns.__getitem__)
    return st.builds(_with_specials, pattern, _specials(layout.dtype))


def whole_values(dtype: str, low: int, high: int) -> st.SearchStrategy[Values]:
    """Recipes of whole numbers in a closed interval, less what a type without a sign cannot hold: one, or any."""
    least = max(low, 0) if not component(dtype_of(dtype)).is_signed else low
    return st.builds(
        lambda first, last, seed: Values("integers", seed, {"low": min(first, last), "high": max(first, last)}),
        st.integers(least, high),
        st.integers(least, high),
        _SEEDS,
    )


def cheap(recipe: Values, dtype: str) -> Values:
    """The recipe, or for one that takes long to fill a large tensor, moderate numbers.

    To draw a recipe and then simplify it, instead of drawing a cheap one, keeps large tensors from being fewer choices
    than small ones, to which cases would shrink.
    """
    if recipe.pattern in _CHEAP:
        return recipe
    low = -2 if component(dtype_of(dtype)).is_float else 0
    return Values("moderate", recipe.seed, {"low": low, "high": 2}, recipe.specials)


def related(recipe: Values, dtype: str) -> st.SearchStrategy[Values]:
    """The values of another operand, or such as cancel or tie with them, or are a few powers of two away."""
    layout = component(dtype_of(dtype))
    farther = layout.mantissa + 1 if layout.is_float else 1
    changes: list[dict[str, Any]] = [{"negated": True}, {"ulps": 1}, {"ulps": -1}, {"negated": True, "ulps": 1}]
    changes += [{"exponent": exponent} for exponent in (-1, 1, -farther, farther)]
    of_it = [Values("related", params={"to": recipe.to_json(), **change}) for change in changes]
    return st.sampled_from((recipe, *of_it))


@cache
def incoming_values(dtype: str) -> st.SearchStrategy[Values]:
    """Recipes for incoming gradients: ones, one number, moderate, tiny or large ones; seldom NaN and infinities."""
    layout = component(dtype_of(dtype))
    first, last = layout.dtype.emin, layout.dtype.emax
    windows = [(-2, 2), (-6, 7), (first, first + 4), (last - 4, last), (first, last)]
    patterns = [
        st.sampled_from(("1", "-1", "0.5", "0", "3")).map(lambda one: Values("constant", params={"value": one})),
        st.builds(
            lambda window, seed: Values("moderate", seed, {"low": window[0], "high": window[1]}),
            st.sampled_from(windows),
            _SEEDS,
        ),
    ]
    usual = st.integers(0, len(patterns) - 1).flatmap(patterns.__getitem__)
    return one_in(_USUAL, _SEEDS.map(lambda seed: Values("mixed", seed)), usual)


def _with_specials(recipe: Values, specials: list[Special]) -> Values:
    return Values(recipe.pattern, recipe.seed, recipe.params, tuple(specials))


def _integers(signed: bool) -> st.SearchStrategy[Values]:
    low = -_SMALL_INTEGER if signed else 0
    return _SEEDS.map(lambda seed: Values("integers", seed, {"low": low, "high": _SMALL_INTEGER}))


def _moderate(dtype: DType, domain: tuple[float, float] | None) -> st.SearchStrategy[Values]:
    """Windows of exponents: about 1, the range of logits, and all that the format has."""
    layout = component(dtype)
    first, last = (dtype.emin, dtype.emax) if layout.is_float else (0, layout.width - 1)
    windows = {(-2, 2), (-6, 7), (-14, 3), (0, 15), (first, last)} if layout.is_float else {(0, 4), (0, last)}
    signs = ["both"] if layout.is_signed else ["positive"]
    if domain is not None and domain[0] >= 0:
        signs.insert(0, "positive")
    if domain is not None and domain[1] <= 0:
        signs.insert(0, "negative")
    return st.builds(
        lambda window, sign, seed: Values("moderate", seed, {"low": window[0], "high": window[1], "sign": sign}),
        st.sampled_from(sorted(windows, key=lambda window: window[1] - window[0])),
        st.sampled_from(signs),
        _SEEDS,
    )


def _powers(dtype: DType) -> st.SearchStrategy[Values]:
    layout = component(dtype)
    first, last = (dtype.emin, dtype.emax) if layout.is_float else (0, layout.width - 1)
    return st.builds(
        lambda ulps, seed: Values("powers", seed, {"low": first, "high": last, "ulps": ulps}),
        st.integers(0, 2),
        _SEEDS,
    )


def _choice(dtype: DType) -> st.SearchStrategy[Values]:
    """Two or three far-apart numbers, as masked or saturated logits have."""
    layout = component(dtype)
    if not layout.is_float:
        pools: list[tuple[str, ...]] = [("0", "1")]
    else:
        pools = [("0", "1"), ("-100", "100"), ("0", "-inf"), ("-60000", "60000", "0"), ("1", "0.0001")]
        pools.append(tuple(hexadecimal(bits, dtype) for bits in special_bits(dtype)[-2:]))
    return st.builds(lambda pool, seed: Values("choice", seed, {"values": list(pool)}), st.sampled_from(pools), _SEEDS)


def _specials(dtype: DType) -> st.SearchStrategy[list[Special]]:
    """Up to three runs of a special value: mostly single elements, sometimes a stretch or all that follows."""
    numbers = st.sampled_from([hexadecimal(bits, dtype) for bits in special_bits(dtype)])
    starts = st.one_of(st.integers(0, 8), st.integers(0, 2**16))
    run = st.tuples(starts, st.sampled_from((1, 1, 1, 2, 64, 2048, _ALL)), numbers)
    return st.one_of(st.just([]), st.lists(run, min_size=1, max_size=3))
