"""CycloneDX 1.6: the modules with versions, hashes and dependencies; verdicts and findings as properties.

No time stamp, and a serial number made from the content, so that the same report gives the same bytes.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

from zcheck.model.report import Applications, Report
from zcheck.render import graphview, view
from zcheck.render.options import RenderOptions
from zcheck.render.safe import escape_json, visible

if TYPE_CHECKING:
    from cyclonedx.model import Property
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component

# Name space of serial numbers: uuid5 of the DNS name space and "zcheck".
_SPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "zcheck")


def render(product: Report | Applications, options: RenderOptions) -> str:
    """The SBOM of all applications of a product."""
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6

    bom = Bom()
    several = isinstance(product, Applications)
    root = Component(name=visible(product.target) or "?", type=ComponentType.APPLICATION, bom_ref="root")
    bom.metadata.component = root
    bom.metadata.tools.components.add(
        Component(
            name="zcheck",
            version=product.zcheck,
            type=ComponentType.APPLICATION,
            bom_ref="tool",
            properties=[_property("zcheck:database", product.database)],
        )
    )
    top = [
        _application(bom, report, f"{number}/" if several else "")
        for number, report in enumerate(view.reports(product), 1)
    ]
    bom.register_dependency(root, [component for components in top for component in components])
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    document.get("metadata", {}).pop("timestamp", None)
    document.pop("serialNumber", None)
    content = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(_SPACE, content)}"
    return escape_json(json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)) + "\n"


def _property(name: str, value: str) -> Property:
    from cyclonedx.model import Property

    return Property(name=name, value=visible(value))


def _application(bom: Bom, report: Report, prefix: str) -> list[Component]:
    """Adds the modules of one report; returns those that a person starts."""
    from cyclonedx.model import HashAlgorithm, HashType, Property
    from cyclonedx.model.component import Component, ComponentType

    graph = graphview.build(report)
    modules = {m.name: m for m in report.modules} | {m.path: m for m in report.modules if m.path}
    notes: dict[str, list[Property]] = {}
    rows = [(row, "finding") for row in view.merged(report)] + [
        (row, "ignored") for row in view.merged(report, ignored=True)
    ]
    names = {node.name for node in graph.nodes}
    roots = graph.roots or ("",)
    for row, word in rows:
        finding = row.finding
        place = finding.module if finding.module in names else roots[0]
        value = visible(f"{view.severity_word(finding)} on {', '.join(row.stacks)}: {finding.title}")
        notes.setdefault(place or "", []).append(Property(name=f"zcheck:{word}:{visible(finding.id)}", value=value))
    for root in roots:
        notes.setdefault(root, []).extend(
            Property(name=f"zcheck:verdict:{s.id}", value=s.verdict) for s in report.stacks
        )
    components: dict[str, Component] = {}
    for number, node in enumerate(graph.nodes):
        module = modules.get(node.name)
        properties = notes.pop(node.name, [])
        properties += [Property(name=f"zcheck:role:{stack}", value=role) for stack, role in node.roles.items()]
        if module:
            properties.append(Property(name="zcheck:machine", value=visible(module.machine)))
        components[node.name] = Component(
            name=visible(node.name) or "?",
            type=ComponentType.APPLICATION if node.kind == "entry" else ComponentType.LIBRARY,
            bom_ref=f"{prefix}module-{number}",
            version=visible(module.version) if module and module.version else None,
            publisher=visible(module.company) if module and module.company else None,
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=module.sha256)] if module and module.sha256 else None,
            properties=properties,
        )
    for properties in notes.values():
        bom.properties.update(properties)
    bom.components.update(components.values())
    children = graph.children()
    for node in graph.nodes:
        bom.register_dependency(components[node.name], [components[e.target] for e in children.get(node.name, ())])
    return [components[root] for root in roots if root in components]
