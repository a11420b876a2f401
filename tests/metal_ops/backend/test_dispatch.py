"""Every op has a launch, is composed by torch of ops that have, or raises: nothing is computed in another way."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torchgen
import yaml

from metal_ops.backend.helpers import take_used
from metal_ops.backend.mirror import ABOVE_AUTOGRAD, MIRRORED
from metal_ops.backend.runtime import queue
from metal_ops.launch import LAUNCHES


def test_what_has_no_launch_names_op_type_and_reason() -> None:
    with pytest.raises(NotImplementedError, match=r"^_fft_r2c on float32: device air has no launch for it$"):
        torch.fft.rfft(torch.zeros(4, device="air"))
    with pytest.raises(NotImplementedError, match=r"^pixel_shuffle on float32: PyTorch's Metal backend has an impl"):
        torch.nn.functional.pixel_shuffle(torch.zeros(1, 4, 2, 2, device="air"), 2)


def test_attention_takes_the_path_of_the_metal_backend() -> None:
    q = torch.zeros(1, 1, 2, 4, device="air")
    with pytest.raises(NotImplementedError, match="_scaled_dot_product_attention_math_for_mps"):
        torch.nn.functional.scaled_dot_product_attention(q, q, q)
    with pytest.raises(NotImplementedError, match="bmm"), torch.enable_grad():
        torch.nn.functional.scaled_dot_product_attention(q.requires_grad_(), q, q)


def test_ops_that_the_metal_backend_takes_over_are_never_composed() -> None:
    """Against the list of the torch at hand: an op with an MPS kernel and a composition needs an entry."""
    listed = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    for function in yaml.safe_load(listed.read_text(encoding="utf-8")):
        keys = {key.strip() for keys in function.get("dispatch", {}) for key in keys.split(",")}
        composed = any(key.startswith("Composite") for key in keys)
        name = function["func"].partition("(")[0]
        if "MPS" in keys and composed and name != "permute":  # permute_mps is the same view
            assert name in {**MIRRORED, **LAUNCHES, **ABOVE_AUTOGRAD}, name


def test_float_products_are_apples_unless_metal_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = torch.randn(5, 33), torch.randn(33, 18)
    monkeypatch.delenv("PYTORCH_MPS_PREFER_METAL", raising=False)
    with pytest.raises(NotImplementedError, match="leaves this product to Apple's MPSGraph"):
        left.air() @ right.air()  # type: ignore[attr-defined]
    whole = torch.arange(12).reshape(3, 4)
    assert torch.equal((whole.to("air") @ whole.t().to("air")).cpu(), whole @ whole.t())
    assert torch.equal(torch.bmm(whole[None].to("air"), whole.t()[None].to("air")).cpu()[0], whole @ whole.t())
    monkeypatch.setenv("PYTORCH_MPS_PREFER_METAL", "1")
    queue().take_names()
    torch.testing.assert_close((left.to("air") @ right.to("air")).cpu(), left @ right)
    bias = torch.randn(18)
    product = torch.addmm(bias.to("air"), left.to("air"), right.to("air"), beta=0.5, alpha=2.0)
    torch.testing.assert_close(product.cpu(), torch.addmm(bias, left, right, beta=0.5, alpha=2.0))
    assert queue().take_names() == ["matmul_float", "addmm_float"]
    unit = torch.randn(4, 4, dtype=torch.complex64)
    torch.testing.assert_close((unit.to("air").conj() @ unit.to("air")).cpu(), unit.conj() @ unit)


def test_random_numbers_are_a_helpers_and_say_so() -> None:
    take_used()
    torch.randn(3, device="air")
    torch.randint(5, (3,), device="air")
    assert take_used() == ["normal_", "random_.from"]
    assert take_used() == []


def test_out_is_resized_cast_and_returned() -> None:
    a, b = torch.arange(6.0).reshape(2, 3).to("air"), torch.ones(3, device="air")
    out = torch.empty(0, device="air")
    assert torch.add(a, b, alpha=2, out=out) is out
    assert out.tolist() == [[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]]
    strided = torch.zeros(2, 6, device="air")
    torch.mul(a, 2.0, out=strided[:, ::2])
    assert strided.tolist() == [[0, 0, 2, 0, 4, 0], [6, 0, 8, 0, 10, 0]]
    half = torch.empty(2, 3, dtype=torch.float16, device="air")
    assert torch.exp(a * 0, out=half).tolist() == [[1.0] * 3] * 2
    whole = torch.empty(2, 3, dtype=torch.int32, device="air")
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.add(a, b, out=whole)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.add(a.clone().requires_grad_(), b, out=out)
    version = out._version
    torch.add(a, b, out=out)
    assert out._version > version
    with pytest.raises(RuntimeError, match="expected Float"):
        torch.lerp(a, a, a, out=half)
    assert torch.lerp(a, a, a[0, 0], out=half).tolist() == a.tolist()  # a weight without dimensions promotes


def test_operands_of_other_devices_are_refused_unless_they_are_numbers() -> None:
    a = torch.ones(3, device="air")
    with pytest.raises(RuntimeError, match="device"):
        a + torch.ones(3)
    assert (a + torch.tensor(2.0)).tolist() == [3.0] * 3
    assert (torch.tensor(2, dtype=torch.int64) * a).tolist() == [2.0] * 3


def test_gradients_come_from_a_thread_of_their_own() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], device="air", requires_grad=True)
    y = torch.tensor([[2.0], [3.0]], device="air", requires_grad=True)
    (x * y).exp().log().sum().backward()
    torch.testing.assert_close(x.grad.cpu(), torch.full((3,), 5.0))  # type: ignore[union-attr]
    torch.testing.assert_close(y.grad.cpu(), torch.full((2, 1), 6.0))  # type: ignore[union-attr]
    twice = torch.autograd.grad((x**3).sum(), x, create_graph=True)[0]
    torch.testing.assert_close(torch.autograd.grad(twice.sum(), x)[0].cpu(), 6 * x.detach().cpu())


def test_it_is_too_late_after_a_backward_pass() -> None:
    program = (
        "import torch\n"
        "x = torch.ones(1, requires_grad=True)\n"
        "x.sum().backward()\n"
        "from metal_ops import backend\n"
        "backend.register()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "register device air before the first backward pass of the process" in ended.stderr
