"""Totals of one crate from llvm-cov's JSON, and its lines and branches that never run.

Code of tests inside a source file does not count.
"""

import json
import pathlib
import sys

crate, source, missed = sys.argv[1:]
data = json.load(open(source))["data"][0]
totals = {"lines": [0, 0], "regions": [0, 0], "branches": [0, 0]}
report = []


def count(kind, done):
    totals[kind][0] += done
    totals[kind][1] += 1


for file in data["files"]:
    path = pathlib.Path(file["filename"])
    text = path.read_text().splitlines()
    end = next((n for n, line in enumerate(text, 1) if line.startswith("#[cfg(test)]")
                and n < len(text) and text[n].startswith("mod ") and text[n].endswith("{")), len(text) + 1)
    lines = {}
    for line, _, runs, has_count, is_entry, is_gap in file["segments"]:
        if has_count and is_entry and not is_gap and line < end:
            count("regions", runs > 0)
            lines[line] = max(lines.get(line, 0), runs)
    never = {line: "never runs" for line, runs in lines.items() if not runs}
    for runs in lines.values():
        count("lines", runs > 0)
    # A generic function has its branches once for each type.
    branches = {}
    for line, column, _, _, yes, no, *_ in file["branches"]:
        if line < end:
            known = branches.setdefault((line, column), [0, 0])
            known[0] += yes
            known[1] += no
    for (line, _), (yes, no) in branches.items():
        count("branches", yes > 0)
        count("branches", no > 0)
        if line not in never and not (yes and no):
            never[line] = "is never " + ("true nor false" if not yes and not no else "true" if not yes else "false")
    name = path.as_posix().split("/crates/")[-1]
    report += [f"{name}:{line}: {why}: {text[line - 1].strip()}" for line, why in sorted(never.items())]

pathlib.Path(missed).write_text("\n".join(report) + "\n")
print(f"{crate}: " + ", ".join(f"{kind} {100 * done / all:.1f} % ({done} of {all})" for kind, (done, all) in totals.items() if all))
