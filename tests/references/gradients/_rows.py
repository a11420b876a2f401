"""The elementwise ops whose vector-Jacobian products are tested, one row each: our formula, PyTorch's op, mpmath's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mpmath
import torch
from torch.nn import functional

from references.gradients import activation, binary, special, ternary, unary
from references.gradients._common import Ties

TIES: Ties = "one" if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 14) else "split"

Domain = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One op with one set of parameters.

    ``exact`` takes mpmath numbers and the parameters and is differentiated; None for what is not smooth or has no
    function there. ``inert`` are the positions of operands to which no gradient goes. ``edges`` are values of the
    operands, beside the ordinary special ones, where the formula chooses. ``options`` go to our formula only.
    ``imprecision`` is the relative error of PyTorch's float64 gradient on the CPU where that is more than rounding.
    """

    vjp: Callable[..., Any]
    torch: Callable[..., torch.Tensor]
    domains: tuple[Domain, ...]
    exact: Callable[..., Any] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    complex: bool = False
    inert: tuple[int, ...] = ()
    edges: tuple[float, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    imprecision: float = 0.0


def _unary(vjp: Any, forward: Any, domain: Domain, exact: Any = None, **rest: Any) -> Row:
    return Row(vjp=vjp, torch=forward, domains=(domain,), exact=exact, **rest)


def _binary(vjp: Any, forward: Any, one: Domain, two: Domain, exact: Any = None, **rest: Any) -> Row:
    return Row(vjp=vjp, torch=forward, domains=(one, two), exact=exact, **rest)


def _logistic(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def _softplus(x: Any) -> Any:
    return mpmath.log(1 + mpmath.exp(x))


def _sinc(x: Any) -> Any:
    return mpmath.sin(mpmath.pi * x) / (mpmath.pi * x) if x else mpmath.mpf(1)


def _clamp_of_one_shape(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """Clamp, whose gradients torch up to 2.13 cannot make of operands of several shapes."""
    return torch.clamp(*torch.broadcast_tensors(x, low, high))


def _truncated(x: Any) -> Any:
    return mpmath.floor(x) if x > 0 else mpmath.ceil(x)


def _clamp(x: Any, min: Any = -mpmath.inf, max: Any = mpmath.inf) -> Any:
    return mpmath.mpf(max) if x > max or min > max else mpmath.mpf(min) if x < min else x


def _clamp_between(x: Any, low: Any, high: Any) -> Any:
    return _clamp(x, low, high)


def _gelu_tanh(x: Any, approximate: str) -> Any:
    inner = mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)
    return x / 2 * (1 + mpmath.tanh(inner))


_TRIGAMMA = 2.0**-30
"""PyTorch's float64 trigamma cuts its asymptotic series off early: it is off by 5e-10 at 1."""

_FLOAT32_SIXTH = 2.0**-24
"""PyTorch's float64 hardsigmoid_backward multiplies by a float32 1 / 6."""

_PLAIN, _WIDE, _POSITIVE, _UNIT = (-4.0, 4.0), (-30.0, 30.0), (0.01, 30.0), (-0.99, 0.99)

UNARY = {
    "abs": _unary(unary.absolute, torch.abs, _WIDE, complex=True),
    "acos": _unary(unary.acos, torch.acos, _UNIT, mpmath.acos, complex=True),
    "asin": _unary(unary.asin, torch.asin, _UNIT, mpmath.asin, complex=True),
    "atan": _unary(unary.atan, torch.atan, _WIDE, mpmath.atan, complex=True),
    "angle": _unary(unary.angle, torch.angle, _WIDE, complex=True),
    "ceil": _unary(unary.ceil, torch.ceil, _WIDE, mpmath.ceil),
    "floor": _unary(unary.floor, torch.floor, _WIDE, mpmath.floor),
    "trunc": _unary(unary.trunc, torch.trunc, _WIDE, _truncated),
    "sign": _unary(unary.signum, torch.sign, _WIDE, mpmath.sign),
    "round": _unary(unary.round_half_even, torch.round, _WIDE, mpmath.nint),
    "round.decimals": _unary(
        unary.round_decimals,
        torch.round,
        _WIDE,
        lambda x, decimals: mpmath.nint(x * 10**decimals) / 10**decimals,
        params={"decimals": 2},
    ),
    "cos": _unary(unary.cos, torch.cos, _WIDE, mpmath.cos, complex=True),
    "cosh": _unary(unary.cosh, torch.cosh, _PLAIN, mpmath.cosh, complex=True),
    "exp": _unary(unary.exp, torch.exp, _PLAIN, mpmath.exp, complex=True),
    "exp2": _unary(unary.exp2, torch.exp2, _PLAIN, lambda x: mpmath.power(2, x), complex=True),
    "expm1": _unary(unary.expm1, torch.expm1, _PLAIN, mpmath.expm1, complex=True),
    "log": _unary(unary.log, torch.log, _POSITIVE, mpmath.log, complex=True),
    "log10": _unary(unary.log10, torch.log10, _POSITIVE, mpmath.log10, complex=True),
    "log1p": _unary(unary.log1p, torch.log1p, (-0.99, 30.0), lambda x: mpmath.log(1 + x), complex=True, edges=(-1.0,)),
    "log2": _unary(unary.log2, torch.log2, _POSITIVE, lambda x: mpmath.log(x) / mpmath.log(2), complex=True),
    "neg": _unary(unary.neg, torch.neg, _WIDE, lambda x: -x, complex=True),
    "reciprocal": _unary(unary.reciprocal, torch.reciprocal, _POSITIVE, lambda x: 1 / x, complex=True),
    "rsqrt": _unary(unary.rsqrt, torch.rsqrt, _POSITIVE, lambda x: 1 / mpmath.sqrt(x), complex=True),
    "sigmoid": _unary(unary.sigmoid, torch.sigmoid, _PLAIN, _logistic, complex=True),
    "sin": _unary(unary.sin, torch.sin, _WIDE, mpmath.sin, complex=True),
    "sinh": _unary(unary.sinh, torch.sinh, _PLAIN, mpmath.sinh, complex=True),
    "sqrt": _unary(unary.sqrt, torch.sqrt, _POSITIVE, mpmath.sqrt, complex=True),
    "square": _unary(unary.square, torch.square, _WIDE, lambda x: x * x, complex=True),
    "tan": _unary(unary.tan, torch.tan, _UNIT, mpmath.tan, complex=True),
    "tanh": _unary(unary.tanh, torch.tanh, _PLAIN, mpmath.tanh, complex=True),
}

SPECIAL = {
    "lgamma": _unary(special.lgamma, torch.lgamma, (-4.9, 30.0), lambda x: mpmath.log(abs(mpmath.gamma(x)))),
    "digamma": _unary(special.digamma, torch.digamma, (-4.9, 30.0), mpmath.digamma, imprecision=_TRIGAMMA),
    "erf": _unary(special.erf, torch.erf, _PLAIN, mpmath.erf),
    "erfc": _unary(special.erfc, torch.erfc, _PLAIN, mpmath.erfc),
    "erfinv": _unary(special.erfinv, torch.erfinv, _UNIT, mpmath.erfinv),
    "special.erfcx": _unary(special.erfcx, torch.special.erfcx, _PLAIN, lambda x: mpmath.exp(x * x) * mpmath.erfc(x)),
    "special.entr": _unary(special.entr, torch.special.entr, _POSITIVE, lambda x: -x * mpmath.log(x)),
    "sinc": _unary(special.sinc, torch.sinc, _PLAIN, _sinc, complex=True),
    "logit": _unary(special.logit, torch.logit, (0.01, 0.99), lambda x: mpmath.log(x / (1 - x))),
    "logit.eps": _unary(
        special.logit, torch.logit, (0.2, 0.8), lambda x, eps: mpmath.log(x / (1 - x)), params={"eps": 0.125}
    ),
    "i0": _unary(special.i0, torch.i0, _PLAIN, lambda x: mpmath.besseli(0, x)),
    "special.i0e": _unary(special.i0e, torch.special.i0e, _POSITIVE, lambda x: mpmath.exp(-x) * mpmath.besseli(0, x)),
    "special.i1": _unary(special.i1, torch.special.i1, _PLAIN, lambda x: mpmath.besseli(1, x)),
    "special.i1e": _unary(special.i1e, torch.special.i1e, _POSITIVE, lambda x: mpmath.exp(-x) * mpmath.besseli(1, x)),
    **{
        f"polygamma.{n}": _unary(
            special.polygamma,
            lambda x, n: torch.polygamma(n, x),
            (-2.9, 30.0) if n == 0 else (0.1, 30.0),
            lambda x, n: mpmath.polygamma(n, x),
            params={"n": n},
            imprecision=_TRIGAMMA if n == 0 else 0.0,
        )
        for n in range(4)
    },
    "special.bessel_j0": _unary(special.j0, torch.special.bessel_j0, _WIDE, lambda x: mpmath.besselj(0, x)),
    "special.bessel_j1": _unary(special.j1, torch.special.bessel_j1, _WIDE, lambda x: mpmath.besselj(1, x)),
    "special.bessel_y0": _unary(special.y0, torch.special.bessel_y0, _POSITIVE, lambda x: mpmath.bessely(0, x)),
    "special.bessel_y1": _unary(special.y1, torch.special.bessel_y1, _POSITIVE, lambda x: mpmath.bessely(1, x)),
    "special.modified_bessel_i0": _unary(
        special.i0, torch.special.modified_bessel_i0, _PLAIN, lambda x: mpmath.besseli(0, x)
    ),
    "special.modified_bessel_i1": _unary(
        special.i1, torch.special.modified_bessel_i1, _PLAIN, lambda x: mpmath.besseli(1, x)
    ),
    "special.modified_bessel_k0": _unary(
        special.k0, torch.special.modified_bessel_k0, (0.1, 30.0), lambda x: mpmath.besselk(0, x)
    ),
    "special.modified_bessel_k1": _unary(
        special.k1, torch.special.modified_bessel_k1, (0.1, 30.0), lambda x: mpmath.besselk(1, x)
    ),
}

ACTIVATION = {
    "gelu": _unary(activation.gelu, functional.gelu, _PLAIN, lambda x: x * mpmath.ncdf(x)),
    "gelu.tanh": _unary(activation.gelu, functional.gelu, _PLAIN, _gelu_tanh, params={"approximate": "tanh"}),
    "silu": _unary(activation.silu, functional.silu, _WIDE, lambda x: x * _logistic(x)),
    "mish": _unary(activation.mish, functional.mish, _WIDE, lambda x: x * mpmath.tanh(_softplus(x))),
    "logsigmoid": _unary(activation.logsigmoid, functional.logsigmoid, _WIDE, lambda x: -_softplus(-x)),
    "hardsigmoid": _unary(
        activation.hardsigmoid,
        functional.hardsigmoid,
        (-2.9, 2.9),
        lambda x: x / 6 + 0.5,
        edges=(-3.0, 3.0),
        imprecision=_FLOAT32_SIXTH,
    ),
    "hardswish": _unary(
        activation.hardswish, functional.hardswish, (-2.9, 2.9), lambda x: x * (x + 3) / 6, edges=(-3.0, 3.0)
    ),
    "elu": _unary(
        activation.elu, functional.elu, (-9.0, 0.0), lambda x, alpha: alpha * mpmath.expm1(x), params={"alpha": 0.75}
    ),
    "leaky_relu": _unary(
        activation.leaky_relu,
        functional.leaky_relu,
        _PLAIN,
        lambda x, negative_slope: x if x > 0 else negative_slope * x,
        params={"negative_slope": 0.25},
    ),
    "hardshrink": _unary(
        activation.hardshrink,
        functional.hardshrink,
        _PLAIN,
        lambda x, lambd: x if abs(x) > lambd else mpmath.mpf(0),
        params={"lambd": 0.5},
    ),
    "softshrink": _unary(
        activation.softshrink,
        functional.softshrink,
        _PLAIN,
        lambda x, lambd: x - mpmath.sign(x) * lambd if abs(x) > lambd else mpmath.mpf(0),
        params={"lambd": 0.5},
    ),
    "softplus": _unary(
        activation.softplus,
        functional.softplus,
        (-12.0, 3.9),
        lambda x, beta, threshold: _softplus(beta * x) / beta,
        params={"beta": 2.0, "threshold": 8.0},
        edges=(4.0, 5.0),
    ),
    **{
        name: _unary(
            activation.clamp, torch.clamp, _PLAIN, _clamp, params=params, options={"ties": TIES}, edges=(-1.0, 2.0)
        )
        for name, params in (
            ("clamp", {"min": -1.0, "max": 2.0}),
            ("clamp.min", {"min": -1.0}),
            ("clamp.max", {"max": 2.0}),
            ("clamp.empty", {"min": 2.0, "max": -1.0}),
        )
    },
    "nan_to_num": _unary(
        activation.nan_to_num, torch.nan_to_num, _WIDE, lambda x, **_: x, params={"nan": 0.5, "posinf": 1.0}
    ),
}

_EXPONENTS = (-2.0, -0.5, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0)

BINARY = {
    "add": _binary(
        binary.add,
        torch.add,
        _PLAIN,
        _PLAIN,
        lambda x, y, alpha: x + alpha * y,
        params={"alpha": -2.5},
        complex=True,
    ),
    "sub": _binary(
        binary.sub, torch.sub, _PLAIN, _PLAIN, lambda x, y, alpha: x - alpha * y, params={"alpha": 3}, complex=True
    ),
    "rsub": _binary(
        binary.rsub, torch.rsub, _PLAIN, _PLAIN, lambda x, y, alpha: y - alpha * x, params={"alpha": 3}, complex=True
    ),
    "mul": _binary(binary.mul, torch.mul, _PLAIN, _PLAIN, lambda x, y: x * y, complex=True),
    "div": _binary(binary.div, torch.div, _PLAIN, _POSITIVE, lambda x, y: x / y, complex=True),
    "div.floor": _binary(
        binary.div,
        torch.div,
        _PLAIN,
        _POSITIVE,
        lambda x, y, **_: mpmath.floor(x / y),
        params={"rounding_mode": "floor"},
    ),
    "div.trunc": _binary(
        binary.div, torch.div, _PLAIN, _POSITIVE, lambda x, y, **_: _truncated(x / y), params={"rounding_mode": "trunc"}
    ),
    "pow": _binary(binary.pow, torch.pow, (0.1, 4.0), _PLAIN, mpmath.power, complex=True),
    "atan2": _binary(binary.atan2, torch.atan2, _PLAIN, _PLAIN, mpmath.atan2),
    "hypot": _binary(binary.hypot, torch.hypot, _PLAIN, _PLAIN, mpmath.hypot),
    "remainder": _binary(binary.remainder, torch.remainder, _WIDE, _POSITIVE, lambda x, y: x - y * mpmath.floor(x / y)),
    "fmod": _binary(binary.fmod, torch.fmod, _WIDE, _POSITIVE, lambda x, y: x - y * _truncated(x / y)),
    "maximum": _binary(binary.maximum, torch.maximum, _PLAIN, _PLAIN, max),
    "minimum": _binary(binary.minimum, torch.minimum, _PLAIN, _PLAIN, min),
    "fmax": _binary(binary.fmax, torch.fmax, _PLAIN, _PLAIN, max, options={"ties": TIES}),
    "fmin": _binary(binary.fmin, torch.fmin, _PLAIN, _PLAIN, min, options={"ties": TIES}),
    "nextafter": _binary(binary.nextafter, torch.nextafter, _PLAIN, _PLAIN, lambda x, y: x),
    "copysign": _binary(binary.copysign, torch.copysign, _PLAIN, _PLAIN, lambda x, y: abs(x) * mpmath.sign(y)),
    "logaddexp": _binary(
        binary.logaddexp,
        torch.logaddexp,
        _PLAIN,
        _PLAIN,
        lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
        complex=True,
    ),
    "logaddexp2": _binary(
        binary.logaddexp2,
        torch.logaddexp2,
        _PLAIN,
        _PLAIN,
        lambda x, y: mpmath.log(mpmath.power(2, x) + mpmath.power(2, y)) / mpmath.log(2),
    ),
    "xlogy": _binary(binary.xlogy, torch.xlogy, _PLAIN, _POSITIVE, lambda x, y: x * mpmath.log(y)),
    "special.xlog1py": _binary(
        binary.xlog1py, torch.special.xlog1py, _PLAIN, (-0.9, 9.0), lambda x, y: x * mpmath.log(1 + y), edges=(-1.0,)
    ),
    "special.zeta": _binary(
        binary.zeta, torch.special.zeta, (1.1, 9.0), _POSITIVE, lambda x, y: mpmath.zeta(x, y), inert=(0,)
    ),
    "igamma": _binary(
        binary.igamma,
        torch.igamma,
        (0.1, 9.0),
        _POSITIVE,
        lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
        inert=(0,),
    ),
    "igammac": _binary(
        binary.igammac,
        torch.igammac,
        (0.1, 9.0),
        _POSITIVE,
        lambda a, x: mpmath.gammainc(a, x, regularized=True),
        inert=(0,),
    ),
    "lerp": Row(
        vjp=binary.lerp,
        torch=torch.lerp,
        domains=(_PLAIN, _PLAIN, _UNIT),
        exact=lambda x, end, weight: x + weight * (end - x),
        complex=True,
    ),
}

TERNARY = {
    **{
        f"addcmul.{value}": Row(
            vjp=ternary.addcmul,
            torch=torch.addcmul,
            domains=(_PLAIN, _PLAIN, _PLAIN),
            exact=lambda x, first, second, value: x + value * first * second,
            params={"value": value},
            complex=True,
        )
        for value in (1, -1.25)
    },
    **{
        f"addcdiv.{value}": Row(
            vjp=ternary.addcdiv,
            torch=torch.addcdiv,
            domains=(_PLAIN, _PLAIN, _POSITIVE),
            exact=lambda x, first, second, value: x + value * first / second,
            params={"value": value},
            complex=True,
        )
        for value in (1, -1.25)
    },
    "clamp.tensor": Row(
        vjp=ternary.clamp,
        torch=_clamp_of_one_shape,
        domains=(_PLAIN, (-3.0, -1.0), (1.0, 3.0)),
        exact=_clamp_between,
        options={"ties": TIES},
    ),
}

SCALAR = {
    **{
        f"pow.{exponent}": _unary(
            binary.pow,
            torch.pow,
            (0.1, 4.0),
            lambda x, exponent: mpmath.power(x, exponent),
            params={"exponent": exponent},
            complex=True,
        )
        for exponent in _EXPONENTS
    },
    **{
        f"pow.self.{base}": _unary(
            binary.pow_scalar_self,
            lambda exponent, self: torch.pow(self, exponent),
            (0.1, 4.0),
            lambda exponent, self: mpmath.power(self, exponent),
            params={"self": base},
            complex=base != 0.0,
        )
        for base in (0.0, 0.75, 2.0)
    },
    "add.number": _unary(binary.add, torch.add, _PLAIN, params={"other": 2.0, "alpha": 3.0}, complex=True),
    "sub.number": _unary(binary.sub, torch.sub, _PLAIN, params={"other": 2.0, "alpha": 3.0}, complex=True),
    "rsub.number": _unary(binary.rsub, torch.rsub, _PLAIN, params={"other": 2.0, "alpha": 3.0}, complex=True),
    "mul.number": _unary(binary.mul, torch.mul, _PLAIN, params={"other": -2.5}, complex=True),
    "mul.complex": _unary(binary.mul, lambda x, other: torch.mul(x, other), _PLAIN, params={"other": 1 - 2j}),
    "div.number": _unary(binary.div, torch.div, _PLAIN, params={"other": -2.5}, complex=True),
    "remainder.number": _unary(binary.remainder, torch.remainder, _PLAIN, params={"other": 1.5}),
    "fmod.number": _unary(binary.fmod, torch.fmod, _PLAIN, params={"other": 1.5}),
    "copysign.number": _unary(binary.copysign, torch.copysign, _PLAIN, params={"other": -1.0}),
    **{
        f"xlogy.{other}": _unary(binary.xlogy, torch.xlogy, _PLAIN, params={"other": other})
        for other in (2.5, 0.0, -1.0, float("nan"))
    },
    "xlogy.self": _unary(
        binary.xlogy_scalar_self, lambda x, self: torch.xlogy(self, x), _POSITIVE, params={"self": 1.5}
    ),
    **{
        f"special.xlog1py.{other}": _unary(binary.xlog1py, torch.special.xlog1py, _PLAIN, params={"other": other})
        for other in (2.5, -1.0, -3.0, float("nan"))
    },
    "special.xlog1py.self": _unary(
        binary.xlog1py_scalar_self, lambda x, self: torch.special.xlog1py(self, x), _POSITIVE, params={"self": 1.5}
    ),
    "special.zeta.self": _unary(
        binary.zeta_scalar_self, lambda x, self: torch.special.zeta(self, x), _POSITIVE, params={"self": 2.5}
    ),
    "lerp.number": _binary(binary.lerp, torch.lerp, _PLAIN, _PLAIN, params={"weight": 0.25}, complex=True),
}

ROWS = {**UNARY, **SPECIAL, **ACTIVATION, **BINARY, **TERNARY, **SCALAR}
