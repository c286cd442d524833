"""Build hook: the wheel carries the rules and the compiled coverage database as ``zcheck/data``.

Standard library and zcheck's own compile module only, so that a build needs nothing but hatchling. An editable install
carries neither: there the package reads ``rules/`` and ``coverage_db/`` beside it.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def compile_module(source: Path) -> Any:
    """``zcheck.coverage.compile`` of this source tree, loaded without running ``zcheck.coverage``'s own imports.

    Those need libraries that a build does not have. An installed zcheck is neither used nor disturbed.
    """
    others = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "zcheck"}
    try:
        for name in ("zcheck", "zcheck.coverage"):
            package = ModuleType(name)
            package.__path__ = [str(source.joinpath(*name.split(".")))]
            sys.modules[name] = package
        return importlib.import_module("zcheck.coverage.compile")
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "zcheck"]:
            del sys.modules[name]
        sys.modules.update(others)


class DataHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts ``rules/`` and the compiled ``coverage_db/`` into a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the tables into a scratch folder; ``version`` is hatch's name of the kind of wheel."""
        if version == "editable":
            return
        root = Path(self.root)
        self._scratch = tempfile.TemporaryDirectory(prefix="zcheck-build-")
        database = Path(self._scratch.name) / "coverage.sqlite"
        compile_module(root / "analyzer").compile_file(root / "coverage_db", database)
        build_data["force_include"][str(database)] = "zcheck/data/coverage.sqlite"
        build_data["force_include"][str(root / "rules")] = "zcheck/data/rules"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the scratch folder."""
        if version != "editable":
            self._scratch.cleanup()
