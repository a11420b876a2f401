"""Every elementwise vector-Jacobian product against mpmath's derivative and against PyTorch's autograd."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatch
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest

from references.gradients import activation, binary, special, ternary
from tests.references.gradients import _autograd
from tests.references.gradients._rows import ROWS, Row

Array = np.ndarray[Any, np.dtype[Any]]

_SHAPES = [
    ((200,), (200,), (200,)),
    ((3, 4), (4,), (3, 1)),
    ((2, 1, 5), (7, 1), ()),
    ((), (2, 3), (1, 3)),
    ((0, 4), (4,), (1,)),
]
_ORDINARY = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, 1e-300, 1e300, -1e300, np.inf, -np.inf, np.nan)
_INCOMING = (1.0, -2.5, 0.0, np.inf, np.nan)
_SEED = 20

_WRONG: dict[str, tuple[Callable[[tuple[float, ...]], bool], str]] = {
    "digamma": (
        lambda point: point[0] < 0 and point[0] % 1 == 0,
        "trigamma's reflection misses its poles: 1e32, not inf",
    ),
    "polygamma.0": (lambda point: point[0] < 0 and point[0] % 1 == 0, "trigamma's reflection misses its poles"),
    "polygamma.[123]": (lambda point: np.isinf(point[0]), "zeta is NaN at inf, where it vanishes"),
    "special.zeta": (lambda point: point[1] > 1e299, "zeta is 0 or NaN for huge offsets, as powers overflow halfway"),
    "special.zeta.self": (lambda point: point[0] > 1e299, "zeta is 0 or NaN for huge offsets"),
    "pow.0.5": (
        lambda point: point[0] == -np.inf or (point[0] == 0 and np.signbit(point[0])),
        "x**-0.5 is computed as rsqrt(x): NaN at -inf and -inf at -0.0, where C99's pow gives 0 and inf",
    ),
}
"""Where PyTorch's float64 gradients on the CPU are wrong, by the names of rows, and why."""

SMOOTH = [name for name, row in ROWS.items() if row.exact is not None]
COMPLEX = [name for name, row in ROWS.items() if row.complex]


def _drawn(row: Row, shapes: tuple[tuple[int, ...], ...], *, imaginary: bool = False) -> list[Array]:
    """Operands of the given shapes within the row's domains."""
    random = np.random.default_rng(_SEED)
    drawn = []
    for (low, high), shape in zip(row.domains, shapes, strict=False):
        operand = np.asarray(random.uniform(low, high, shape))
        drawn.append(np.asarray(operand + 1j * random.uniform(-2, 2, shape)) if imaginary else operand)
    return drawn


def _differentiated(row: Row) -> bool:
    tried = [np.full(1, 0.5 * (low + high)) for low, high in row.domains]
    return _autograd.is_differentiable(row.torch, tried, row.params)


def _compare(row: Row, operands: list[Array], gradient: Array, scale: float | Array = 1.0) -> None:
    result = _autograd.forward(row.torch, operands, row.params)
    with np.errstate(all="ignore"):
        ours = row.vjp(gradient, result, *operands, **row.params, **row.options)
    theirs = _autograd.gradients(row.torch, gradient, operands, row.params, row.inert)
    assert len(ours) == len(theirs)
    for i, (one, two) in enumerate(zip(ours, theirs, strict=True)):
        _autograd.assert_equal(one, two, scale, row.imprecision, f"operand {i}")


@pytest.mark.parametrize("name", SMOOTH)
def test_real_derivatives_are_those_of_mpmath(name: str) -> None:
    row = ROWS[name]
    assert row.exact is not None
    exact = row.exact
    points = _drawn(row, ((8,),) * 3)
    with mpmath.workdps(40):
        values = [exact(*map(mpmath.mpf, point), **row.params) for point in zip(*points, strict=True)]
        result, gradient = np.array(values, float), np.linspace(-2, 3, 8)
        with np.errstate(all="ignore"):
            ours = row.vjp(gradient, result, *points, **row.params, **row.options)
        for i, j in product(range(len(points)), range(8)):
            if i in row.inert:
                assert ours[i] is None
                continue
            given = [mpmath.mpf(float(operand[j])) for operand in points]

            def along(t: Any, i: int = i, given: list[Any] = given) -> Any:
                return exact(*given[:i], t, *given[i + 1 :], **row.params)

            slope = mpmath.diff(along, given[i]) * mpmath.mpf(gradient[j])
            error = abs(mpmath.mpf(float(ours[i][j])) - slope)
            assert error <= 2.0**-44 * abs(slope) + 2.0**-46 * abs(gradient[j]), (i, points[i][j], ours[i][j], slope)


@pytest.mark.parametrize("name", [name for name in SMOOTH if ROWS[name].complex])
def test_complex_derivatives_are_the_conjugates_of_those_of_mpmath(name: str) -> None:
    row = ROWS[name]
    assert row.exact is not None
    exact = row.exact
    points = _drawn(row, ((8,),) * 3, imaginary=True)
    gradient = np.linspace(-2, 3, 8) + 1j * np.linspace(1, -1, 8)
    with mpmath.workdps(40):
        values = [exact(*map(mpmath.mpc, point), **row.params) for point in zip(*points, strict=True)]
        ours = row.vjp(gradient, np.array(values, complex), *points, **row.params, **row.options)
        for i, j in product(range(len(points)), range(8)):
            given = [mpmath.mpc(complex(operand[j])) for operand in points]

            def along(t: Any, i: int = i, given: list[Any] = given) -> Any:
                return exact(*given[:i], t, *given[i + 1 :], **row.params)

            slope = mpmath.conj(mpmath.diff(along, given[i])) * mpmath.mpc(complex(gradient[j]))
            error = abs(mpmath.mpc(complex(ours[i][j])) - slope)
            assert error <= 2.0**-42 * abs(slope) + 2.0**-46 * abs(gradient[j]), (i, points[i][j], ours[i][j], slope)


@pytest.mark.parametrize("shapes", _SHAPES, ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_ordinary_points_agree_with_autograd(name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    row = ROWS[name]
    if not _differentiated(row):
        pytest.skip("the installed PyTorch does not differentiate it")
    operands = _drawn(row, shapes)
    result = _autograd.forward(row.torch, operands, row.params)
    gradient = np.random.default_rng(1).normal(size=result.shape).astype(result.dtype)
    terms = max(result.size, 1)
    _compare(row, operands, gradient, scale=float(terms))


@pytest.mark.parametrize("shapes", _SHAPES[:3], ids=str)
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_points_agree_with_autograd(name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    row = ROWS[name]
    operands = _drawn(row, shapes, imaginary=True)
    result = _autograd.forward(row.torch, operands, row.params)
    random = np.random.default_rng(1)
    gradient = random.normal(size=result.shape).astype(result.dtype)
    if np.iscomplexobj(result):
        gradient = gradient + 1j * random.normal(size=result.shape)
    _compare(row, operands, gradient, scale=float(result.size) * 16)


@pytest.mark.parametrize("name", [name for name in COMPLEX if len(ROWS[name].domains) > 1])
@pytest.mark.parametrize("which", [0, 1])
def test_a_real_operand_of_a_complex_result_gets_a_real_gradient(name: str, which: int) -> None:
    row = ROWS[name]
    if name.startswith(("lerp", "logaddexp")):
        pytest.skip("its operands have one type")
    operands = _drawn(row, ((3, 4), (4,), (3, 1)), imaginary=True)
    operands[which] = operands[which].real.copy()
    gradient = np.random.default_rng(1).normal(size=(3, 4)) + 1j * np.random.default_rng(2).normal(size=(3, 4))
    _compare(row, operands, gradient, scale=200.0)


@pytest.mark.parametrize("name", ROWS)
def test_special_values_agree_with_autograd(name: str) -> None:
    row = ROWS[name]
    if not _differentiated(row):
        pytest.skip("the installed PyTorch does not differentiate it")
    values = (*_ORDINARY, *row.edges)
    points = [point for point in product(*[values] * len(row.domains)) if not _is_wrong(name, point)]
    *operands, gradient = (
        np.array(column) for column in zip(*((*p, g) for p in points for g in _INCOMING), strict=True)
    )
    result = _autograd.forward(row.torch, operands, row.params)
    with np.errstate(all="ignore"):
        ours = row.vjp(gradient, result, *operands, **row.params, **row.options)
    theirs = _autograd.of_each_element(row.torch, gradient, operands, row.params, row.inert)
    for i, (one, two) in enumerate(zip(ours, theirs, strict=True)):
        _autograd.assert_equal(one, two, 1.0, row.imprecision, f"operand {i}")


def _is_wrong(name: str, point: tuple[float, ...]) -> bool:
    """Whether PyTorch's float64 gradient on the CPU is known to be wrong at a point."""
    return any(fnmatch(name, pattern) and holds(point) for pattern, (holds, _) in _WRONG.items())


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_points_on_axes_and_at_branches_agree_with_autograd(name: str) -> None:
    row = ROWS[name]
    parts = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, -3.0)
    points = [complex(a, b) for a, b in product(parts, parts)]
    count = min(len(row.domains), 2)
    drawn = list(product(points, repeat=count))[:: 1 if count == 1 else 7]
    if name == "pow":  # PyTorch's complex 0**0 is NaN, and 0**1 has its gradient from it
        drawn = [(base, exponent) for base, exponent in drawn if base != 0]
    operands = [np.array(column) for column in zip(*drawn, strict=True)]
    operands += [np.full(len(drawn), 0.25 - 0.5j)] * (len(row.domains) - count)
    result = _autograd.forward(row.torch, operands, row.params)
    gradient = np.full(result.shape, 0.75 - 1.5j) if np.iscomplexobj(result) else np.full(result.shape, 0.75)
    _compare(row, operands, gradient, scale=16.0)


def test_bessel_functions_have_their_limits_at_zero() -> None:
    """Of which PyTorch before 2.15 has no gradients to compare with."""
    zero, one = np.array([0.0, -0.0]), np.ones(2)
    with np.errstate(all="ignore"):
        slopes = {
            vjp.__name__: vjp(one, np.full(2, at_zero), zero)[0].tolist()
            for vjp, at_zero in (
                (special.j0, 1.0),
                (special.j1, 0.0),
                (special.y0, -np.inf),
                (special.y1, -np.inf),
                (special.i0, 1.0),
                (special.i1, 0.0),
                (special.k0, np.inf),
            )
        }
    expected = {"j0": 0.0, "j1": 0.5, "y0": np.inf, "y1": np.inf, "i0": 0.0, "i1": 0.5, "k0": -np.inf}
    assert slopes == {name: [value, value] for name, value in expected.items()}


def test_three_operands_share_a_tie_where_asked() -> None:
    """The subgradient of least norm: the gradient of whatever each of the operands is alone, shared evenly."""
    points = [
        ((0, -1, 1), (6, 0, 0)),
        ((-1, -1, 1), (3, 3, 0)),
        ((1, -1, 1), (3, 0, 3)),
        ((-2, -1, 1), (0, 6, 0)),
        ((2, -1, 1), (0, 0, 6)),
        ((0, 0, 0), (2, 2, 2)),
        ((-1, 0, 0), (0, 3, 3)),
        ((1, 0, 0), (0, 0, 6)),
        ((0, 1, -1), (0, 0, 6)),
    ]
    operands = [np.array(column, float) for column in zip(*(point for point, _ in points), strict=True)]
    gradient = np.full(len(points), 6.0)
    given = ternary.clamp(gradient, operands[0], *operands, ties="split")
    for ours, due in zip(given, zip(*(shares for _, shares in points), strict=True), strict=True):
        np.testing.assert_array_equal(ours, due)


def test_ties_are_split_where_asked() -> None:
    x, y = np.array([1.0, 2.0, 1.0, np.nan, 1.0, np.inf]), np.array([1.0, 1.0, 2.0, 1.0, np.nan, np.inf])
    gradient = np.full(6, 3.0)
    for vjp, first in ((binary.fmax, [1.5, 3, 0, 0, 3, 1.5]), (binary.fmin, [1.5, 0, 3, 0, 3, 1.5])):
        of_x, of_y = vjp(gradient, x, x, y, ties="split")
        np.testing.assert_array_equal(of_x, first)
        np.testing.assert_array_equal(of_y, 3 - np.array(first))
    limited = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, np.nan])
    for limits, inside in (
        ({"min": 0.0, "max": 1.0}, [0, 0, 3, 0, 0, 0]),
        ({"min": 0.0}, [0, 0, 3, 3, 3, 0]),
        ({"max": 1.0}, [3, 3, 3, 0, 0, 0]),
    ):
        (ours,) = activation.clamp(gradient, limited, limited, **limits, ties="split")
        np.testing.assert_array_equal(ours, inside)
