"""Which files of a bundle are read as models; each once, within bounds."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path

from zcheck.cli.content_tables import INSTALLED, TESTS, foreign_packages
from zcheck.model.base import Skipped
from zcheck.model.bundle import Bundle, BundleFile
from zcheck.model.evidence import Workload
from zcheck.model.workload import ModelFacts

MODELS_READ = 64
_UNREAD = (".engine", ".plan", ".trt", ".tflite", ".h5", ".keras", ".pdmodel")
_TORCH = (".pt", ".pth", ".ptl", ".jit", ".torchscript", ".ckpt", ".bin")


class ModelReader:
    """Reads models of one bundle; ``skipped`` gets what was left out."""

    def __init__(self, bundle: Bundle, skipped: list[Skipped]) -> None:
        self._root = Path(bundle.root)
        self._facts: dict[str, ModelFacts | None] = {}
        self._lists: dict[int, tuple[list[ModelFacts], frozenset[str]]] = {}
        self._skipped = skipped

    def read(self, files: Sequence[BundleFile]) -> tuple[list[ModelFacts], frozenset[str]]:
        """Models read, and the paths of those that belong to an installed package, which may never be used. The
        answer for a list of files is kept by its identity."""
        if id(files) not in self._lists:
            self._lists[id(files)] = self._read(files)
        return self._lists[id(files)]

    def _read(self, files: Sequence[BundleFile]) -> tuple[list[ModelFacts], frozenset[str]]:
        foreign = foreign_packages(neutral=False)
        found, maybe = [], set()
        for file in sorted(files, key=lambda file: (file.path.count("/"), file.path)):
            parts = file.path.split("/")[:-1]
            if file.kind != "model" or file.path.lower().endswith(_UNREAD) or foreign & set(parts):
                continue
            if TESTS & set(parts):
                continue
            facts = self._model(file)
            if facts is not None:
                found.append(facts)
                if any(part.lower() in INSTALLED for part in parts):
                    maybe.add(file.path)
        return found, frozenset(maybe)

    def _model(self, file: BundleFile) -> ModelFacts | None:
        if file.path not in self._facts:
            self._facts[file.path] = None
            if len(self._facts) > MODELS_READ:
                self._skipped.append(Skipped(file.path, f"more than {MODELS_READ} models"))
                return None
            try:
                self._facts[file.path] = _read_model(self._root / file.path, file.path)
            except (OSError, ValueError) as error:
                self._skipped.append(Skipped(file.path, f"cannot be read: {getattr(error, 'strerror', None) or error}"))
                return None
            facts = self._facts[file.path]
            for problem in facts.problems if facts else ():
                self._skipped.append(Skipped(file.path, problem.reason))
        return self._facts[file.path]


def unread_models(files: Sequence[BundleFile]) -> list[Workload]:
    """Convolution is unknown where a model has a form that is not read."""
    for file in files:
        if file.kind == "model" and file.path.lower().endswith(_UNREAD):
            return [Workload("convolution", "unknown", f"{file.path}: a model in a form that is not read")]
    return []


def _read_model(path: Path, shown: str) -> ModelFacts | None:
    """The facts of a model file by its suffix and first bytes; None for a file that is none."""
    lower = shown.lower()
    with path.open("rb") as file:
        size = path.stat().st_size
        if size == 0:
            return None
        if lower.endswith(".onnx"):
            from zcheck.parse.onnx import read_onnx

            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                view = memoryview(data)
                try:
                    return read_onnx(view, shown)
                finally:
                    view.release()
        if lower.endswith(".safetensors"):
            from zcheck.parse.safetensors import read_safetensors

            return read_safetensors(file, size, shown)
        from zcheck.parse.gguf import read_gguf

        found = None
        if lower.endswith(_TORCH):
            from zcheck.parse.torchscript import read_torch

            found = read_torch(file, size, shown)
        return found or read_gguf(file, size, shown)
