"""What host/ needs of the coverage database, in host/'s own types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from zcheck.model.base import Confidence
from zcheck.model.host import (
    Component,
    ExportRange,
    GfxRow,
    GpuRow,
    GpuRun,
    HipSymbol,
    HostTables,
    KnownBad,
    Layout,
    PciGpu,
    Release,
    ReleaseLibrary,
    ZludaExports,
)

if TYPE_CHECKING:
    from zcheck.coverage.database import Database

_FOREVER = 999
"""order after every upstream release read; a fork's orders begin at 1000"""


def _split(text: str, separator: str = ";") -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(separator) if part.strip())


def _rows(database: Database, table: str, *columns: str) -> list[tuple[Any, ...]]:
    names = ", ".join(f'"{column}"' for column in columns)
    return database.query(f"SELECT {names} FROM {table} ORDER BY rowid")


def host_tables(database: Database) -> HostTables:
    """The tables that host/ judges by; about 1,000 small rows."""
    read = [item for item in database.releases() if item.read]
    order = {item.tag: item.order for item in read}
    return HostTables(
        releases=tuple(Release(item.tag, item.order, item.commit) for item in read),
        layouts=_layouts(database),
        libraries=tuple(
            ReleaseLibrary(
                release,
                library,
                file,
                tuple(_split(group, "|") for group in _split(hip)) if "through" not in hip else (),
            )
            for library, releases, files, hip in _rows(
                database, "zluda_library", "library", "releases", "zluda_file", "hip_dlls"
            )
            for release in _split(releases)
            for file in _split(files)
        ),
        components=tuple(
            Component(version, name, included, _split(dlls), note, sure)
            for version, name, included, dlls, note, sure in _rows(
                database, "hip_component", "version", "component", "included", "dll_names", "notes", "dll_confidence"
            )
        ),
        gpus=tuple(
            GpuRow(gpu.name, gpu.gfx, gpu.generation, gpu.apu, gpu.hip_sdk, gpu.sdk_support) for gpu in database.gpus()
        ),
        gfx=_gfx(database),
        pci=tuple(
            PciGpu(device, name, gfx, generation, apu == "yes", source)
            for device, name, gfx, generation, apu, source in _rows(
                database, "pci_gpu", "device_id", "name", "gfx", "generation", "apu", "source"
            )
        ),
        known_bad=tuple(
            KnownBad(kind, value, name, generation, zluda, effect, fix, source, cast("Confidence", sure))
            for kind, value, name, generation, zluda, effect, fix, source, sure in _rows(
                database, "known_bad",
                "kind", "value", "name", "generation", "zluda", "effect", "fix", "source", "confidence",
            )
        ),
        hip_symbols=tuple(
            HipSymbol(library, _split(dlls, "|"), symbol, order[since], order[until] if until else _FOREVER)
            for library, dlls, symbol, since, until in _rows(
                database, "zluda_hip_symbol", "library", "hip_dll", "symbol", "since", "until"
            )
        ),
        runs=tuple(
            GpuRun(gfx, name, sdk, zluda, workload, outcome, date)
            for gfx, name, sdk, zluda, workload, outcome, date in _rows(
                database, "run", "gpu", "gpu_name", "hip_sdk", "zluda", "workload", "outcome", "date"
            )
        ),
    )  # fmt: skip


def _layouts(database: Database) -> tuple[Layout, ...]:
    """One layout a run of releases with the same; the database answers for each release that was read."""
    result: list[Layout] = []
    for item in sorted((one for one in database.releases() if one.read), key=lambda one: one.order):
        found = database.layout(item)
        if found is None:
            continue
        needs = database.capabilities(item).get("cublas_create_needs_hipblaslt")
        layout = Layout(
            since=item.order,
            until=item.order,
            launcher=found.launcher,
            injected=found.redirects,
            files=found.library_files,
            hip_runtime=found.hip_runtime,
            hip_path_read=found.hip_path_read,
            hipblaslt_names=found.hipblaslt_names,
            cublas_needs_hipblaslt=needs is not None and needs.value == "yes",
        )
        last = result[-1] if result else None
        if last is not None and last.until + 1 == layout.since and _same(last, layout):
            import msgspec

            result[-1] = msgspec.structs.replace(last, until=layout.until)
        else:
            result.append(layout)
    return tuple(result)


def _same(one: Layout, other: Layout) -> bool:
    import msgspec

    return msgspec.structs.replace(one, since=0, until=0) == msgspec.structs.replace(other, since=0, until=0)


def _gfx(database: Database) -> tuple[GfxRow, ...]:
    extra = {
        gfx: (generation, apu, zluda, source)
        for gfx, generation, apu, zluda, source in _rows(
            database, "gfx_extra", "gfx", "generation", "apu", "zluda_v5_on", "source"
        )
    }
    rows: list[GfxRow] = []
    for gfx, generation, apu, rocblas, hipblaslt, community, source in _rows(
        database, "gfx", "gfx", "generation", "apu", "rocblas_kernels_in_sdk_6_4", "hipblaslt_in_sdk_6_4",
        "community_rocblas_exists", "evidence",
    ):  # fmt: skip
        more = extra.pop(gfx, ("", "", "", ""))
        rows.append(GfxRow(gfx, generation, apu == "yes", more[2], rocblas, hipblaslt, community, source))
    rows += [
        GfxRow(gfx, generation, apu == "yes", zluda, source=source)
        for gfx, (generation, apu, zluda, source) in extra.items()
    ]
    return tuple(rows)


def zluda_exports(database: Database) -> ZludaExports:
    """Every name that every release read exports, as ranges of release orders; about 8,000 rows."""
    rows = database.query("SELECT library, name, since, until FROM function_state")
    return ZludaExports(tuple(ExportRange(library, name, since, until) for library, name, since, until in rows))
