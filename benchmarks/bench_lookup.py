"""How long 2,000 function look-ups take in the coverage database, beside a plain dict that holds the same answers.

    python benchmarks/bench_lookup.py [--names 2000] [--rounds 20]

Prints the median of the batch look-up in milliseconds, the ratio to the dict (which knows one release only and builds
no answer records of its own), and what opening and compiling cost.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "analyzer"))

from timing import median_ms

from zcheck.coverage.database import Database
from zcheck.model.stack import FunctionAnswer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        tables = Path(__file__).resolve().parents[1] / "coverage_db"
        compiling = median_ms(lambda: Database.open(tables, Path(cache)).close(), 1)
        opening = median_ms(lambda: Database.open(tables, Path(cache)).close(), options.rounds)
        database = Database.open(tables, Path(cache))
        release = database.resolve_release("v6")
        known = [
            (library, name)
            for library in sorted(database.libraries_with_functions(release))
            for name in database.exported(release, library)
        ]
        # Every fifth name is one that nobody exports, as a real import list has them too.
        names = [(library, name + "_none" if index % 5 == 0 else name) for index, (library, name) in enumerate(known)]
        names = names[: options.names]
        first = median_ms(lambda: Database.open(tables, Path(cache)).functions(release, names), 1)
        batch = median_ms(lambda: database.functions(release, names), options.rounds)
        answers = {(answer.library, answer.name): answer for answer in database.functions(release, names)}
        missing = FunctionAnswer("", "", "not-exported")
        plain = median_ms(lambda: [answers.get(name, missing) for name in names], options.rounds)
        database.close()
    print(f"names                      {len(names):>10}")
    print(f"batch look-up              {batch:>10.2f} ms (aim: under 20 ms for 2,000)")
    print(f"plain dict                 {plain:>10.2f} ms, ratio {batch / plain:.0f}")
    print(f"open and first batch       {first:>10.2f} ms")
    print(f"open (hash of the tables)  {opening:>10.2f} ms")
    print(f"compile all tables once    {compiling:>10.2f} ms")


if __name__ == "__main__":
    main()
