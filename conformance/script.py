"""A stand-alone script of about a dozen lines for each failure, to be pasted into a report."""

from __future__ import annotations

from typing import Any

from conformance.case import Case, TensorSpec
from conformance.dtypes import dtype as dtype_of
from conformance.formats import bits_of_array, component, number_text
from conformance.record import Record
from conformance.worker.protocol import Tensor

_SPELLED = 64
"""Elements of a storage up to which a script spells them out; beyond, it reads the case file beside it."""

_PLAIN = '''\
"""{title}

{message}
"""
import torch

torch.set_printoptions(precision=9)
{operands}
{on_device}print("cpu", torch.{function}({cpu_arguments}))
print("float64", torch.{function}({wide_arguments}))
'''

_EMULATED = '''\
"""{title}

{message}
"""
import torch

torch.set_printoptions(precision=9)
{operands}
if torch.backends.mps.is_available():
    got = torch.{function}({mps_arguments}).cpu()
else:  # the kernel of the released build, emulated: pip install {package}
    from conformance.replay import call

    (got,) = call({op!r}, {cpu_arguments}, device={device!r}, build={build!r})
print("got", got)
print("cpu", torch.{function}({cpu_arguments}))
print("float64", torch.{function}({wide_arguments}))
'''

_FROM_FILE = '''\
"""{title}

{message}
"""
from pathlib import Path

from conformance.case import Case  # pip install {package}
from conformance.replay import outputs

case = Case.load(Path(__file__).with_suffix(".json"))
print("got", *outputs(case, device={device!r}, build={build!r}))
print("cpu", *outputs(case, device="cpu"))
'''
_PACKAGE = "metal-conformance"


def script(record: Record, function: str, *, device: str, build: str | None, torch_device: str) -> str:
    """Write the script that shows a failure.

    Parameters
    ----------
    record
        The failure's record; its case file must lie beside the script under the same name.
    function
        The dotted function below ``torch``.
    device
        As it was given to the run.
    build
        The version of the build that the device judged; None for devices that take none.
    torch_device
        The string torch knows the device by, for devices that torch itself knows.
    """
    case = Case.from_json(record.case)
    title = f"{record.op} {record.dtype} on {record.device}, build {record.build}: {record.verdict}"
    title += f" ({record.failure_class})"
    message = _wrapped(record.message or "")
    common = {"title": title, "message": message, "package": _PACKAGE, "device": device, "build": build}
    tensors = case.materialise()
    if device not in ("cpu", "cuda", "mps", "air") or sum(_elements(tensor) for tensor in tensors) > _SPELLED:
        return _FROM_FILE.format(**common)
    names = [f"x{number}" if len(tensors) > 1 else "x" for number in range(len(tensors))]
    operands = "\n".join(
        _operand(name, spec, tensor) for name, spec, tensor in zip(names, case.tensors, tensors, strict=True)
    )
    wide = ".to(torch.complex128)" if dtype_of(record.dtype).kind == "complex" else ".double()"
    common |= {
        "op": record.op,
        "operands": operands,
        "function": function,
        "cpu_arguments": _arguments(case, tensors, names, ""),
        "wide_arguments": _arguments(case, tensors, names, wide),
    }
    if device == "air":
        return _EMULATED.format(**common, mps_arguments=_arguments(case, tensors, names, '.to("mps")'))
    on_device = (
        f'print("{device}", torch.{function}({_arguments(case, tensors, names, f".to({torch_device!r})")}).cpu())'
    )
    return _PLAIN.format(**common, on_device="" if device == "cpu" else on_device + "\n")


def _wrapped(text: str, width: int = 110) -> str:
    import textwrap

    return textwrap.fill(text.replace('"""', "'''").replace("\\", "\\\\"), width)


def _elements(tensor: Tensor) -> int:
    return len(tensor.storage) // dtype_of(tensor.dtype).itemsize


def _is_plain(spec: TensorSpec) -> bool:
    """Whether a tensor is dense at offset 0, so that its guard need not be shown."""
    return spec.layout.is_contiguous and not spec.layout.offset


def _operand(name: str, spec: TensorSpec, tensor: Tensor) -> str:
    """A line that makes a tensor: its elements, or for a strided one its whole storage."""
    dtype = dtype_of(spec.dtype)
    if _is_plain(spec):
        numbers = spec.logical()
    else:
        import numpy as np

        numbers = np.frombuffer(tensor.storage, dtype.numpy)
    words = [int(word) for word in bits_of_array(numbers, dtype)]
    texts = [_literal(word, spec.dtype) for word in words]
    if component(dtype).count == 2:
        texts = [f"complex({real}, {imag})" for real, imag in zip(texts[::2], texts[1::2], strict=True)]
    shape = f".reshape({list(spec.shape)})" if _is_plain(spec) and len(spec.shape) != 1 else ""
    return f"{name} = torch.tensor([{', '.join(texts)}], dtype=torch.{spec.dtype}){shape}"


def _literal(word: int, dtype: str) -> str:
    text = number_text(word, dtype_of(dtype))
    if dtype == "bool":
        return str(bool(word))
    return f'float("{text}")' if text.strip("-") in ("nan", "inf") else text


def _arguments(case: Case, tensors: tuple[Tensor, ...], names: list[str], change: str) -> str:
    """The call's arguments: operands moved (or widened) as plain storages by ``change``, and viewed there."""
    arguments = []
    for name, spec, tensor in zip(names, case.tensors, tensors, strict=True):
        view = "" if _is_plain(spec) else f".as_strided({tensor.shape}, {tensor.strides}, {tensor.offset})"
        arguments.append(name + change + view)
    arguments += [f"{name}={_python(value)}" for name, value in case.params.items()]
    return ", ".join(arguments)


def _python(value: Any) -> str:
    return f'float("{value}")' if isinstance(value, float) and value - value != 0 else repr(value)
