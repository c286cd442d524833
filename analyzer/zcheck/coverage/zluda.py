"""ZLUDA releases: names, layouts, libraries, capabilities, proc_address, PTX tables, notes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from zcheck.coverage.base import split
from zcheck.coverage.names import NameTables
from zcheck.errors import UsageError
from zcheck.model.base import Confidence
from zcheck.model.coverage import Capability, Layout, ProcAddress, PtxForm, PtxReject, Release, ReleaseLibrary

_REFUSING = ("returns-error", "ends-process")


class ZludaTables(NameTables):
    """Look-ups in the tables under ``zluda/``."""

    @cached_property
    def _releases(self) -> dict[str, Release]:
        rows = self.query('SELECT tag, "order", repository, "commit", date, main, read FROM release ORDER BY rowid')
        return {
            tag: Release(tag, int(order or -1), repository, commit, date, main, read == "yes")
            for tag, order, repository, commit, date, main, read in rows
        }

    @cached_property
    def _by_order(self) -> dict[int, Release]:
        return {item.order: item for item in self._releases.values() if item.read}

    @cached_property
    def tags(self) -> dict[int, str]:
        """Tag of each number."""
        return {order: item.tag for order, item in self._by_order.items()}

    @cached_property
    def newest_order(self) -> int:
        """Number of the newest upstream release."""
        return max(number for number in self._by_order if number < 1000)

    @cached_property
    def first_read_after_gap(self) -> str:
        """Tag before which releases were not read: what holds since it may be older."""
        unread = {item.tag.rsplit(".", 1)[0] for item in self._releases.values() if not item.read}
        later = [item for item in self._by_order.values() if item.tag.rsplit(".", 1)[0] in unread]
        return min(later, key=lambda item: item.order).tag if later else ""

    def releases(self) -> list[Release]:
        """All releases: upstream oldest first, forks, then those that were not read."""
        return list(self._releases.values())

    def release_aliases(self) -> dict[str, str]:
        """alias → tag."""
        return dict(self.query("SELECT alias, release FROM release_alias ORDER BY rowid"))

    def tag(self, order: int) -> str:
        """Tag of a release by its number."""
        return self._by_order[order].tag

    def release_by_order(self, order: int) -> Release:
        """Release by its number."""
        return self._by_order[order]

    def resolve_release(self, name: str) -> Release:
        """The release of a tag or alias; raises UsageError with near names when there is none."""
        import msgspec

        tag = self.release_aliases().get(name, name)
        if tag in self._releases:
            return msgspec.structs.replace(self._releases[tag], asked="" if tag == name else name)
        import difflib

        names = {known.lower(): known for known in (*self._releases, *self.release_aliases())}
        near = [names[found] for found in difflib.get_close_matches(name.lower(), names, 3, 0.6)]
        hint = f"; near it are {', '.join(near)}" if near else ""
        raise UsageError(f"no ZLUDA release is called {name!r}{hint} (zcheck db releases lists them all)")

    def nearest_main(self, release: Release) -> Release | None:
        """The release of its line whose bodies were read; None when this release was not read at all."""
        return self._releases.get(release.main) if release.read else None

    def tree(self, release: Release) -> str:
        """``vosen/ZLUDA@1234abcd5678``."""
        return f"{release.repository}@{release.commit[:12]}"

    def source_of(self, release: Release, path: str) -> str:
        """Source of a fact that was read at this release's nearest main release."""
        return f"{self.tree(self.nearest_main(release) or release)}:{path}"

    def _holds(self, since: str, until: str, order: int) -> bool:
        first = self._releases[since].order
        last = self._releases[until].order if until else (self.newest_order if first < 1000 else first)
        return first <= order <= last

    def layout(self, release: Release) -> Layout | None:
        """Launcher, redirected names and files; None for a release that was not read."""
        if not release.read:
            return None
        values = self.capabilities(release)

        def value(name: str) -> str:
            return values[name].value if name in values else ""

        bounds = [
            (since, until or None)
            for since, until in self.query("SELECT since, until FROM layout")
            if self._holds(since, until, release.order)
        ]
        since, until = bounds[0] if bounds else (release.tag, release.tag)
        return Layout(
            release.tag,
            launcher=value("launcher"),
            redirects=split(value("launcher_redirects")),
            library_files=split(value("library_files")),
            hip_runtime=value("hip_runtime"),
            hip_path_read=value("hip_path_read") == "yes",
            hipblaslt_names=split(value("hipblaslt_names")),
            since=since,
            until=until,
            source=values["launcher"].source if "launcher" in values else "",
        )

    @cached_property
    def _capability_rows(self) -> list[tuple[str, str, str, str, str]]:
        rows = self.query("SELECT name, value, since, until, source FROM capability ORDER BY rowid")
        return [(str(a), str(b), str(c), str(d), str(e)) for a, b, c, d, e in rows]

    def capabilities(self, release: Release) -> dict[str, Capability]:
        """Capability columns of a release; what was read at its nearest main release only is of medium confidence."""
        if release.tag not in self._capability_cache:
            self._capability_cache[release.tag] = self._capabilities(release) if release.read else {}
        return dict(self._capability_cache[release.tag])

    @cached_property
    def _capability_cache(self) -> dict[str, dict[str, Capability]]:
        return {}

    def _capabilities(self, release: Release) -> dict[str, Capability]:
        found: dict[str, Capability] = {}
        main = self.nearest_main(release)
        for confidence, asked in (("high", release), ("medium", main)):
            for name, value, since, until, source in self._capability_rows:
                if asked is None or name in found or not self._holds(since, until, asked.order):
                    continue
                sure: Confidence = "high" if confidence == "high" else "medium"
                found[name] = Capability(name, value, sure, f"{self.tree(asked)}: {source}")
        return dict(sorted(found.items()))

    # --- libraries ------------------------------------------------------------------------------------------------

    def shipped_libraries(self, release: Release) -> frozenset[str]:
        """Ids of the libraries that the release's Windows build ships."""
        return frozenset(item.library for item in self.libraries(release))

    @cached_property
    def _libraries_cache(self) -> dict[str, tuple[ReleaseLibrary, ...]]:
        return {}

    def libraries(self, release: Release) -> tuple[ReleaseLibrary, ...]:
        """The libraries that a release ships for Windows, by id; nothing for one that was not read.

        A preview has the files and redirects of its own layout; what a library needs from HIP comes from the nearest
        main release, corrected by the layout.
        """
        if not release.read:
            return ()
        if release.tag not in self._libraries_cache:
            self._libraries_cache[release.tag] = tuple(self._libraries(release))
        return self._libraries_cache[release.tag]

    def _main_rows(self, main: str) -> dict[str, tuple[str, str, str, str]]:
        rows = self.query("SELECT library, releases, dll_names, zluda_file, hip_dlls, provided_how FROM zluda_library")
        return {row[0]: (row[2], row[3], row[4], row[5]) for row in rows if main in split(row[1])}

    def _libraries(self, release: Release) -> Iterable[ReleaseLibrary]:
        layout = self.layout(release)
        main = self.nearest_main(release)
        if layout is None or main is None:
            return
        rows = self._main_rows(main.tag)
        redirects = {name.lower() for name in layout.redirects}
        counts = self._refusal_counts(release)
        if release.is_main:
            names = {library: split(row[0]) for library, row in rows.items()}
        else:
            names = self._names_of_layout(layout, counts, rows)
        for library in sorted(names):
            functions, refusing = counts.get(library, (0, 0))
            _, _, hip, how = rows.get(library, ("", "", "", ""))
            injected = tuple(name for name in names[library] if name.lower() in redirects)
            yield ReleaseLibrary(
                library,
                dll_names=names[library],
                injected=injected,
                hip_dlls=self._hip_dlls(release, library, hip, functions > refusing),
                provided_how=how if release.is_main or library == "cudart_hybrid" else self._how(layout, injected),
                functions=functions,
                refusing=refusing,
                confidence="high" if release.is_main else "low" if library == "cudart_hybrid" else "medium",
                source=f"{self.tree(release)}: {layout.source.partition(': ')[2]}",
            )

    @staticmethod
    def _how(layout: Layout, injected: tuple[str, ...]) -> str:
        return f"injected by {layout.launcher} redirect" if injected else "copy: the launcher does not redirect it"

    def _names_of_layout(
        self, layout: Layout, counts: dict[str, tuple[int, int]], rows: dict[str, tuple[str, str, str, str]]
    ) -> dict[str, tuple[str, ...]]:
        """library → DLL names, from the files in the zip and the names that the launcher injects."""
        names: dict[str, list[str]] = {}
        seen: set[str] = set()
        for file in (*layout.library_files, *layout.redirects):
            found = self.library_names().match(file)
            if found and file.lower() not in seen:
                seen.add(file.lower())
                names.setdefault(found.library, []).append(file)
        for library in ("nvcuda32", "cudart_hybrid"):
            if library in rows and (library in counts or library == "cudart_hybrid"):
                names[library] = list(split(rows[library][0]))
        return {library: tuple(files) for library, files in names.items()}

    def _hip_dlls(self, release: Release, library: str, hip: str, works: bool) -> tuple[tuple[str, ...], ...]:
        if " " in hip:  # prose: the 32-bit library goes through the 64-bit one
            return ()
        needs = [split(part, "|") for part in split(hip)]
        if release.is_main:
            return tuple(needs)
        values = self.capabilities(release)
        lt_names = split(values["hipblaslt_names"].value) if "hipblaslt_names" in values else ()
        old_runtime = "hip_runtime" in values and values["hip_runtime"].value == "imports amdhip64_6.dll"
        corrected = []
        for alternatives in needs:
            if "hipblaslt.dll" in alternatives:
                if library == "cublas" and values["cublas_create_needs_hipblaslt"].value == "no":
                    continue
                alternatives = lt_names or alternatives
            if "amdhip64_6.dll" in alternatives and old_runtime:
                alternatives = ("amdhip64_6.dll",)
            corrected.append(alternatives)
        return tuple(corrected) if works or library in ("nvcuda", "nvml") else ()

    def _refusal_counts(self, release: Release) -> dict[str, tuple[int, int]]:
        rows = self.query(
            f"SELECT library, count(*), sum(state IN {_REFUSING}) FROM function_state"
            " WHERE ? BETWEEN since AND until GROUP BY library",
            (release.order,),
        )
        return {library: (number, refusing) for library, number, refusing in rows}

    # --- driver entry points, PTX, notes --------------------------------------------------------------------------

    def aliases(self, name: str, release: Release) -> tuple[ProcAddress, ...]:
        """What cuGetProcAddress of this release answers for ``name``, highest CUDA version first."""
        main = self.nearest_main(release)
        if main is None:
            return ()
        rows = self.query(
            "SELECT name, symbol, flags, min_cuda_version, releases FROM proc_address WHERE name = ?", (name,)
        )
        tag = re.sub(r"-nightly$", "", main.tag)  # the fork's nightly has the table of its release
        found = [ProcAddress(row[0], row[1], row[2], int(row[3])) for row in rows if tag in split(row[4])]
        return tuple(sorted(found, key=lambda item: (item.flags, -item.min_cuda_version, item.symbol)))

    def entry_points(self, symbol: str) -> tuple[ProcAddress, ...]:
        """The names for which cuGetProcAddress of the newest main release gives this exported symbol."""
        newest = self._by_order[self.newest_order].main
        rows = self.query(
            "SELECT name, symbol, flags, min_cuda_version, releases FROM proc_address WHERE symbol = ? ORDER BY rowid",
            (symbol,),
        )
        return tuple(ProcAddress(row[0], row[1], row[2], int(row[3])) for row in rows if newest in split(row[4]))

    def not_on_windows(self, name: str) -> list[tuple[str, str, tuple[str, ...]]]:
        """(library, state, releases) of a function that is in the source but not in the Windows build."""
        rows = self.query(
            "SELECT library, state, releases FROM function_not_on_windows WHERE name = ? ORDER BY rowid", (name,)
        )
        return [(row[0], row[1], split(row[2])) for row in rows]

    def ptx_forms(self, release: Release) -> tuple[PtxForm, ...]:
        """Accepted PTX forms, special registers and directives: of a main release as read, else from the history."""
        if not release.read:
            return ()
        if release.is_main:
            rows = self.query("SELECT kind, name, form, releases FROM ptx_form ORDER BY rowid")
            return tuple(PtxForm(*row[:3]) for row in rows if release.tag in split(row[3]))
        rows = self.query("SELECT kind, name, form, since, until FROM ptx_history ORDER BY rowid")
        return tuple(PtxForm(*row[:3]) for row in rows if self._holds(row[3], row[4], release.order))

    def ptx_rejects(self, release: Release) -> tuple[PtxReject, ...]:
        """What the parser or a later pass of the nearest main release refuses."""
        rows = self.query('SELECT stage, what, "when", source, releases FROM ptx_reject ORDER BY rowid')
        return tuple(
            PtxReject(row[0], row[1], row[2], self.source_of(release, row[3]))
            for row in rows
            if release.main in split(row[4])
        )

    def _facts(self, table: str, release: Release) -> dict[str, str]:
        rows = self.query(f'SELECT key, value, releases FROM "{table}" ORDER BY rowid')
        return {row[0]: row[1] for row in rows if release.read and release.main in split(row[2])}

    def module_loading(self, release: Release) -> dict[str, str]:
        """How the nearest main release loads device code, in words: key → text."""
        return self._facts("module_loading", release)

    def launcher(self, release: Release) -> dict[str, str]:
        """The launcher of the nearest main release, in words: key → text (``env: HIP_PATH`` …)."""
        return self._facts("launcher", release)

    def notes(self, topic: str) -> dict[str, str]:
        """Notes of a topic (``unprovided_libraries``, ``nvapi_interfaces`` …): key → text."""
        return dict(self.query("SELECT key, text FROM note WHERE topic = ? ORDER BY rowid", (topic,)))
