"""Export tables by name, made once for all entries of a bundle."""

from __future__ import annotations

from collections.abc import Mapping

from zcheck.model.facts import Export, PeFacts
from zcheck.resolve.names import split_forwarder

_Table = tuple[PeFacts, Mapping[str, Export], tuple[str, ...]]


class ExportTables:
    """The export tables of the facts that were asked for; they are told apart by identity, so share one instance only
    among entries whose facts are the same objects."""

    def __init__(self) -> None:
        self._tables: dict[int, _Table] = {}

    def by_name(self, facts: PeFacts) -> Mapping[str, Export]:
        """Exports by name and by ``#ordinal``."""
        return self._table(facts)[1]

    def forwarded_to(self, facts: PeFacts) -> tuple[str, ...]:
        """The DLLs that export forwarders name, in the order of the table."""
        return self._table(facts)[2]

    def _table(self, facts: PeFacts) -> _Table:
        table = self._tables.get(id(facts))
        if table is None:
            names: dict[str, Export] = {}
            dlls: dict[str, None] = {}
            for export in facts.exports:
                names.setdefault(f"#{export.ordinal}", export)
                if export.name:
                    names.setdefault(export.name, export)
                if export.forwarder:
                    dlls[split_forwarder(export.forwarder)[0]] = None
            # Held, so that no other facts get the same identity.
            table = self._tables[id(facts)] = (facts, names, tuple(dlls))
        return table
