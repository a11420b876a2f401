"""What makes a tensor of device ``air`` an ordinary tensor: memory, layout, types, printing, saving."""

import copy
import gc
import io

import numpy as np
import pytest
import torch

from metal_ops.backend.memory import Allocation

DTYPES = [
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.complex64,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
]


def bits(dtype: torch.dtype, count: int = 24) -> torch.Tensor:
    words = np.random.default_rng(1).integers(0, 256, count * dtype.itemsize, np.uint8)
    return torch.from_numpy(words & 1 if dtype == torch.bool else words).view(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_element_type_goes_there_and_back(dtype: torch.dtype) -> None:
    on_host = bits(dtype).reshape(2, 3, 4)
    there = on_host.to("air")
    assert (there.device.type, there.dtype, there.stride()) == ("air", dtype, on_host.stride())
    assert torch.equal(there.cpu().view(torch.uint8), on_host.view(torch.uint8))
    assert torch.equal(there.clone().cpu().view(torch.uint8), on_host.view(torch.uint8))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_double_precision_is_refused_as_on_a_mac(dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match=f"device air has no {str(dtype)[6:]}.*use float32"):
        torch.zeros(3, dtype=dtype, device="air")
    with pytest.raises(TypeError, match="device air has no"):
        torch.zeros(3, dtype=dtype).to("air")


def test_factories() -> None:
    assert torch.randn(3, 4, device="air").shape == (3, 4)
    assert torch.zeros(2, 3, device="air").cpu().tolist() == [[0.0] * 3] * 2
    assert torch.full((2,), 7, device="air").dtype == torch.int64
    assert torch.tensor([1.5, -2.0], device="air").tolist() == [1.5, -2.0]
    assert torch.ones_like(torch.empty(2, device="air")).tolist() == [1.0, 1.0]
    with torch.device("air"):
        assert torch.zeros(2).device.type == "air"
    assert torch.empty(0, device="air").cpu().shape == (0,)


def test_new_memory_is_not_a_number() -> None:
    assert torch.empty(5, device="air").isnan().cpu().all()


def test_memory_formats_are_kept() -> None:
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert image.to("air").stride() == image.stride()
    assert torch.empty(2, 3, 4, 5, device="air", memory_format=torch.channels_last).stride() == image.stride()
    assert image.contiguous().to("air").contiguous(memory_format=torch.channels_last).stride() == image.stride()


def test_memory_lives_as_long_as_a_view_of_it() -> None:
    gc.collect()
    before = Allocation.live
    whole = torch.zeros(1000, device="air")
    tail = whole[990:]
    del whole
    gc.collect()
    assert Allocation.live == before + 4000
    assert tail.tolist() == [0.0] * 10
    del tail
    gc.collect()
    assert Allocation.live == before


def test_method_and_module_of_the_device() -> None:
    assert torch.ones(2).air().device.type == "air"
    assert torch.air.device_count() == 1  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="does not exist; allowed: air:0"):
        torch.air.set_device(1)  # type: ignore[attr-defined]


def test_repr_shows_the_numbers() -> None:
    assert repr(torch.tensor([1.0, 2.5], device="air")) == "tensor([1.0000, 2.5000], device='air:0')"
    assert "device='air:0'" in repr(torch.tensor([1 + 2j], device="air").conj())


def test_save_and_load_and_deepcopy() -> None:
    tensor = torch.arange(6.0, device="cpu").reshape(2, 3).to("air").t()
    file = io.BytesIO()
    torch.save({"tensor": tensor}, file)
    file.seek(0)
    for other in (torch.load(file)["tensor"], copy.deepcopy(tensor)):
        assert (other.device, other.stride()) == (tensor.device, tensor.stride())
        assert torch.equal(other.cpu(), tensor.cpu())
        assert other.data_ptr() != tensor.data_ptr()


def test_modules_move() -> None:
    module = torch.nn.Sequential(torch.nn.LayerNorm(3), torch.nn.PReLU())
    moved = copy.deepcopy(module).to("air")
    assert {p.device.type for p in moved.parameters()} == {"air"}
    assert torch.equal(moved[0].weight.cpu(), module[0].weight)
    assert copy.deepcopy(moved)[0].weight.data_ptr() != moved[0].weight.data_ptr()


def test_numbers_are_read() -> None:
    tensor = torch.tensor([[1, 2], [3, 4]], device="air")
    assert (tensor[1, 0].item(), int(tensor[0, 1]), bool(tensor[0, 0])) == (3, 2, True)
    with pytest.raises(TypeError, match="can't convert air:0 device type tensor to numpy"):
        tensor.numpy()


def test_resize_keeps_what_was_there() -> None:
    tensor = torch.tensor([1.0, 2.0], device="air")
    assert tensor.resize_(2, 2) is tensor
    assert tensor.flatten()[:2].tolist() == [1.0, 2.0]


def test_seeds_repeat_random_numbers() -> None:
    draws = []
    for _ in range(2):
        torch.manual_seed(7)
        draws.append(torch.rand(5, device="air").tolist())
    assert draws[0] == draws[1]
    generator = torch.Generator().manual_seed(3)
    given = torch.empty(4, device="air").normal_(generator=generator).tolist()
    assert given == torch.empty(4).normal_(generator=torch.Generator().manual_seed(3)).tolist()
