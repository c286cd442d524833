"""HIP SDK for Windows, HIP's exports, HIPIFY names, GPUs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

from zcheck.coverage.base import Asker, split
from zcheck.errors import UsageError
from zcheck.model.base import Confidence
from zcheck.model.coverage import Component, Gfx, Gpu, HipName, HipSdk

_HIPIFY = (
    "cuda_name, api, kind, hip_name, roc_name, status, hip_since, hip_removed, cuda_added, cuda_removed, in_hip_6_4,"
    " v2_signature_only"
)


def _hip_name(row: tuple[Any, ...]) -> HipName:
    fields = dict(zip(_HIPIFY.replace(" ", "").split(","), row, strict=True))
    flags = {name: fields.pop(name) == "yes" for name in ("in_hip_6_4", "v2_signature_only")}
    return HipName(**fields, **flags)


class HipTables(Asker):
    """Look-ups in the tables under ``hip/``."""

    def hip_sdk_versions(self) -> list[str]:
        """Versions for which a Windows SDK exists (``6.4``, ``therock`` …), oldest first."""
        return [row[0] for row in self.query("SELECT version FROM hip_version WHERE windows = 'yes' ORDER BY rowid")]

    def hip_sdk(self, version: str) -> HipSdk:
        """The SDK of a version: ``6.4`` means its newest 6.4.x, ``6.4.1`` is judged by the rows of 6.4.

        ``6.4.0`` and ``6.4.1`` have no hipBLASLt, which came with 6.4.2. Raises UsageError for a version that no table
        knows.
        """
        rows = self.query("SELECT version, newest, windows, source FROM hip_version")
        known = {row[0]: row for row in rows}
        key = version if version in known else ".".join(version.split(".")[:2])
        if key not in known or not (key == version or re.fullmatch(r"\d+\.\d+\.\d+", version)):
            names = ", ".join(self.hip_sdk_versions())
            raise UsageError(f"no HIP SDK for Windows is called {version!r}; known are {names}")
        patch = int(version.split(".")[2]) if version.count(".") == 2 else None
        parts = []
        for name, included, dlls, confidence, notes, source in self.query(
            "SELECT component, included, dll_names, dll_confidence, notes, evidence FROM hip_component"
            " WHERE version = ? AND component <> 'whole SDK' ORDER BY component",
            (key,),
        ):
            arrived = re.match(r"from \d+\.\d+\.(\d+);", notes)
            if included == "yes" and arrived and patch is not None and patch < int(arrived[1]):
                included, dlls = "no", ""
            state = included if included in ("yes", "no") else "unknown"
            sure = cast("Confidence | None", confidence or None)
            parts.append(Component(name, state, split(dlls), sure, notes, source))
        _, newest, windows, source = known[key]
        return HipSdk(version, version if patch is not None else newest, windows == "yes", tuple(parts), source)

    def hip_export_versions(self, dll: str | None = None) -> list[tuple[str, str]]:
        """(DLL, version) of every export list that was read."""
        rows = self.query("SELECT dll, version FROM hip_export_file ORDER BY dll, CAST(id AS INTEGER)")
        return [(row[0], row[1]) for row in rows if dll is None or row[0].lower() == dll.lower()]

    def hip_exports(self, version: str, dll: str | None = None) -> frozenset[str]:
        """Functions that a HIP DLL of a version exports (``6.4`` → the 6.4.x that was read); empty: not read.

        ``dll`` defaults to the HIP runtime of that version. 7.x stands in the tables as ``7.x-develop``.
        """
        rows = self.query("SELECT id, dll, version FROM hip_export_file")
        chosen = [
            row[0]
            for row in rows
            if (row[2] == version or ".".join(row[2].split(".")[:2]) == ".".join(version.split(".")[:2]))
            and (row[1].lower() == dll.lower() if dll else row[1].startswith("amdhip64"))
        ]
        if not chosen and (version == "therock" or version.startswith("7.")):
            chosen = [row[0] for row in rows if row[2] == "7.x-develop" and (not dll or row[1].lower() == dll.lower())]
        if not chosen:
            return frozenset()
        marks = ", ".join("?" * len(chosen))
        names = self.query(f"SELECT function FROM hip_export WHERE file IN ({marks})", [int(item) for item in chosen])
        return frozenset(row[0] for row in names)

    def hip_api_versions(self, function: str) -> dict[str, tuple[str, ...]]:
        """library → ROCm versions whose headers declare a HIP or roc function (Linux headers)."""
        rows = self.query("SELECT library, rocm_versions FROM hip_api WHERE function = ?", (function,))
        return {row[0]: split(row[1]) for row in rows}

    def hipify_all(self, names: Iterable[str], types: bool = False) -> dict[str, HipName]:
        """HIPIFY's row of each exact CUDA name; names it lacks are left out. ``types``: look among types instead."""
        table = "hipify_type" if types else "hipify"
        rows = self.query(
            f"SELECT {_HIPIFY} FROM json_each(?) AS asked CROSS JOIN {table} ON cuda_name = asked.value",
            (json.dumps(sorted(set(names))),),
        )
        return {row[0]: _hip_name(row) for row in rows}

    def hipify(self, name: str) -> HipName | None:
        """HIPIFY's row of one CUDA function, or type or constant; None when it knows no such name."""
        found = self.hipify_all([name]) or self.hipify_all([name], types=True)
        return found.get(name)

    def hip_export_gap(self, cuda_name: str) -> str | None:
        """Why the HIP twin of this name is in 6.4's headers but not exported on Windows; None when there is no gap."""
        rows = self.query("SELECT reason FROM hip_export_gap WHERE cuda_name = ?", (cuda_name,))
        return str(rows[0][0]) if rows else None

    # --- GPUs -----------------------------------------------------------------------------------------------------

    def gpus(self, gfx: str | None = None, name: str | None = None, hip_sdk: str | None = None) -> list[Gpu]:
        """GPU rows by target, exact marketing name (without regard to case) and SDK version (``6.4``); None: all."""
        version = ".".join(hip_sdk.split(".")[:2]) if hip_sdk else None
        rows = self.query(
            "SELECT gpu_name, gfx, generation, apu, hip_sdk_version, runtime_support, sdk_support, evidence FROM gpu"
            " WHERE (? IS NULL OR gfx = ?) AND (? IS NULL OR lower(gpu_name) = lower(?))"
            " AND (? IS NULL OR hip_sdk_version = ?) ORDER BY rowid",
            (gfx, gfx, name, name, version, version),
        )
        return [Gpu(row[0], row[1], row[2], row[3] == "yes", *row[4:]) for row in rows]

    def gfx(self, target: str) -> Gfx | None:
        """Facts of one GPU target, None when no table knows it."""
        cursor_columns: Sequence[tuple[object, ...]] = self.query("SELECT name FROM pragma_table_info('gfx')")
        rows = self.query("SELECT * FROM gfx WHERE gfx = ?", (target,))
        if not rows:
            return None
        return Gfx(target, {str(column[0]): value for column, value in zip(cursor_columns, rows[0], strict=True)})

    def gfx_targets(self) -> list[str]:
        """All GPU targets that the tables know."""
        return [row[0] for row in self.query("SELECT gfx FROM gfx ORDER BY rowid")]
