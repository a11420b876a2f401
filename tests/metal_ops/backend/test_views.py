"""Views of a tensor of the device have the strides, offsets and values that they have on the CPU."""

import random
from collections.abc import Callable
from itertools import accumulate

import pytest
import torch

Step = Callable[[torch.Tensor], torch.Tensor]
CHAINS = 2_500


def permuted(rng: random.Random, t: torch.Tensor) -> Step:
    order = rng.sample(range(t.dim()), t.dim())
    return lambda x: x.permute(order)


def sliced(rng: random.Random, t: torch.Tensor) -> Step:
    if not t.dim():
        return lambda x: x[None]
    dim = rng.randrange(t.dim())
    start, stop = sorted(rng.choices(range(t.shape[dim] + 1), k=2))
    step = rng.choice((1, 1, 2, 3))
    index = (slice(None),) * dim + (slice(start, stop, step),)
    return lambda x: x[index]


def selected(rng: random.Random, t: torch.Tensor) -> Step:
    dims = [d for d in range(t.dim()) if t.shape[d]]
    if not dims:
        return lambda x: x.unsqueeze(0)
    dim = rng.choice(dims)
    place = rng.randrange(-t.shape[dim], t.shape[dim])
    return lambda x: x.select(dim, place)


def expanded(rng: random.Random, t: torch.Tensor) -> Step:
    shape = [rng.choice((2, 3)) if size == 1 and rng.random() < 0.7 else -1 for size in t.shape]
    return lambda x: x.expand(shape) if shape else x.expand(3)


def squeezed(rng: random.Random, t: torch.Tensor) -> Step:
    return lambda x: x.squeeze()


def unsqueezed(rng: random.Random, t: torch.Tensor) -> Step:
    dim = rng.randrange(t.dim() + 1)
    return lambda x: x.unsqueeze(dim)


def reshaped(rng: random.Random, t: torch.Tensor) -> Step:
    if not t.numel():
        return lambda x: x.reshape(0, 2)
    rest, shape = t.numel(), []
    while rest > 1:
        factor = rng.choice([n for n in range(1, rest + 1) if rest % n == 0])
        shape.append(factor)
        rest //= factor
    return lambda x: x.reshape(shape)


def restrided(rng: random.Random, t: torch.Tensor) -> Step:
    room = t.untyped_storage().nbytes() // t.itemsize
    shape = [rng.randint(1, 3) for _ in range(rng.randint(0, 3))]
    strides = [rng.randint(0, 3) for _ in shape]
    reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if reach >= room:
        return lambda x: x
    offset = rng.randrange(room - reach)
    return lambda x: x.as_strided(shape, strides, offset)


def diagonal(rng: random.Random, t: torch.Tensor) -> Step:
    return lambda x: x.diagonal() if x.dim() > 1 else x


def unfolded(rng: random.Random, t: torch.Tensor) -> Step:
    dims = [d for d in range(t.dim()) if t.shape[d] >= 2]
    if not dims:
        return lambda x: x
    dim = rng.choice(dims)
    return lambda x: x.unfold(dim, 2, 1)


STEPS = (permuted, sliced, selected, expanded, squeezed, unsqueezed, reshaped, restrided, diagonal, unfolded)


def described(t: torch.Tensor) -> tuple[object, ...]:
    return tuple(t.shape), t.stride(), t.storage_offset(), t.cpu().tolist()


@pytest.mark.parametrize("seed", range(4))
def test_chains_of_views(seed: int) -> None:
    """Four times 2,500 chains."""
    rng = random.Random(seed)
    bases = []
    for shape in ((), (1,), (5,), (2, 3), (3, 1, 4), (2, 1, 3, 2), (0, 3)):
        count = max(1, list(accumulate(shape, lambda a, b: a * b, initial=1))[-1])
        on_host = torch.arange(float(count))[: 0 if 0 in shape else count].clone().reshape(shape)
        bases.append((on_host, on_host.to("air")))
    for _ in range(CHAINS):
        on_host, there = rng.choice(bases)
        for _ in range(rng.randint(1, 6)):
            step = rng.choice(STEPS)(rng, on_host)
            on_host, there = step(on_host), step(there)
            assert (there.shape, there.stride(), there.storage_offset()) == (
                on_host.shape,
                on_host.stride(),
                on_host.storage_offset(),
            )
        assert described(there) == described(on_host)


def test_writing_through_a_view_changes_its_base_and_nothing_else() -> None:
    on_host = torch.arange(24.0).reshape(2, 3, 4)
    there = on_host.to("air")
    for base in (on_host, there):
        base.permute(2, 0, 1)[1:3, :, ::2] += 100
        base[0].t()[2].fill_(-1)
        base[1, 2, 1:].copy_(torch.tensor([7.0, 8.0, 9.0]).to(base.device))
    assert there.tolist() == on_host.tolist()


def test_lazy_conjugation_and_negation() -> None:
    on_host = torch.tensor([1 + 2j, -3 - 1j])
    there = on_host.to("air")
    assert there.conj().is_conj()
    assert there.conj().data_ptr() == there.data_ptr()
    assert there.conj().imag.is_neg()
    assert there.conj().imag.tolist() == [-2.0, 1.0]
    assert torch.equal(there.conj().cpu(), on_host.conj())
    assert torch.equal(there.conj().resolve_conj().cpu(), on_host.conj())
    assert torch.equal((there.conj() * there).cpu(), (on_host.conj() * on_host))
    assert torch.equal(there.conj().imag.clone().cpu(), on_host.conj().imag)
    target = torch.zeros(2, dtype=torch.complex64, device="air")
    target.conj().copy_(there)
    assert torch.equal(target.cpu(), on_host.conj())


def test_real_views_share_memory() -> None:
    there = torch.zeros(3, dtype=torch.complex64, device="air")
    torch.view_as_real(there)[..., 1].fill_(2.0)
    there.real.add_(1.0)
    assert there.tolist() == [1 + 2j] * 3
    assert torch.view_as_complex(torch.view_as_real(there)).data_ptr() == there.data_ptr()
    assert there.view(torch.float32).shape == (6,)
