from collections.abc import Iterator

import pytest

from metal_ops.air import Gpu
from metal_ops.builds import DEFAULT_BUILD, open_build
from metal_ops.launch._launcher import Launcher


@pytest.fixture(scope="session")
def shared_launcher() -> Launcher:
    return Launcher(Gpu(open_build(DEFAULT_BUILD).library()))


@pytest.fixture
def launcher(shared_launcher: Launcher) -> Iterator[Launcher]:
    """The kernels of the default build; a launch that touches memory that is not its own fails the test."""
    shared_launcher.take_names()
    shared_launcher.take_diagnoses()
    yield shared_launcher
    assert shared_launcher.take_diagnoses() == []
