"""Fill a tensor from a recipe: a named pattern, its parameters, a seed and a few special runs.

Element ``k`` of a pattern is a function of the seed and ``k`` alone, in integer operations: a counter-based generator
needs no state, gives the same bytes on any machine, and leaves element ``k`` as it is when a case shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import DType
from conformance.formats import Component, array_of_bits, bits_of, component, encode, special_bits

Bits = NDArray[np.uint64]
Special = tuple[int, int, str]
"""A run of one value: first element (modulo the count), length, number (as :func:`conformance.formats.bits_of`)."""

_GOLDEN = 0x9E3779B97F4A7C15
_PI = Fraction(0x3243F6A8885A308D313198A2E03707344A4093822299F31D0082EFA98EC4E6C89, 1 << 256)


@dataclass(frozen=True)
class Values:
    """The recipe of a tensor's values; ``pattern`` is a key of :data:`PATTERNS`, ``params`` its parameters."""

    pattern: str
    seed: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    specials: tuple[Special, ...] = ()

    def __post_init__(self) -> None:
        if self.pattern not in PATTERNS:
            raise ValueError(f"value pattern {self.pattern!r} is unknown; allowed: {', '.join(PATTERNS)}")

    def to_json(self) -> dict[str, Any]:
        """Give the recipe as JSON, without what has its default."""
        described: dict[str, Any] = {"pattern": self.pattern, **self.params}
        if self.seed:
            described["seed"] = self.seed
        if self.specials:
            described["specials"] = [list(special) for special in self.specials]
        return described

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> Values:
        """Read what :meth:`to_json` wrote."""
        params = {key: value for key, value in described.items() if key not in ("pattern", "seed", "specials")}
        specials = tuple((int(a), int(n), str(number)) for a, n, number in described.get("specials", ()))
        return cls(str(described["pattern"]), int(described.get("seed", 0)), params, specials)


def fill(values: Values, dtype: DType, count: int) -> NDArray[Any]:
    """``count`` elements of ``dtype`` after the recipe, flat, in row-major logical order.

    Raises
    ------
    ValueError
        If the pattern's parameters do not fit the element type.
    """
    layout = component(dtype)
    return array_of_bits(_filled(values, layout, np.arange(count * layout.count, dtype=np.uint64)), dtype)


def _filled(values: Values, layout: Component, counters: Bits) -> Bits:
    """The bits of each component, special runs included."""
    try:
        bits = PATTERNS[values.pattern](layout, counters, values.seed, **values.params)
    except TypeError as error:
        given = dict(values.params)
        raise ValueError(f"value pattern {values.pattern!r} got wrong parameters {given}: {error}") from None
    for start, length, number in values.specials if len(counters) else ():
        first = start * layout.count % len(counters)
        bits[first : first + length * layout.count] = bits_of(number, layout.dtype)
    return bits


def mix(z: Bits) -> Bits:
    """SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014): a bijection of 64-bit words that looks random."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def random_words(counters: Bits, seed: int, stream: int) -> Bits:
    """A 64-bit word for each counter; streams of one seed are independent."""
    start = np.array([(seed * 2 + 1) * _GOLDEN + stream * 0xD1B54A32D192ED03 & (1 << 64) - 1], np.uint64)
    return mix(mix(start) + (counters + np.uint64(1)) * np.uint64(_GOLDEN))


def _below(words: Bits, limit: int) -> Bits:
    """Integers in [0, limit) from random words, by multiplication; ``limit`` at most 2^32."""
    return ((words >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32)


def _between(words: Bits, low: int, high: int) -> NDArray[np.int64]:
    return _below(words, high - low + 1).astype(np.int64) + low


def _float_of_exponent(layout: Component, exponents: NDArray[np.int64]) -> Bits:
    """The bits of 2^exponent; exponents outside the normal range are moved to its ends."""
    dtype = layout.dtype
    biased = np.clip(exponents, dtype.emin, dtype.emax) - (dtype.emin - 1)
    return biased.astype(np.uint64) << np.uint64(layout.mantissa)


def _from_integers(layout: Component, integers: NDArray[np.int64]) -> Bits:
    """The bits of integers, exact: floats take them modulo what the significand can hold, other types wrap."""
    if not layout.is_float:
        wrapped = integers & 1 if layout.dtype.kind == "bool" else integers
        return wrapped.astype(np.uint64) & np.uint64((1 << layout.width) - 1)
    magnitude = np.abs(integers) % (1 << min(layout.mantissa + 1, layout.dtype.emax))
    # Exact both times: an integer of at most 53 bits as float64, then the same number in a format that can hold it.
    wide = magnitude.astype(np.float64).view(np.uint64)
    fraction = (wide & np.uint64((1 << 52) - 1)) >> np.uint64(52 - layout.mantissa)
    exponents = (wide >> np.uint64(52)).astype(np.int64) - 1023
    bits: Bits = np.where(magnitude == 0, np.uint64(0), _float_of_exponent(layout, exponents) | fraction)
    bits[(integers < 0) & (magnitude != 0)] |= np.uint64(layout.sign)
    return bits


def _constant(layout: Component, counters: Bits, seed: int, *, value: str) -> Bits:
    return np.full(counters.shape, bits_of(value, layout.dtype), np.uint64)


def _literal(layout: Component, counters: Bits, seed: int, *, values: list[str]) -> Bits:
    if len(values) != len(counters):
        raise ValueError(f"literal has {len(values)} numbers for {len(counters)} components")
    return np.array([bits_of(value, layout.dtype) for value in values], np.uint64)


def _bits(layout: Component, counters: Bits, seed: int) -> Bits:
    width = 1 if layout.dtype.kind == "bool" else layout.width
    return random_words(counters, seed, 0) >> np.uint64(64 - width)


def _moderate(layout: Component, counters: Bits, seed: int, *, low: int, high: int, sign: str = "both") -> Bits:
    """Numbers whose exponent is uniform in [low, high] (for integers: their bit length), random below that."""
    words = random_words(counters, seed, 0)
    exponents = _between(random_words(counters, seed, 1), low, high)
    negative = _signs(words, sign)
    if layout.is_float:
        fraction = words & np.uint64((1 << layout.mantissa) - 1)
        # In a format without infinity the largest fraction of the largest exponent is no number.
        magnitudes = np.minimum(_float_of_exponent(layout, exponents) | fraction, np.uint64(layout.infinity - 1))
        bits: Bits = magnitudes | (negative << np.uint64(layout.width - 1))
        return bits
    length = np.clip(exponents, 0, layout.width - 1).astype(np.uint64)
    magnitude = words & ((np.uint64(1) << length) - np.uint64(1))
    if layout.dtype.kind == "bool":
        return magnitude & np.uint64(1)
    signed = np.where(negative.astype(bool), np.uint64(0) - magnitude, magnitude) if layout.is_signed else magnitude
    return signed & np.uint64((1 << layout.width) - 1)


def _signs(words: Bits, sign: str) -> Bits:
    """1 where negative: the highest bit of random words, or the same for all."""
    fixed = {"both": None, "positive": 0, "negative": 1}
    if sign not in fixed:
        raise ValueError(f"sign {sign!r} is unknown; allowed: {', '.join(fixed)}")
    number = fixed[sign]
    return _below(words, 2) if number is None else np.full(words.shape, number, np.uint64)


def _integers(layout: Component, counters: Bits, seed: int, *, low: int, high: int) -> Bits:
    return _from_integers(layout, _between(random_words(counters, seed, 0), low, high))


def _arange(layout: Component, counters: Bits, seed: int, *, start: int = 0, step: int = 1) -> Bits:
    return _from_integers(layout, counters.astype(np.int64) * step + start)


def _halves(layout: Component, counters: Bits, seed: int, *, start: int = 0) -> Bits:
    """start/2, (start+1)/2...: integers and what lies half way between them, where rounding and tables turn."""
    numbers = [Fraction(int(k) + start, 2) for k in counters]
    return np.array([encode(number, layout) for number in numbers], np.uint64)


def _powers(layout: Component, counters: Bits, seed: int, *, low: int, high: int, ulps: int = 0) -> Bits:
    """Powers of two with an exponent in [low, high], both signs, moved by up to ``ulps`` units in the last place."""
    words = random_words(counters, seed, 0)
    return _stepped_powers(
        layout, _between(words, low, high), words & np.uint64(1), _between(random_words(counters, seed, 1), -ulps, ulps)
    )


def _all_powers(layout: Component, counters: Bits, seed: int) -> Bits:
    """Every power of two in turn, with both signs and one unit in the last place to either side."""
    k = counters.astype(np.int64)
    first, last = (layout.dtype.emin, layout.dtype.emax) if layout.is_float else (0, layout.width - 1)
    exponents = first + (k // 6) % (last - first + 1)
    return _stepped_powers(layout, exponents, (k // 3 % 2).astype(np.uint64), k % 3 - 1)


def _stepped_powers(layout: Component, exponents: NDArray[np.int64], sign: Bits, steps: NDArray[np.int64]) -> Bits:
    if layout.is_float:
        magnitude = (_float_of_exponent(layout, exponents).astype(np.int64) + steps).astype(np.uint64)
        return magnitude | (sign << np.uint64(layout.width - 1))
    power = np.uint64(1) << np.clip(exponents, 0, layout.width - 1).astype(np.uint64)
    signed = np.where(sign.astype(bool), np.uint64(0) - power, power) + steps.astype(np.uint64)
    return signed & np.uint64(1 if layout.dtype.kind == "bool" else (1 << layout.width) - 1)


def _choice(layout: Component, counters: Bits, seed: int, *, values: list[str]) -> Bits:
    """Each element one of a few numbers: far-apart logits, zeros and ones, a mask."""
    table: Bits = np.array([bits_of(value, layout.dtype) for value in values], np.uint64)
    return table[_below(random_words(counters, seed, 0), len(table)).astype(np.intp)]


def _specials(layout: Component, counters: Bits, seed: int) -> Bits:
    table = np.array(special_bits(layout.dtype), np.uint64)
    return table[_below(random_words(counters, seed, 0), len(table)).astype(np.intp)]


def _near(layout: Component, counters: Bits, seed: int, *, center: str, spread: int) -> Bits:
    """Numbers up to ``spread`` steps (units in the last place) from ``center``, across zero as well."""
    middle = bits_of(center, layout.dtype)
    steps = _between(random_words(counters, seed, 0), -spread, spread)
    if not layout.is_float:
        return (np.uint64(middle) + steps.astype(np.uint64)) & np.uint64(
            1 if layout.dtype.kind == "bool" else (1 << layout.width) - 1
        )
    ordered = (-(middle ^ layout.sign) if middle & layout.sign else middle) + steps
    magnitude = np.minimum(np.abs(ordered), layout.infinity).astype(np.uint64)
    return magnitude | np.where(ordered < 0, np.uint64(layout.sign), np.uint64(0))


def _sweep(layout: Component, counters: Bits, seed: int, *, start: int = 0, step: int = 1) -> Bits:
    """Bit patterns start, start + step, ...: with the defaults and 2^16 elements, all of a 16-bit type."""
    return (np.uint64(start) + counters * np.uint64(step)) & np.uint64((1 << layout.width) - 1)


def _stratified(layout: Component, counters: Bits, seed: int) -> Bits:
    """Both signs and every exponent (for integers: every bit length) equally often, random below that."""
    words = random_words(counters, seed, 0)
    if layout.is_float:
        strata = 1 << (layout.width - layout.mantissa)
        stratum = counters % np.uint64(strata)
        return (stratum << np.uint64(layout.mantissa)) | (words & np.uint64((1 << layout.mantissa) - 1))
    stratum = counters % np.uint64(2 * layout.width)
    magnitude = words >> (np.uint64(63) - stratum // np.uint64(2))
    signed = np.where(stratum & np.uint64(1), np.uint64(0) - magnitude, magnitude)
    return signed & np.uint64(1 if layout.dtype.kind == "bool" else (1 << layout.width) - 1)


def _quarter_turns(layout: Component, counters: Bits, seed: int, *, start: int = 0) -> Bits:
    """Multiples of pi/4 rounded to nearest, where trigonometric kernels change octants and lose digits."""
    return np.array([encode((int(k) + start) * _PI / 4, layout) for k in counters], np.uint64)


def _mixed(layout: Component, counters: Bits, seed: int) -> Bits:
    """Each element of another kind, so that one elementwise case tries many magnitudes and special values."""
    first, last = (layout.dtype.emin, layout.dtype.emax) if layout.is_float else (0, layout.width - 1)
    kinds = [
        _moderate(layout, counters, seed, low=-2 if layout.is_float else 0, high=2),
        _moderate(layout, counters, seed, low=-8 if layout.is_float else 0, high=min(last, 10)),
        _moderate(layout, counters, seed, low=first, high=last),
        _powers(layout, counters, seed, low=first, high=last, ulps=1),
        _integers(layout, counters, seed, low=-100 if layout.is_signed else 0, high=100),
        _specials(layout, counters, seed),
    ]
    return np.choose(_below(random_words(counters, seed, 2), len(kinds)).astype(np.intp), kinds)


def _related(
    layout: Component,
    counters: Bits,
    seed: int,
    *,
    to: Mapping[str, Any],
    negated: bool = False,
    ulps: int = 0,
    exponent: int = 0,
) -> Bits:
    """The numbers of another recipe changed a little, for two operands that meet: where they cancel, tie or are equal.

    They are multiplied by 2^``exponent``, then moved ``ulps`` units in the last place away from zero, then ``negated``.
    Infinities and NaNs stay, subnormal numbers keep their exponent, and what overflows becomes the largest number.
    """
    bits = _filled(Values.from_json(to), layout, counters)
    if not layout.is_float:
        return _related_integers(layout, bits, negated, ulps, exponent)
    sign, magnitude = bits & np.uint64(layout.sign), (bits & np.uint64(layout.sign - 1)).astype(np.int64)
    normal = magnitude >> layout.mantissa != 0
    scaled = np.where(normal, magnitude + (exponent << layout.mantissa), magnitude)
    smallest = np.where(normal, 1 << layout.mantissa, 0)
    changed = np.clip(np.maximum(scaled, smallest) + ulps, 0, layout.infinity - 1)
    magnitude = np.where(magnitude < layout.infinity, changed, magnitude)
    return magnitude.astype(np.uint64) | (sign ^ np.uint64(layout.sign if negated else 0))


def _related_integers(layout: Component, bits: Bits, negated: bool, ulps: int, exponent: int) -> Bits:
    if layout.dtype.kind == "bool":
        return bits ^ np.uint64(negated)
    shift = np.uint64(abs(exponent))
    moved = (bits << shift if exponent > 0 else bits >> shift) + np.uint64(ulps % (1 << 64))
    return (np.uint64(0) - moved if negated else moved) & np.uint64((1 << layout.width) - 1)


def _nonzero(layout: Component, counters: Bits, seed: int, *, of: Mapping[str, Any]) -> Bits:
    """The numbers of another recipe with 1 in place of each zero, for divisors."""
    bits = _filled(Values.from_json(of), layout, counters)
    zero = np.uint64(layout.sign if layout.is_float else 0)
    return np.where((bits == 0) | (bits == zero), np.uint64(bits_of("1", layout.dtype)), bits)


def _cycle(layout: Component, counters: Bits, seed: int, *, of: Mapping[str, Any], period: int) -> Bits:
    """The first ``period`` elements of another recipe, again and again: cheap to make, and to judge, in any number."""
    if period < 1:
        raise ValueError(f"cycle: period is {period}; allowed: integers from 1")
    few = _filled(Values.from_json(of), layout, counters[: period * layout.count])
    return np.resize(few, counters.shape)


def _repeated(
    layout: Component, counters: Bits, seed: int, *, of: Mapping[str, Any], shape: list[int], along: list[int]
) -> Bits:
    """Another recipe's elements, repeated along some dimensions of ``shape`` as stride 0 does."""
    stored = [min(size, 1) if dim in along else size for dim, size in enumerate(shape)]
    if prod(shape) * layout.count != len(counters):
        raise ValueError(f"repeated: shape is {shape}; allowed: shapes of {len(counters) // layout.count} elements")
    few = _filled(Values.from_json(of), layout, counters[: prod(stored) * layout.count])
    return np.broadcast_to(few.reshape(*stored, layout.count), (*shape, layout.count)).reshape(-1)


PATTERNS: dict[str, Callable[..., Bits]] = {
    "constant": _constant,
    "literal": _literal,
    "arange": _arange,
    "integers": _integers,
    "halves": _halves,
    "moderate": _moderate,
    "powers": _powers,
    "all_powers": _all_powers,
    "choice": _choice,
    "near": _near,
    "bits": _bits,
    "specials": _specials,
    "mixed": _mixed,
    "sweep": _sweep,
    "stratified": _stratified,
    "quarter_turns": _quarter_turns,
    "related": _related,
    "cycle": _cycle,
    "repeated": _repeated,
    "nonzero": _nonzero,
}
"""The value patterns by name: ``pattern(component, counters, seed, **params) -> bits``."""
