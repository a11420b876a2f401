"""The same values in other layouts, among memory that must not change."""

from __future__ import annotations

from random import Random

import torch

SENTINEL = 0x5A


class Laid:
    """``tensor`` holds ``values`` in a random layout; all around it lies memory filled with a sentinel."""

    def __init__(self, values: torch.Tensor, random: Random) -> None:
        dims = values.dim()
        order = random.sample(range(dims), dims)
        steps = [random.choice([1, 1, 2]) for _ in range(dims)]
        offset = random.randrange(4)
        sizes = [values.shape[dim] * steps[dim] for dim in order]
        count = offset + int(torch.Size(sizes).numel()) + 3
        self.memory = torch.full((count, values.dtype.itemsize), SENTINEL, dtype=torch.uint8)
        strides, step = [0] * dims, 1
        for dim in reversed(order):
            strides[dim] = step * steps[dim]
            step *= values.shape[dim] * steps[dim]
        self.tensor = self.memory.view(-1).view(values.dtype).as_strided(values.shape, strides, offset)
        self.tensor.copy_(values)

    def surroundings(self) -> torch.Tensor:
        """The bytes around the tensor."""
        outside = torch.ones(len(self.memory), dtype=torch.bool)
        outside.as_strided(self.tensor.shape, self.tensor.stride(), self.tensor.storage_offset()).fill_(False)
        return self.memory[outside]


def untouched(*laid: Laid) -> bool:
    """Whether nothing was written around any of the tensors."""
    return all(bool((each.surroundings() == SENTINEL).all()) for each in laid)
