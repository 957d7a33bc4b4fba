"""Builds the guides as a site by mdBook, and checks each link and anchor of it.

    build.py ROOT TARGET MDBOOK

ROOT is the checkout, TARGET the directory of the site, MDBOOK the program. Pages of docs/design are
added below "How haul is built" in the order of their table. A link to a file that is no page of the
site leads to the repository, if the file exists.
"""

import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

LINK = re.compile(r"(\]\()([^)\s]+)(\))")
#: Pages of the site that are not in docs.
OTHER_PAGES = {"README.md": "index.md", "SECURITY.md": "SECURITY.md", "CHANGELOG.md": "CHANGELOG.md"}


class Page(html.parser.HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if attributes.get("id"):
            self.ids.add(attributes["id"])
        for name in ("href", "src"):
            if attributes.get(name):
                self.links.append(attributes[name])


def repository(root):
    text = (root / "Cargo.toml").read_text()
    return re.search(r'^repository = "(.*)"', text, re.M).group(1)


def pages(root):
    """Returns the files of the site with their names in it."""
    found = {path: path.relative_to(root / "docs") for path in (root / "docs").rglob("*.md")}
    found[root / "docs/design/README.md"] = pathlib.Path("design/index.md")
    for name, place in OTHER_PAGES.items():
        found[root / name] = pathlib.Path(place)
    return found


def with_links(text, source, place, known, root, faults):
    """Returns the text of a page with the links of its place in the site."""

    def replace(match):
        target = match.group(2)
        if target.startswith("#") or urllib.parse.urlsplit(target).scheme:
            return match.group(0)
        name, _, anchor = target.partition("#")
        file = (source.parent / name).resolve()
        if not file.exists():
            faults.append(f"{source.relative_to(root)}: {target} does not exist")
            return match.group(0)
        anchor = f"#{anchor}" if anchor else ""
        if file in known:
            up = "../" * (len(place.parts) - 1)
            return f"{match.group(1)}{up}{known[file].as_posix()}{anchor}{match.group(3)}"
        if file.suffix in (".svg", ".png"):
            up = "../" * (len(place.parts) - 1)
            return f"{match.group(1)}{up}{file.relative_to(root / 'docs').as_posix()}{match.group(3)}"
        kind = "tree" if file.is_dir() else "blob"
        return f"{match.group(1)}{repository(root)}/{kind}/main/{file.relative_to(root).as_posix()}{anchor}{match.group(3)}"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(replace, part) for part in parts)


def design_pages(root):
    """Returns the lines of the summary for the design pages, in the order of their table."""
    text = (root / "docs/design/README.md").read_text()
    names = list(dict.fromkeys(re.findall(r"^\| \[([a-z0-9-]+\.md)\]", text, re.M)))
    lines = []
    for name in names:
        title = (root / "docs/design" / name).read_text().split("\n", 1)[0].lstrip("# ")
        lines.append(f"  - [{title}](design/{name})")
    return lines


def write_sources(root, source):
    faults = []
    known = {path.resolve(): place for path, place in pages(root).items()}
    for file, place in known.items():
        (source / place).parent.mkdir(parents=True, exist_ok=True)
        text = with_links(file.read_text(), file, place, known, root, faults)
        (source / place).write_text(text)
    for picture in (root / "docs").rglob("*"):
        if picture.suffix in (".svg", ".png", ".json"):
            place = source / picture.relative_to(root / "docs")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, place)
    summary = (root / "scripts/site/SUMMARY.md").read_text().rstrip("\n")
    text = "\n".join([summary, *design_pages(root), ""])
    listed = set(re.findall(r"\]\(([^)]+)\)", text))
    faults += [f"{place} is not in scripts/site/SUMMARY.md" for place in known.values() if place.as_posix() not in listed]
    faults += [f"scripts/site/SUMMARY.md: {name} does not exist" for name in listed if not (source / name).exists()]
    (source / "SUMMARY.md").write_text(text)
    return faults


def check(directory):
    """Returns the links of the site that lead nowhere."""
    found = {path.resolve(): Page(path.read_text()) for path in directory.rglob("*.html")}
    faults = []
    for path, page in found.items():
        if path.name in ("404.html", "toc.html", "print.html"):
            continue
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            file = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            place = path.relative_to(directory.resolve())
            if file.is_dir():
                file = file / "index.html"
            if not file.exists():
                faults.append(f"{place}: {link} does not exist")
            elif parts.fragment and file in found and urllib.parse.unquote(parts.fragment) not in found[file].ids:
                faults.append(f"{place}: {link} has no such anchor")
    return sorted(set(faults)), len(found)


def main():
    root, target, mdbook = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    shutil.rmtree(target, ignore_errors=True)
    (target / "src").mkdir(parents=True)
    shutil.copy(root / "scripts/site/book.toml", target)
    faults = write_sources(root, target / "src")
    subprocess.run([mdbook, "build", target], check=True)
    more, count = check(target / "html")
    for fault in faults + more:
        print(fault, file=sys.stderr)
    if faults or more:
        sys.exit(1)
    print(f"{count} pages without a broken link in {target / 'html'}")


if __name__ == "__main__":
    main()
