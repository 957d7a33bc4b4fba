"""Runs generated command lines with curl and with haul in its place, and compares them: scripts/curl-differential.sh.

`run.py CURL HAUL EXPECTED COMPAT WORK SEED COUNT [NUMBER]`. With NUMBER, runs that case alone and prints what both did.
"""

import difflib
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from generate import Generator, options_of  # noqa: E402
from origin import MODIFIED, Origin  # noqa: E402

curl, haul, expected_path, compat_path, work = sys.argv[1:6]
seed, count = int(sys.argv[6]), int(sys.argv[7])
only = int(sys.argv[8]) if len(sys.argv) > 8 else None
# `words` are warnings and messages of usage errors, which no script is known to search.
PARTS = ("exit", "requests", "stdout", "files", "stderr", "words")
# The exit codes whose message scripts search for; of others only the code is compared.
SEARCHED = {"3", "6", "7", "18", "22", "28", "33", "47", "52", "63"}
FILES = {
    "body.txt": "the body\nof two lines\n", "fields.txt": "X-File: yes\n# none\nX-Second: 2\n", "etag.txt": '"one"\n', "existing.txt": "it was here\n",
    "netrc.txt": "machine 127.0.0.1 login me password secret\n", ".netrc": "machine 127.0.0.1 login home password secret\ndefault login d password d\n",
    "cookies.txt": "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tfrom\tfile\n#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t2145916800\tonly\thttp\n",
    "urls.txt": "$U/hello\n# none\n$U/long\n", "made/keep": "",
}


def put(word, origin, directory):
    port, tls_port = str(origin.port), str(origin.tls_port)
    for name, value in (("$CA", f"{work}/ca.pem"), ("$U", f"http://127.0.0.1:{port}"), ("$S", f"https://127.0.0.1:{tls_port}"), ("$P", port),
                        ("$T", tls_port), ("$X", f"{directory}.sock"), ("$D", directory), ("=PORT", f"={port}"), (":PORT", f":{port}")):
        word = word.replace(name, value)
    return word


def plain(text, origin, directory):
    """Returns the text without what differs in each run."""
    text = text.replace(directory, "$D").replace(str(origin.tls_port), "TLSPORT").replace(str(origin.port), "PORT").replace(work, "WORK")
    text = re.sub(r"curl/\d+\.\d+\.\d+(-DEV)?", "curl/VERSION", text)
    # Builds of curl have other decoders.
    text = re.sub(r"(Accept-Encoding: deflate, gzip)(, br)?(, zstd)?", r"\1", text)
    text = re.sub(r"(cnonce|response)=\"[0-9a-f=A-Za-z+/]*\"", r"\1=CHANCE", text)
    text = re.sub(r"(Signature=)[0-9a-f]+", r"\1CHANCE", text)
    text = re.sub(r"after \d+ ms", "after N ms", text)
    text = re.sub(r"after \d+ milliseconds", "after N milliseconds", text)
    text = re.sub(r"(PROXY TCP4 \S+ \S+) \d+", r"\1 CLIENT", text)
    text = re.sub(r"\d{8}T\d{6}Z|(?<=/)20\d{6}(?=/)", "TIME", text)
    for boundary in set(re.findall(r"boundary=(-*[0-9A-Za-z]+)", text)):
        text = text.replace(boundary, "BOUNDARY")
        text = re.sub(r"Content-Length: \d+(?=\r\n(?:[^\r]+\r\n)*Content-Type: multipart)", "Content-Length: OF-FORM", text)
    return text


def messages(text):
    """Returns the lines of stderr that are compared: messages of transfers and heads of -v; and warnings and usage errors."""
    stderr, words = [], []
    for line in text.replace("\r", "\n").splitlines():
        # The progress meter may stand before a message.
        if not line.startswith(("> ", "< ")):
            line = re.sub(r"^.*?(?=curl: \(\d+\) )", "", line)
        message = re.match(r"curl: \((\d+)\) ", line)
        if message and message[1] != "2":
            stderr.append(line if message[1] in SEARCHED else message[0])
        elif line.startswith(("> ", "< ")):
            stderr.append(line)
        elif line.startswith(("curl: ", "Warning: ")):
            words.append(line)
    return stderr, words


def run(program, words, origin, directory):
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(f"{directory}/made")
    files = dict(FILES)
    if "CONFIG" in words:
        files["config.txt"] = words[-1]
        words = words[:-2]
    for name, content in files.items():
        with open(f"{directory}/{name}", "w", encoding="utf-8") as file:
            file.write(put(content, origin, directory))
        os.utime(f"{directory}/{name}", (1445412480, 1445412480))
    origin.take()
    environment = {"PATH": os.environ["PATH"], "HOME": directory, "LANG": "C.UTF-8", "TZ": "UTC"}
    try:
        done = subprocess.run([program, *(put(word, origin, directory) for word in words)], cwd=directory, env=environment, input=b"from stdin\n",
                              capture_output=True, timeout=40, check=False)
        code, stdout, captured = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as error:
        code, stdout, captured = "timeout", error.stdout or b"", error.stderr or b""
    parallel = any(word in ("-Z", "--parallel", "parallel") or re.match(r"-[a-zA-Z]*Z", word) for word in words) or "config.txt" in files
    requests = [f"[{number}] {text.decode('latin-1')}" for number, text in origin.take()]
    if parallel:
        stdout = b"".join(sorted(stdout.splitlines(True)))
        requests = sorted(re.sub(r"^\[\d+\] ", "", text) for text in requests)
    found = {}
    for place, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(place, name)
            with open(path, encoding="latin-1", newline="") as file:
                content = file.read()
            stat = os.stat(path)
            # The first lines of files that curl writes name its version.
            content = "".join(line for line in content.splitlines(True) if not line.startswith("# "))
            if name == "err.txt":
                content = "\n".join(messages(content)[0])
            date = " of 2015" if stat.st_mtime == 1445412480 else ""
            found[os.path.relpath(path, directory)] = f"{oct(stat.st_mode & 0o777)}{date}\n{content}"
    stderr, words = messages(captured.decode("utf-8", "replace"))
    same = lambda text: plain(text, origin, directory)
    return {
        "exit": str(code), "requests": same("\n".join(requests)), "stdout": same(stdout.decode("latin-1")),
        "files": same("".join(f"== {name} {content}\n" for name, content in sorted(found.items()))),
        "stderr": same("\n".join(stderr)), "words": same("\n".join(words).replace(" or 'curl --manual'", "")),
    }


def read_rules():
    """Returns the rules of the file `expected`: parts, a pattern of the command line, a pattern of what both did, the reason."""
    rules = []
    with open(expected_path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                parts, words, what, reason = (piece.strip() for piece in line.rstrip("\n").split(" | ", 3))
                rules.append((set(parts.split(",")), re.compile(words, re.S), re.compile(what, re.S | re.M), reason))
    return rules


def refused_options():
    """Returns the options of curl that haul refuses, each with its reason, from docs/curl-compat.md."""
    with open(compat_path, encoding="utf-8") as file:
        rows = re.findall(r"(?m)^\| (?:`-(\S)` )?`--([\w.-]+)` \| refused: (.*) \|$", file.read())
    return {name: (letter, reason) for letter, name, reason in rows}


def uses(words, letter, name):
    text = words[-1] if "CONFIG" in words else ""
    return f"--{name}" in words or re.search(rf"(?m)^(--)?{re.escape(name)}( |$)", text) or (letter and any(re.match(rf"-{letter}", word) for word in words + text.split("\n")))


def reason_for(part, words, theirs, ours):
    if ours["exit"] == "2":
        for name, (letter, reason) in refused.items():
            if uses(words, letter, name):
                return f"--{name} is refused: {reason}"
    line = " ".join(words)
    what = f"{theirs['exit']} {ours['exit']}\n--- curl\n{theirs[part]}\n--- haul\n{ours[part]}\n"
    if part == "words":
        used["other words in a warning or in the message of a usage error"] += 1
        return "words"
    if part == "requests" and re.sub(r"(?m)^\[\d+\] ", "", theirs[part]) == re.sub(r"(?m)^\[\d+\] ", "", ours[part]):
        used["a connection is used again where the other opens one; the requests are the same"] += 1
        return "connection"
    for parts, of_line, of_what, reason in rules:
        if part in parts and of_line.search(line) and of_what.search(what):
            used[reason] += 1
            return reason
    return None


def worker(number):
    directory = f"{work}/run-{number}"
    origin = Origin(f"{work}/server.pem", f"{directory}.sock")
    while True:
        try:
            index, words = cases.get_nowait()
        except queue.Empty:
            return
        theirs, ours = (run(program, words, origin, directory) for program in (curl, haul))
        if only is not None:
            for name, did in (("curl", theirs), ("haul", ours)):
                print(f"==== {name}\n" + "\n".join(f"-- {part}\n{did[part]}" for part in PARTS))
        with lock:
            different = [part for part in PARTS if theirs[part] != ours[part]]
            reasons = {part: reason_for(part, words, theirs, ours) for part in different}
            results[index] = (words, theirs, ours, reasons)


lock = threading.Lock()
used, results, cases = Counter(), {}, queue.Queue()
rules, refused = read_rules(), refused_options()
of_curl, of_haul = options_of(curl), options_of(haul)
unknown = sorted(name for name in of_curl if name not in of_haul and f"no-{name}" not in of_haul and name not in refused)
known = {name: of_curl[name] for name in of_curl}
generator = Generator(random.Random(seed), known)
for index in range(count):
    words = generator.case(index)
    if only in (None, index):
        cases.put((index, words))
        if only is not None:
            print(words)
workers = [threading.Thread(target=worker, args=(number,)) for number in range(1 if only is not None else 3)]
for thread in workers:
    thread.start()
for thread in workers:
    thread.join()

same = differ = bad = worded = 0
with open(f"{work}/differences", "w", encoding="utf-8") as file:
    for index, (words, theirs, ours, reasons) in sorted(results.items()):
        if not reasons:
            same += 1
            continue
        unexplained = [part for part, reason in reasons.items() if reason is None]
        if unexplained:
            bad += 1
            file.write(f"==== {index}: {words}\n")
            for part in unexplained:
                lines = difflib.unified_diff(theirs[part].splitlines(), ours[part].splitlines(), "curl", "haul", n=2, lineterm="")
                file.write(f"-- {part}\n" + "\n".join(list(lines)[2:40]) + "\n")
            file.write(f"-- messages of curl\n{theirs['stderr']}\n{theirs['words']}\n-- messages of haul\n{ours['stderr']}\n{ours['words']}\n")
        elif set(reasons) == {"words"}:
            worded += 1
        else:
            differ += 1
for reason, times in used.most_common():
    print(f"{times:5} {reason}")
unused = {reason for _, _, _, reason in rules} - set(used)
if unused and only is None:
    print("reasons without a case (with another seed there may be one):" + "".join(f"\n      {reason}" for reason in sorted(unused)))
if unknown:
    print(f"options of curl that haul's help does not name: {' '.join(unknown)}")
print(f"seed {seed}: {len(results)} command lines: {same} the same, {worded} but for words of warnings and usage errors, {differ} differ for a reason in scripts/curl-differential/expected "
      f"or because an option is refused, {bad} differ otherwise ({work}/differences)")
sys.exit(1 if bad or (only is None and len(results) != count) else 0)
