"""Prints what the packages contain of other projects, from `cargo metadata` and Cargo.lock.

    dependencies.py sbom      a CycloneDX document (JSON) of the command, libhaul and the Python module
    dependencies.py notices   the licence texts of all crates in them, each text once
"""

import collections
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import uuid

# The packages that are shipped as binaries. Their build scripts and tests are not part of these.
SHIPPED = {"httphaul-cli", "httphaul-capi", "httphaul-python"}
# The packages are for Linux; its processors have the same crates.
SYSTEM = "x86_64-unknown-linux-gnu"
LICENCE_FILE = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


def metadata():
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--format-version", "1", "--filter-platform", SYSTEM]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def linked(graph):
    """Returns the packages that become part of a binary, by their identifiers: no build and no test dependencies."""
    packages = {package["id"]: package for package in graph["packages"]}
    nodes = {node["id"]: node for node in graph["resolve"]["nodes"]}
    waiting = [id for id, package in packages.items() if package["name"] in SHIPPED]
    found = {}
    while waiting:
        id = waiting.pop()
        if id in found:
            continue
        found[id] = packages[id]
        for dependency in nodes[id]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]) and not is_macro(packages[dependency["pkg"]]):
                waiting.append(dependency["pkg"])
    edges = {
        id: sorted({d["pkg"] for d in nodes[id]["deps"] if d["pkg"] in found and any(k["kind"] is None for k in d["dep_kinds"])})
        for id in found
    }
    return found, edges


def is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def sbom():
    found, edges = linked(metadata())
    lock = tomllib.loads(pathlib.Path("Cargo.lock").read_text())
    sums = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock["package"]}
    components = []
    for package in sorted(found.values(), key=purl):
        component = {
            "type": "application" if package["name"] == "httphaul-cli" else "library",
            "bom-ref": purl(package),
            "name": package["name"],
            "version": package["version"],
            "purl": purl(package),
            "licenses": [{"expression": (package["license"] or "NOASSERTION").replace("/", " OR ")}],
        }
        if checksum := sums.get((package["name"], package["version"])):
            component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        if package["repository"]:
            component["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
        components.append(component)
    dependencies = [
        {"ref": purl(found[id]), "dependsOn": sorted({purl(found[other]) for other in edges[id]})}
        for id in sorted(found, key=lambda id: purl(found[id]))
    ]
    version = os.environ["VERSION"]
    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    content = json.dumps([components, dependencies], sort_keys=True)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # The number is made of the content, so that the same sources have the same document.
        "serialNumber": f"urn:uuid:{uuid.UUID(bytes=hashlib.sha256(content.encode()).digest()[:16], version=4)}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "bom-ref": f"haul@{version}", "name": "haul", "version": version},
        },
        "components": components,
        "dependencies": dependencies,
    }
    print(json.dumps(document, indent=1))


def notices():
    found, _ = linked(metadata())
    texts = collections.defaultdict(list)
    without = []
    for package in sorted(found.values(), key=purl):
        if package["source"] is None:
            continue
        root = pathlib.Path(package["manifest_path"]).parent
        files = [path for path in sorted(root.iterdir()) if path.is_file() and LICENCE_FILE.match(path.name)]
        # Crates that contain the sources of a library in C have its licence there.
        files += [path for path in sorted(root.glob("*/*")) if path.is_file() and re.match(r"^(licen[cs]e|copying)", path.name, re.I)]
        name = f"{package['name']} {package['version']} ({package['license']})"
        if not files:
            without.append(name)
        for path in files:
            text = "\n".join(line.rstrip() for line in path.read_text(errors="replace").strip().splitlines())
            if name not in texts[text]:
                texts[text].append(name)
    print("haul contains the following crates, under these licences. haul itself is under MIT or Apache-2.0.\n")
    print("haul also contains the Public Suffix List (publicsuffix.org), under the Mozilla Public License 2.0 (mozilla.org/MPL/2.0).")
    print("Its source is crates/policy/src/cookie/public_suffixes.txt in the sources of haul.\n")
    if without:
        print("Crates whose archives have no licence text; the expression in parentheses is what they declare:\n")
        print("\n".join(f"  {name}" for name in without))
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        print("\n" + "-" * 100 + "\n")
        print("\n".join(names) + "\n")
        print(text)


if __name__ == "__main__":
    {"sbom": sbom, "notices": notices}[sys.argv[1]]()
