"""Heavy libraries are imported by what needs them, not by who imports our modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_importing_the_stages_imports_no_heavy_library() -> None:
    code = (
        "import sys, zcheck.parse.pe, zcheck.parse.signature, zcheck.discover, zcheck.resolve\n"
        "print(sorted({'pefile', 'lief', 'networkx', 'rich', 'xml'} & set(sys.modules)))"
    )
    analyzer = Path(__file__).parents[2] / "analyzer"
    done = subprocess.run([sys.executable, "-c", code], cwd=analyzer, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
