"""From ``--device`` and ``--build`` to a device that can be used."""

from __future__ import annotations

import importlib
import inspect
import platform
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from conformance.devices.base import Device, Unavailable
from conformance.errors import UsageError
from conformance.registry import registered

T = TypeVar("T")

_MEMBERS = ("name", "torch_device", "available", "session", "synchronize", "memory", "kernels")


def resolve(spec: str | None = None, build: str | None = None) -> Device:
    """Make the device that ``spec`` names.

    Parameters
    ----------
    spec
        The name of an entry point of the group ``conformance.devices``, or ``module:attribute`` of a class, a factory
        or an instance; None picks :func:`default_name`.
    build
        Whose kernels to judge, for devices that take a build.

    Raises
    ------
    UsageError
        If there is no such device, it is none, or it takes no build and one is given.
    Unavailable
        If the device or the build cannot be had here.
    """
    if build is not None and not build.strip():
        raise UsageError.of("--build", build, "a version, or the path of a wheel, dylib or metallib")
    spec = spec or default_name()
    source = _load(spec)
    device: Device = _answer(spec, "making it", lambda: _make(source, spec, build))
    if missing := [member for member in _MEMBERS if not hasattr(device, member)]:
        raise UsageError(f"--device {spec}: {type(device).__name__} is no device, it lacks {', '.join(missing)}")
    if reason := _answer(spec, "available()", device.available):
        raise Unavailable(reason)
    return device


def default_name() -> str:
    """``mps`` on Apple silicon where torch has it, else ``air``."""
    if sys.platform == "darwin" and platform.machine() == "arm64":
        from conformance.devices.mps import MpsDevice

        if MpsDevice().available() is None:
            return "mps"
    return "air"


def _load(spec: str) -> Any:
    points = registered("devices")
    if spec in points:
        target = points[spec].value
    elif ":" in spec:
        target = spec
    else:
        raise UsageError.of("--device", spec, [*points, "module:attribute"])
    module, _, attribute = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"--device {spec}: {target} cannot be imported: {error}") from error
    except Exception as error:  # a module may do anything
        raise UsageError(f"--device {spec}: {target} cannot be imported: {_told(error)}") from error
    return found


def _answer(spec: str, what: str, ask: Callable[[], T]) -> T:
    """Ask a device, which may be anyone's: what it raises means that it cannot be had."""
    try:
        return ask()
    except (UsageError, Unavailable):
        raise
    except Exception as error:
        raise Unavailable(f"device {spec}: {what} raised {_told(error)}") from error


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def _make(source: Any, spec: str, build: str | None) -> Any:
    is_factory = isinstance(source, type) or (callable(source) and not hasattr(source, "session"))
    if is_factory and "build" in inspect.signature(source).parameters:
        return source(build=build)
    if build is not None:
        raise UsageError(f"--build {build}: device {spec} takes no build, it judges the kernels of the host torch")
    return source() if is_factory else source
