"""A whole PC for the launcher's Wine tests: ZLUDA folder, HIP SDK, program folder; run from Linux or from Windows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import winprograms

from winpython import CHECKOUT, WinPython, wine_program

CLI = Path(__file__).with_name("cli_app.py")
_NUMBERED = {"cudnn": (8, 9), "cublas": (11, 12, 13), "cublasLt": (11, 12, 13), "cusparse": (10, 11, 12)}
_NUMBERED["cufft"] = (10, 11, 12)
V6 = ["nvcuda", "nvml", "zluda_redirect", *(f"{name}64_{n}" for name, numbers in _NUMBERED.items() for n in numbers)]


@dataclass
class Result:
    """One run: exit code (32-bit on Windows), what was said, and the report."""

    code: int
    out: str
    err: str
    report: dict[str, Any]


@dataclass
class Host:
    """``windows``: zcheck itself runs on Windows' Python; else on Linux, and starts programs with Wine."""

    root: Path
    windows: WinPython
    on_windows: bool

    def __post_init__(self) -> None:
        self.app, self.zluda, self.hip, self.data = (self.root / n for n in ("my app", "zluda", "6.4", "data"))
        made = winprograms.programs()
        self.made = made
        self.app.mkdir(parents=True)
        (self.hip / "bin" / "rocblas" / "library").mkdir(parents=True)
        for name in ("amdhip64_6.dll", "rocblas.dll", "hipblaslt.dll"):
            shutil.copy(made / "zluda" / "cublas64_12.dll", self.hip / "bin" / name)
        (self.hip / "bin" / "rocblas" / "library" / "TensileLibrary_lazy_gfx1100.dat").write_text("x")
        self.zluda.mkdir()
        self.release("launcher_raw")

    def release(self, launcher: str, name: str = "zluda.exe", nvcuda: str = "zluda") -> None:
        """Fills the ZLUDA folder."""
        for old in self.zluda.iterdir():
            old.unlink()
        shutil.copy(self.made / f"{launcher}.exe", self.zluda / name)
        for library in V6:
            shutil.copy(self.made / "zluda" / "cublas64_12.dll", self.zluda / f"{library}.dll")
        shutil.copy(self.made / nvcuda / "nvcuda.dll", self.zluda / "nvcuda.dll")

    def put(self, name: str, under: str = "") -> Path:
        """A program of winprograms in the program's folder."""
        folder = self.app / under
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(self.made / name, folder / Path(name).name))

    def environment(self) -> dict[str, str]:
        """What the launcher inherits."""
        extra = {"HOME": os.environ.get("HOME", "/"), "ZCHECK_WINE": wine_program()}
        if not self.on_windows:
            extra["PYTHONPATH"] = os.pathsep.join([str(CHECKOUT / "analyzer"), *filter(None, sys.path)])
        return self.windows.environment | extra

    def command(self, *arguments: object) -> list[str]:
        """The command line that runs zcheck with these arguments (``Path`` in its system's spelling)."""
        if self.on_windows:
            spelt = [self.windows.windows_path(a) if isinstance(a, Path) else str(a) for a in arguments]
            return [wine_program(), self.windows.windows_path(self.windows.root / "python.exe"), self._cli(), *spelt]
        return [sys.executable, str(CLI), *map(str, arguments)]

    def _cli(self) -> str:
        return self.windows.windows_path(CLI)

    def zcheck(self, *arguments: object, timeout: float = 120) -> Result:
        """Runs one verb to its end."""
        if self.on_windows:
            done = self.windows.program(
                self.windows.root / "python.exe", CLI, *arguments, env=self.environment(), timeout=timeout
            )
        else:
            done = subprocess.run(
                self.command(*arguments), env=self.environment(), capture_output=True, text=True, errors="replace",
                stdin=subprocess.DEVNULL, timeout=timeout,
            )  # fmt: skip
        return Result(done.returncode, done.stdout, done.stderr, {})

    def options(self, **more: object) -> list[object]:
        """Options that every run here has."""
        report = self.root / "report.json"
        given: list[object] = ["--zluda-dir", self.zluda, "--hip-dir", self.hip, "--data-dir", self.data, "--full"]
        given += ["--output", f"json={self.windows.windows_path(report) if self.on_windows else report}"]
        for name, value in more.items():
            given.append(f"--{name.replace('_', '-')}")
            if value is not True:
                given.append(value)
        return given

    def run(
        self, program: Path, *arguments: str, check: bool = False, timeout_s: float = 120, **more: object
    ) -> Result:
        """``zcheck run``, with the report read back."""
        report = self.root / "report.json"
        report.unlink(missing_ok=True)
        if not check:
            more["no_check"] = True
        more.setdefault("zluda", "v6")
        tail = ["--", *arguments] if arguments else []
        result = self.zcheck("run", *self.options(**more), program, *tail, timeout=timeout_s)
        if report.exists():
            result.report = json.loads(report.read_text("utf-8"))
        return result

    def loaded(self, report: dict[str, Any], name: str) -> list[str]:
        """Origins of the modules of that name."""
        return [module["origin"] for module in report["modules"] if module["name"].lower() == name]
