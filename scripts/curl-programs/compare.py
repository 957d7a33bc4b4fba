"""Compares what a program did with curl and with haul: `compare.py NAME RESULTS EXPECTED`. Prints one line for scripts/curl-programs.sh,
and writes the differences to RESULTS/differences."""

import difflib
import json
import os
import re
import sys

name, results, expected_path = sys.argv[1:4]
mask = os.environ.get("MASK", "")
skip_files = os.environ.get("SKIP_FILES", "")


def masked(text):
    text = re.sub(r"curl/[0-9]+\.[0-9.]+[0-9](?:-DEV)?|curl [0-9]+\.[0-9.]+[0-9](?:-DEV)?", "curl/VERSION", text)
    # A curl may be built without its manual.
    text = text.replace(" or 'curl --manual'", "")
    # The progress meter tells times, and names of temporary files are random.
    text = re.sub(r"(?m)^ *[0-9]+ +[0-9.kMG]+ +[0-9]+ +[0-9.kMG]+ .*\n", "", text)
    text = re.sub(r"(/tmp/)[\w./-]+|(?<=pid )[0-9]+", "MASKED", text)
    return re.sub(mask, "MASKED", text) if mask else text


def read(path):
    with open(path, encoding="latin-1") as file:
        return file.read()


def shown(line):
    request = json.loads(line)
    body = request["body"]
    fields = dict((key.lower(), value) for key, value in request["fields"])
    boundary = re.search(r"boundary=(-*)([^;]+)", fields.get("content-type", ""))
    text = f"{request['url']} {request['method']} {request['target']} {request['version']}\n"
    text += "".join(f"{key}: {value}\n" for key, value in request["fields"]) + "\n" + body + "\n"
    if boundary:
        text = text.replace(boundary[2], "BOUNDARY")
        text = re.sub(r"boundary=-*", "boundary=", re.sub(r"-*BOUNDARY", "BOUNDARY", text))
        text = re.sub(r"(?m)^Content-Length: .*$", "Content-Length: OF-FORM", text, count=1)
    return masked(text)


def files(root):
    found = {}
    for directory, _, names in os.walk(root):
        for file in names:
            path = os.path.join(directory, file)
            short = masked(os.path.relpath(path, root))
            if skip_files and re.search(skip_files, short):
                continue
            if os.path.islink(path):
                found[short] = "-> " + os.readlink(path)
            elif os.path.isfile(path):
                found[short] = masked(read(path))
    return "".join(f"== {path}\n{content}\n" for path, content in sorted(found.items()))


def run(kind):
    requests = [shown(line) for line in read(f"{results}/{kind}/requests").splitlines()]
    calls = masked(read(f"{results}/{kind}/calls")).splitlines()
    if os.environ.get("UNORDERED"):
        requests, calls = sorted(requests), sorted(calls)
    return {
        "calls": "\n".join(calls), "requests": "\n".join(requests),
        "stdout": masked(read(f"{results}/{kind}/stdout")), "stderr": masked(read(f"{results}/{kind}/stderr")),
        "exit": read(f"{results}/{kind}/exit").strip(), "files": files(f"{results}/{kind}/files"),
    }, len(requests), len(calls)


expected = {}
for line in read(expected_path).splitlines():
    if line and not line.startswith("#"):
        program, part, reason = line.split(": ", 2)
        if program == name:
            expected[part] = reason
try:
    curl, requests, calls = run("curl")
    haul, _, _ = run("haul")
except FileNotFoundError as error:
    print(f"{name}: DIFFERS: did not run: {error.filename}; {results}/*/log")
    sys.exit()
different = [part for part in curl if curl[part] != haul[part]]
with open(f"{results}/differences", "w", encoding="latin-1") as file:
    for part in different:
        file.write(f"==== {part}\n")
        file.writelines(difflib.unified_diff(curl[part].splitlines(True), haul[part].splitlines(True), "curl", "haul"))
ran = f"{calls} calls, {requests} requests, exit {curl['exit']}"
if calls == 0:
    print(f"{name}: DIFFERS: the program called no curl ({ran})")
elif set(different) - set(expected):
    print(f"{name}: DIFFERS: {', '.join(different)} ({ran}); {results}/differences")
elif set(expected) - set(different):
    print(f"{name}: DIFFERS: {', '.join(set(expected) - set(different))} should differ, and does not ({ran})")
elif different:
    print(f"{name}: as expected: {'; '.join(f'{part}: {expected[part]}' for part in different)} ({ran})")
else:
    print(f"{name}: same ({ran})")
