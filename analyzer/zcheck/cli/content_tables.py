"""The tables about frameworks, applications and workloads, as the coverage database has them."""

from __future__ import annotations

from functools import lru_cache

from zcheck.cli.data import coverage
from zcheck.collect.frameworks import AppRow, FrameworkFile, read_apps, read_frameworks
from zcheck.collect.workload import CallRow, WorkloadTables

INSTALLED = frozenset({"site-packages", "dist-packages"})
"""folders of installed packages, in lower case"""
TESTS = frozenset({"test", "tests", "testing"})
"""folders whose scripts and models a program does not use"""


@lru_cache(maxsize=1)
def framework_file() -> FrameworkFile:
    """frameworks.yaml of the coverage database."""
    return read_frameworks(coverage().document("frameworks.yaml") or "frameworks: []")


@lru_cache(maxsize=2)
def foreign_packages(neutral: bool) -> frozenset[str]:
    """Packages of the frameworks, whose files are not the program's own; ``neutral``: also those without a GPU side."""
    found = {package for row in framework_file().frameworks for package in row.packages}
    return frozenset(found | set(framework_file().neutral_packages)) if neutral else frozenset(found)


@lru_cache(maxsize=1)
def app_rows() -> tuple[AppRow, ...]:
    """apps.yaml of the coverage database."""
    return read_apps(coverage().document("apps.yaml") or "apps: []")


@lru_cache(maxsize=1)
def workload_tables() -> WorkloadTables:
    """The tables that collect/workload is handed."""
    database, frameworks = coverage(), framework_file()
    operators: dict[str, tuple[str, ...]] = {}
    rows = database.query("SELECT name, family FROM onnx_op UNION ALL SELECT name, family FROM operator")
    for name, family in rows:
        operators[name] = (*operators.get(name, ()), family)
    calls: dict[str, tuple[CallRow, ...]] = {}
    for name, family, need in database.query("SELECT name, family, need FROM python_call"):
        calls[name] = (*calls.get(name, ()), CallRow(family, need))
    gpu = {package for row in frameworks.frameworks if row.gpu for package in row.packages}
    arguments: dict[tuple[str, str], tuple[str, ...]] = {}
    for name, text, family in frameworks.arguments:
        arguments[name, text] = (*arguments.get((name, text), ()), family)
    return WorkloadTables(
        operators=operators,
        calls=calls,
        architectures={name.lower(): families for name, families in frameworks.architectures.items()},
        arguments=arguments,
        known_packages=frozenset(frameworks.neutral_packages) | gpu | {name.partition(".")[0] for name in calls},
        gpu_packages=frozenset(gpu) | {name.partition(".")[0] for name in calls},
        loads_model=frozenset(frameworks.loads_model),
    )
