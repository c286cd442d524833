"""Which text tables make up the database: file, SQLite table and what it is looked up by. Standard library only.

Columns are those of the CSV file's first line; every value is text, empty where the fact is not known. A column named
``releases``, ``…versions`` or ``files`` holds a list (``;`` between names; ``files`` holds numbers and ranges).
"""

from __future__ import annotations

from typing import NamedTuple

SCHEMA = 1
"""Raised whenever the compiled form changes, so that a cached file of an older form is not read."""


class Table(NamedTuple):
    """One text table: its path under ``coverage_db/``, its name in SQLite and its indices (column names)."""

    path: str
    name: str
    indices: tuple[tuple[str, ...], ...] = ()


# Loaded column by column as they are.
PLAIN: tuple[Table, ...] = (
    Table("meta.csv", "meta"),
    Table("sources.csv", "source"),
    Table("zluda/releases.csv", "release", (("tag",),)),
    Table("zluda/aliases.csv", "release_alias", (("alias",),)),
    Table("zluda/libraries.csv", "zluda_library"),
    Table("zluda/layouts.csv", "layout"),
    Table("zluda/capabilities.csv", "capability", (("name",),)),
    Table("zluda/launcher.csv", "launcher", (("key",),)),
    Table("zluda/modules.csv", "module_loading", (("key",),)),
    Table("zluda/notes.csv", "note", (("topic",),)),
    Table("zluda/sources.csv", "zluda_source"),
    Table("zluda/functions_not_on_windows.csv", "function_not_on_windows", (("library", "name"),)),
    Table("zluda/proc_address.csv", "proc_address", (("name",), ("symbol",))),
    Table("zluda/ptx_history.csv", "ptx_history", (("kind", "name"),)),
    Table("zluda/ptx_forms.csv", "ptx_form", (("kind", "name"),)),
    Table("zluda/ptx_rejects.csv", "ptx_reject"),
    Table("zluda/ptx_notes.csv", "ptx_note"),
    Table("zluda/ptx_behaviour.csv", "ptx_behaviour", (("key",),)),
    Table("hip/sdk.csv", "hip_component", (("version",),)),
    Table("hip/sdk_versions.csv", "hip_version"),
    Table("hip/export_files.csv", "hip_export_file", (("dll", "version"),)),
    Table("hip/hipify.csv", "hipify", (("cuda_name",),)),
    Table("hip/hipify_types.csv", "hipify_type", (("cuda_name",),)),
    Table("hip/hipify_counts_6_4.csv", "hipify_count"),
    Table("hip/api.csv", "hip_api", (("function",),)),
    Table("hip/gpus.csv", "gpu", (("gfx",), ("gpu_name",))),
    Table("hip/gfx_capabilities.csv", "gfx", (("gfx",),)),
    Table("hip/library_map.csv", "library_map"),
    Table("hip/export_gaps_6_4.csv", "hip_export_gap", (("cuda_name",),)),
    Table("hip/cudart_internal.csv", "cudart_internal", (("cuda_name",),)),
    Table("hip/sources.csv", "hip_source"),
    Table("cuda/files.csv", "cuda_file", (("id",), ("dll",))),
    Table("cuda/dll_deps.csv", "cuda_dll_dep", (("dll",), ("depends_on",))),
    Table("cuda/device_code.csv", "cuda_device_code", (("dll",),)),
    Table("cuda/fingerprint_files.csv", "fingerprint_file", (("id",),)),
    Table("fingerprints.csv", "linked_name"),
    Table("fingerprints.files.csv", "linked_file"),
    Table("fingerprints.loader.csv", "driver_loader"),
    Table("fingerprints.hybrid.csv", "hybrid_function"),
    Table("truth/runtime_to_driver.csv", "runtime_to_driver", (("runtime_function",),)),
    Table("truth/runtime_variants.csv", "runtime_variant", (("runtime_function",),)),
    Table("truth/runtime_functions_measured.csv", "runtime_measured", (("runtime_function",),)),
    Table("truth/runtime_first_call.csv", "runtime_first_call", (("runtime_function",),)),
    Table("truth/runtime_simulated_v6.csv", "runtime_simulated_v6", (("runtime_function",),)),
    Table("truth/runtime_blockers.csv", "runtime_blocker", (("runtime_function",),)),
    Table("truth/cudart_requests.csv", "cudart_request", (("name",),)),
    Table("truth/library_to_driver.csv", "library_to_driver", (("function",),)),
    Table("truth/library_to_library.csv", "library_to_library", (("function",),)),
    Table("truth/library_simulated_v6.csv", "library_simulated_v6", (("function",),)),
    Table("truth/private_tables.csv", "private_table", (("table_guid",),)),
    Table("truth/private_table_refusal.csv", "private_table_refusal"),
    Table("truth/seen_in_workloads.csv", "seen_in_workload", (("library", "function"),)),
    Table("truth/workload_gaps.csv", "workload_gap", (("workload",),)),
    Table("truth/workloads.csv", "workload", (("workload",),)),
    Table("truth/zluda_simulation.csv", "zluda_simulation", (("workload",),)),
    Table("names/dll_names.csv", "dll_name"),
    Table("names/family_rules.csv", "family_rule"),
    Table("names/families.csv", "family", (("name",),)),
    Table("names/framework_dlls.csv", "framework_dll"),
    Table("names/own_paths.csv", "own_path_dll"),
    Table("names/stacks.csv", "named_stack", (("name",),)),
    Table("windows_dlls.csv", "windows_dll"),
    Table("windows_dlls_sources.csv", "windows_dll_source"),
    Table("names/operators.csv", "operator", (("name",),)),
    Table("pci_gpus.csv", "pci_gpu", (("device_id",),)),
    Table("gfx_extra.csv", "gfx_extra", (("gfx",),)),
    Table("known_bad.csv", "known_bad"),
    Table("zluda_hip_symbols.csv", "zluda_hip_symbol"),
    Table("names/onnx_ops.csv", "onnx_op"),
    Table("names/python_calls.csv", "python_call"),
    Table("reports/runs.csv", "run"),
    Table("reports/measurements.csv", "measurement"),
)

# Tables whose ``files`` list is spread over one row an entry: path, SQLite table, key columns.
SPREAD: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("cuda/exports.csv", "cuda_export", ("function", "library")),
    ("hip/exports.csv", "hip_export", ("function",)),
    ("cuda/fingerprint.csv", "fingerprint", ("identifier",)),
)

FUNCTIONS = "zluda/functions.csv"
READINGS = "zluda/readings.csv"
RELEASES = "zluda/releases.csv"
