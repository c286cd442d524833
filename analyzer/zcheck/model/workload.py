"""Facts of models and scripts: what parse/ reads off ONNX, TorchScript, GGUF, safetensors and Python files."""

from __future__ import annotations

from typing import Literal

from zcheck.model.base import Problem, Record

ModelFormat = Literal["onnx", "torchscript", "torch-checkpoint", "gguf", "ggml", "safetensors", "ctranslate2"]
TensorUse = Literal["convolution", "matrix", "attention", "rnn"]
"""what a weight is for, told by its name and shape: the kernel of a convolution, a dense matrix, one of an attention
layer, one of a recurrent layer"""


class OperatorCount(Record, frozen=True):
    """How often a model's graph or code has an operator. ``name`` is qualified by its domain or namespace:
    ``ai.onnx::Conv``, ``com.microsoft::FusedConv``, ``aten::conv2d``."""

    name: str
    count: int


class TensorGroup(Record, frozen=True):
    """Weights that serve one purpose: how many, and one of them as an example (name and shape)."""

    use: TensorUse
    count: int
    example: str


class ModelFacts(Record, frozen=True):
    """What one model file says about the work it asks for. Nothing in it was executed or unpickled.

    ``path`` is the path that the reader was given. ``operators`` are sorted by name; ``tensors`` counts all weights
    named in the file, ``groups`` those whose name and shape tell their use. ``external``: data files that the model
    names beside it. ``globals``: classes and functions that a pickle names, never called. ``opsets``: domain, version.
    """

    path: str
    format: ModelFormat
    operators: tuple[OperatorCount, ...] = ()
    groups: tuple[TensorGroup, ...] = ()
    tensors: int = 0
    architecture: str = ""
    producer: str = ""
    opsets: tuple[tuple[str, int], ...] = ()
    external: tuple[str, ...] = ()
    globals: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def complete(self) -> bool:
        """False when something was not read, so that the absence of an operator says nothing."""
        return not any(problem.partial for problem in self.problems)


class NameUse(Record, frozen=True):
    """A qualified name that a script uses: how often, in which line first, and inside of which top-level definition
    (empty: at module level, so it runs when the file does)."""

    name: str
    count: int
    line: int
    inside: str = ""
    arguments: tuple[str, ...] = ()
    """text constants among the arguments of its calls: ``PPO("CnnPolicy", …)``"""


class LoadedLibrary(Record, frozen=True):
    """A DLL that a script loads by name; ``pattern``: a glob for several, ``folder``: a folder added to the search."""

    name: str
    line: int
    kind: Literal["library", "pattern", "folder"] = "library"


class ScriptFacts(Record, frozen=True):
    """What one Python file names. ``imports`` are the modules it imports, in full; ``relative`` those of its own
    package; ``names`` every qualified name of an imported module that it uses; ``refers`` the plain identifiers and
    attributes that it mentions; ``main``: it has a ``__main__`` part."""

    path: str
    imports: tuple[str, ...] = ()
    relative: tuple[str, ...] = ()
    names: tuple[NameUse, ...] = ()
    refers: frozenset[str] = frozenset()
    libraries: tuple[LoadedLibrary, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    """environment variables that it sets to a constant"""
    main: bool = False
    problems: tuple[Problem, ...] = ()


class ScriptMarks(Record, frozen=True):
    """What the bytes of a Python file let one expect of its syntax tree: ``packages`` that it may import, and whether
    it may load a DLL or set an environment variable (``effects``)."""

    packages: frozenset[str] = frozenset()
    effects: bool = False
