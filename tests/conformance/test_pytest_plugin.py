from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run_pytest(*arguments: str, cwd: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def suite(*arguments: str, cwd: Path) -> tuple[int, str]:
    return run_pytest("--pyargs", "conformance.suite", "--no-known", "--examples", "10", *arguments, cwd=cwd)


def test_passes_and_fails_with_the_script(tiny: Path, tmp_path: Path) -> None:
    code, output = suite(
        "--device", "tiny:Wrong", "-k", "tiny.negative-float32 or tiny.abs-float16-layout", cwd=tmp_path
    )
    assert code == 1
    assert "test_conformance[tiny.negative-float32-exhaustive]" in output
    assert "got -1088.0" in output
    assert "case = Case.load(" in output
    assert '"op": "tiny.negative"' in output
    assert "Traceback" not in output


def test_distributed(tiny: Path, tmp_path: Path) -> None:
    code, output = suite("--device", "tiny:Faulty", "-k", "tiny and layout", "-n", "2", cwd=tmp_path)
    assert code == 0, output
    assert "4 passed" in output


def test_unsupported_is_skipped(tiny: Path, tmp_path: Path) -> None:
    code, output = suite("--device", "tiny:Lacking", "-k", "tiny.negative and layout", "-rs", cwd=tmp_path)
    assert code == 0
    assert "2 skipped" in output
    assert "the operator 'aten::neg' is not implemented for this device" in output


def test_known_is_an_expected_failure(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.conformance.test_known import ENTRY

    (tmp_path / "known.toml").write_text(ENTRY)
    monkeypatch.setenv("TINY_KNOWN", str(tmp_path / "known.toml"))
    arguments = ("--pyargs", "conformance.suite", "-k", "tiny.negative-float32", "-rx", "--conformance-device")
    code, output = run_pytest(*arguments, "tiny:Wrong", cwd=tmp_path)
    assert code == 0
    assert "4 xfailed" in output
    assert "known: big" in output
    code, output = run_pytest(*arguments, "tiny:Faulty", cwd=tmp_path)
    assert code == 0
    assert "FIXED: known failure big no longer fails" in output


@pytest.mark.parametrize(("device", "message"), [
    ("tiny:Absent", "device tiny: it is only a test"),
    ("gpu", "--device: given 'gpu'"),
])  # fmt: skip
def test_what_cannot_be_had_is_one_clear_error(tiny: Path, tmp_path: Path, device: str, message: str) -> None:
    code, output = suite("--device", device, cwd=tmp_path)
    assert code != 0
    assert message in output
    assert "passed" not in output


def test_inert_elsewhere(tmp_path: Path) -> None:
    """Another project, whose own conftest has options of the same names, notices nothing."""
    (tmp_path / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--mine')\n"
        "def pytest_configure(config):\n    config.addinivalue_line('markers', 'x')\n"
    )
    (tmp_path / "test_other.py").write_text(
        "import sys\ndef test_other():\n    assert not {'torch', 'numpy', 'hypothesis.strategies'} & set(sys.modules)\n"
    )
    code, output = run_pytest("-p", "no:hypothesispytest", str(tmp_path / "test_other.py"), cwd=tmp_path)
    assert code == 0, output


def test_gives_way_to_other_plugins(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "owner.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--device', dest='theirs', default='untouched')\n"
    )
    (tmp_path / "test_other.py").write_text(
        "def test_other(pytestconfig):\n    assert pytestconfig.getoption('theirs') == 'gpu7'\n"
        "    assert pytestconfig.getoption('conformance_device') is None\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    code, output = run_pytest("-p", "owner", "--device", "gpu7", str(tmp_path / "test_other.py"), cwd=tmp_path)
    assert code == 0, output
