"""Small applications in folders, for the tests of audits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pe_builder import build
from zcheck.cli.app import run

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
KERNEL = {"KERNEL32.dll": ["ExitProcess"]}
GEMM = {**KERNEL, "cublas64_12.dll": ["cublasCreate_v2", "cublasSgemm_v2"]}
CONV = {**KERNEL, "cudnn64_9.dll": ["cudnnCreate", "cudnnConvolutionForward"]}


def old(path: Path) -> None:
    """Set a file's time back, so that it counts as one that does not change any more."""
    os.utime(path, (1_700_000_000, 1_700_000_000))


def program(path: Path, imports: dict[str, list[str]] | None = None, *, dll: bool = False, tail: bytes = b"") -> Path:
    """A program or library that was written long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(build(dll=dll, imports=imports or KERNEL, exports=["run"] if dll else []) + tail)
    old(path)
    return path


def touch(path: Path, data: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    old(path)
    return path


def share(root: Path, count: int = 4) -> Path:
    """``count`` folders with a program each: one without CUDA, one with GEMM, one that convolves, and again."""
    for number in range(count):
        imports = (KERNEL, GEMM, CONV)[number % 3]
        folder = root / f"tool{number:03}"
        program(folder / f"tool{number}.exe", {**imports, "helper.dll": ["run"]}, tail=number.to_bytes(2, "little"))
        program(folder / "helper.dll", dll=True, tail=number.to_bytes(2, "little"))
    return root


def audit(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of ``zcheck audit``."""
    code = run(["audit", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def zcheck(cache: Path, *arguments: object, **more: object) -> subprocess.CompletedProcess[str]:
    """``zcheck`` as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "zcheck", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment(cache),
        check=False,
        timeout=120,
        **more,  # type: ignore[call-overload]
    )


def environment(cache: Path) -> dict[str, str]:
    """The environment of a process that is to keep its facts in ``cache``."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("ZCHECK_")}
    return {**kept, "PYTHONPATH": str(ROOT / "analyzer"), "ZCHECK_CACHE": str(cache), "ZCHECK_CONFIG": "off"}
