"""Generated programs of public torch calls, forward and backward, agree with float64 within what float32 may err.

The allowance is measured by stochastic arithmetic (Parker, "Monte Carlo arithmetic", 1997): the program runs in float64
a few times, every float result moved by a random relative error of the size that a Metal function may make. The spread
of the ends, times a factor, is how far the program may be off.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.nn.functional import pad
from torch.utils._python_dispatch import TorchDispatchMode

PROGRAMS = 50
ERROR = 4.0 * 2.0**-24
"""Most functions of table 8.1 of the MSL specification err by at most 4 ulp."""
TRIALS = 6
FACTOR = 8.0

Op = Callable[[random.Random, torch.Tensor], Callable[[torch.Tensor], torch.Tensor]]


class _Perturbed(TorchDispatchMode):
    """Moves every float result by a random relative error; views and copies move nothing."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        exact = func.is_view or func.namespace != "aten" or not isinstance(result, torch.Tensor)
        if exact or not result.is_floating_point() or func._schema.is_mutable:
            return result
        noise = torch.rand(result.shape, generator=self._generator, dtype=result.dtype) * 2 - 1
        return result * (1 + ERROR * noise)


def _unary(rng: random.Random, x: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    return rng.choice(
        [
            torch.tanh,
            torch.sigmoid,
            torch.sin,
            torch.cos,
            torch.atan,
            torch.erf,
            lambda t: torch.exp(-t.square()),
            lambda t: torch.log1p(t.square()),
            lambda t: torch.sqrt(t * t + 1.0),
            lambda t: torch.reciprocal(t.square() + 0.5),
        ]
    )


def _activation(rng: random.Random, x: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    return rng.choice(
        [
            functional.gelu,
            functional.silu,
            functional.mish,
            functional.softplus,
            functional.elu,
            functional.leaky_relu,
            functional.hardswish,
            functional.logsigmoid,
            lambda t: functional.gelu(t, approximate="tanh"),
            lambda t: t.clamp(-0.7, 0.9),
        ]
    )


def _arithmetic(rng: random.Random, x: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    other = torch.rand([size if rng.random() < 0.6 else 1 for size in x.shape], dtype=torch.float64) + 0.5
    number = rng.choice((0.5, -1.25, 2, 3))

    def of(t: torch.Tensor) -> torch.Tensor:
        return other.to(dtype=torch.float64 if t.dtype == torch.float64 else torch.float32).to(t.device)

    return rng.choice(
        [
            lambda t: t + of(t),
            lambda t: torch.sub(t, of(t), alpha=2),
            lambda t: t * of(t),
            lambda t: t / of(t),
            lambda t: number - t,
            lambda t: t * number,
            lambda t: torch.atan2(t, of(t)),
            lambda t: torch.hypot(t, of(t)),
            lambda t: torch.maximum(t, of(t) - 1.0),
            lambda t: torch.lerp(t, of(t), 0.25),
            lambda t: of(t) ** t.tanh(),
        ]
    )


def _view(rng: random.Random, x: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    choices: list[Callable[[torch.Tensor], torch.Tensor]] = [
        lambda t: t.flatten().reshape(t.shape[::-1]),
        lambda t: t.permute(*reversed(range(t.dim()))),
        lambda t: t.unsqueeze(0).expand(2, *t.shape) if t.dim() < 4 else t,
    ]
    if x.shape[-1] > 2:
        choices += [lambda t: t[..., 1:], lambda t: t[..., ::2]]
    return rng.choice(choices)


def _pad(rng: random.Random, x: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    left, right = rng.randint(0, 2), rng.randint(0, 2)
    choices: list[Callable[[torch.Tensor], torch.Tensor]] = [lambda t: pad(t, (left, right), value=0.5)]
    if x.dim() == 3 and x.shape[-1] > 2:
        choices += [lambda t: pad(t, (left, right), "reflect"), lambda t: pad(t, (left, right), "replicate")]
        choices += [lambda t: pad(t, (left, right), "circular"), lambda t: pad(t, (-1, right))]
    return rng.choice(choices)


def _mask(rng: random.Random, x: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    mask = torch.rand(x.shape) < 0.5
    return rng.choice(
        [
            lambda t: torch.where(mask.to(t.device), t, -t),
            lambda t: t.masked_fill(mask.to(t.device), 0.25),
            lambda t: torch.where(mask.to(t.device), t, 2.0),
            lambda t: t * mask.to(t.device),
            lambda t: torch.cat([t, t * 2], dim=-1),
        ]
    )


def _sum(rng: random.Random, x: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    dim = rng.randrange(x.dim())
    return lambda t: t - t.sum(dim, keepdim=True) / 8.0


KINDS: tuple[Op, ...] = (_unary, _activation, _arithmetic, _view, _pad, _mask, _sum)


def _program(rng: random.Random, x: torch.Tensor) -> list[Callable[[torch.Tensor], torch.Tensor]]:
    steps = []
    for _ in range(rng.randint(4, 9)):
        step = rng.choice(KINDS)(rng, x)
        x = step(x)
        steps.append(step)
    return steps


def _run(
    steps: list[Callable[[torch.Tensor], torch.Tensor]], x: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    leaf = x.detach().requires_grad_()
    y = leaf
    for step in steps:
        y = step(y)
    (gradient,) = torch.autograd.grad(y, leaf, weight.to(y.device, y.dtype))
    return y.detach().cpu().double(), gradient.cpu().double()


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_program(seed: int) -> None:
    rng = random.Random(seed)
    torch.manual_seed(seed)
    shape = [rng.randint(1, 7) for _ in range(rng.randint(1, 3))]
    x = torch.randn(shape).double()
    steps = _program(rng, x)
    y = x
    for step in steps:
        y = step(y)
    weight = torch.randn(y.shape).double()
    true = _run(steps, x, weight)
    moved = []
    for trial in range(TRIALS):
        with _Perturbed(trial):
            moved.append(_run(steps, x, weight))
    got = _run(steps, x.float().to("air"), weight)
    for place in range(2):
        spread = torch.stack([other[place] - true[place] for other in moved]).abs().amax(0)
        floor = ERROR * spread.new_tensor(1.0).maximum(true[place].abs())
        excess = (got[place] - true[place]).abs() / (FACTOR * (spread + floor))
        assert excess.max() <= 1.0, f"{'forward' if place == 0 else 'gradient'}: {excess.max():.3g} times the allowance"
