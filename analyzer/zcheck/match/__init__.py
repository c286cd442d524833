"""Rule files and evidence to findings.

``load_rules(folder)`` reads the YAML files of ``rules/``; ``match(rules, build_context(evidence, answers))`` gives the
findings for one stack. The rule format is design section 5 and CONTRIBUTING.
"""

from zcheck.match.context import Context, build_context
from zcheck.match.engine import match
from zcheck.match.loader import load_rules
from zcheck.match.rule import Example, Rule

__all__ = ["Context", "Example", "Rule", "build_context", "load_rules", "match"]
