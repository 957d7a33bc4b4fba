"""Runs a share of an area's mutants; scripts/mutants.sh says how to call it."""

import argparse
import collections
import datetime
import fnmatch
import hashlib
import json
import math
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import time
import tomllib

import switches

Area = collections.namedtuple("Area", "package directory files tests")

# The tests of each area: names of test binaries, with filters of libtest for those that are large.
ENGINE = "httphaul", "crates/engine"
# Modules of tests that cargo-mutants takes for code.
TEST_MODULES = ["**/x509_limbo.rs"]
# Optional parts of the engine. Without them, their mutants would be in code that is not compiled.
FEATURES = {"httphaul": ["http3", "negotiate", "old-keys", "select"]}
AREAS = {
    "proto": Area("httphaul-proto", "crates/proto", ["crates/proto/src/**"], None),
    "policy": Area("httphaul-policy", "crates/policy", ["crates/policy/src/**"], None),
    "tls": Area(*ENGINE, ["crates/engine/src/net/tls/**"], {
        "lib": ["tls::"], "suite": ["tls_", "encrypted_client_hello::", "h3_bodies::", "h3_choice::", "h3_connection_failures::"],
    }),
    "split": Area(*ENGINE, ["crates/engine/src/split/**"],
                  {"lib": ["split::"], "suite": ["split_download::", "resume::", "partial_files::", "body_transfers_under_random_faults::"]}),
    "window": Area(*ENGINE, ["crates/engine/src/fleet/ordered_window/**", "crates/engine/src/fleet/ordered_window_sink.rs"],
                   {"lib": ["fleet::"], "suite": ["fleet_"]}),
    "transfer": Area(*ENGINE, ["crates/engine/src/transfer/**"], {
        "lib": ["transfer::"],
        "suite": ["api_", "body_", "streamed_uploads::", "content_decoding::", "curl_compat::", "exchange_records::", "failures::",
                  "sendfile_uploads::", "h1_", "h2_bodies::", "time_rate_and_size_limits::", "partial_files::", "proxy_", "redirects::",
                  "request_", "resume::", "retries::", "secrets_", "session_model::", "alt_svc::", "split_download::"],
        "cookies_hsts_alt_svc": [],
    }),
}
# All four parts of the engine in one build.
AREAS["engine"] = Area(*ENGINE, [pattern for name in ("tls", "split", "window", "transfer") for pattern in AREAS[name].files],
                       {"lib": [], "suite": [], "cookies_hsts_alt_svc": []})
# Errors that a mutant's own text causes, whether it is a switch or not: a type that does not fit, or has no such
# operator, trait or function.
OWN_ERRORS = {"E0277", "E0308", "E0369", "E0368", "E0599", "E0600", "E0432", "E0433", "E0425", "E0423", "E0061", "E0107",
              "cannot find macro"}
# Seconds of processor time, and the address space, of one run of tests.
PROCESSOR, MEMORY = 60, 24 << 30


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("area", choices=AREAS)
    arguments.add_argument("seed", type=int)
    arguments.add_argument("share", help="a fraction, 1/50")
    arguments.add_argument("--root", type=pathlib.Path, required=True)
    arguments.add_argument("--work", type=pathlib.Path, required=True)
    arguments.add_argument("--mutants", default="cargo-mutants", help="the program cargo-mutants")
    arguments.add_argument("--again", action="store_true", help="run only the missed mutants, once more")
    arguments.add_argument("--minutes", type=float, default=math.inf, help="stop after so long; the next call goes on")
    arguments.add_argument("--phase", choices=["build", "test", "alone"], help="only this part of the run")
    arguments.add_argument("--pause", help="wait while this file exists")
    Run(arguments.parse_args()).all()


class Run:
    def __init__(self, options):
        self.options = options
        self.area = AREAS[options.area]
        self.work = options.work / options.area
        self.tree = self.work / "tree"
        self.work.mkdir(parents=True, exist_ok=True)
        self.ends = time.monotonic() + options.minutes * 60
        self.cargo = os.environ.get("CARGO", "cargo")
        self.results = self.work / "results.jsonl"
        self.sources = {}
        text = pathlib.Path(__file__).with_name("equivalent.toml").read_text()
        self.equivalents = tomllib.loads(text)["equivalent"]
        self.listed, self.mutants = self.choose()

    def choose(self):
        """All mutants of the area, and the share that the seed chooses, numbered from one."""
        command = [self.options.mutants, "mutants", "--list", "--json", "--no-config", "-p", self.area.package]
        for pattern in self.area.files:
            command += ["-f", pattern]
        for pattern in TEST_MODULES:
            command += ["-e", pattern]
        listed = json.loads(subprocess.run(command, cwd=self.options.root, stdout=subprocess.PIPE, check=True).stdout)
        for known in self.equivalents:
            is_of_area = any(fnmatch.fnmatch(known["file"], pattern) for pattern in self.area.files)
            if is_of_area and not any(self.is_known(known, m) for m in listed):
                print(f"equivalent.toml: no mutant of {known['file']} is {known['mutant']}", flush=True)
        listed.sort(key=lambda m: (m["file"], m["span"]["start"]["line"], m["span"]["start"]["column"], m["replacement"]))
        part, whole = map(int, self.options.share.split("/"))
        random.Random(self.options.seed).shuffle(listed)
        chosen = listed[: max(1, math.ceil(len(listed) * part / whole))]
        return listed, dict(enumerate(chosen, 1))

    def all(self):
        self.copy()
        done = self.done()
        todo = {n: m for n, m in self.mutants.items() if self.key(m) not in done and not self.is_equivalent(m)}
        if self.options.again:
            todo = {n: m for n, m in todo.items() if self.key(m) in self.missed}
        print(f"{self.options.area}: {len(self.listed)} mutants, share {len(self.mutants)}, to do {len(todo)}", flush=True)
        phase = self.options.phase
        built = self.work / "built.json"
        if todo and phase in (None, "build"):
            alone, binaries = self.switched(todo)
            built.write_text(json.dumps([sorted(alone), binaries]))
            done = self.done()
            todo = {n: m for n, m in todo.items() if self.key(m) not in done}
        if not todo or phase == "build":
            return self.report()
        alone, binaries = json.loads(built.read_text())
        if phase in (None, "test"):
            self.test({n: m for n, m in todo.items() if n not in alone}, binaries)
        if phase in (None, "alone"):
            self.one_by_one([n for n in alone if n in todo])
        self.report()

    def copy(self):
        """Copies the checkout, so that the mutants never touch it."""
        files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                               cwd=self.options.root, stdout=subprocess.PIPE, check=True).stdout
        for name in filter(None, files.decode().split("\0")):
            source, copy = self.options.root / name, self.tree / name
            if not source.is_file() or (copy.is_file() and copy.read_bytes() == source.read_bytes()):
                continue
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)

    def source(self, mutant):
        name = mutant["file"]
        if name not in self.sources:
            self.sources[name] = (self.options.root / name).read_bytes()
        return self.sources[name]

    def is_equivalent(self, mutant):
        """True for a mutant that equivalent.toml lists: nothing observable changes."""
        return any(self.is_known(known, mutant) for known in self.equivalents)

    def is_known(self, known, mutant):
        """True if this entry of equivalent.toml means this mutant."""
        if mutant["file"] != known["file"] or not re.fullmatch(known["mutant"], mutant["name"].partition(": ")[2]):
            return False
        line = self.source(mutant).decode().split("\n")[mutant["span"]["start"]["line"] - 1]
        return known.get("code", "") in line

    def key(self, mutant):
        """Identifies a mutant as long as its file does not change, except for its tests at the end."""
        code = self.source(mutant).partition(b"\n#[cfg(test)]\nmod tests")[0]
        digest = hashlib.sha256(code).hexdigest()[:16]
        start = mutant["span"]["start"]
        return f"{digest} {mutant['file']}:{start['line']}:{start['column']} {mutant['genre']} {mutant['replacement']}"

    def done(self):
        """The outcomes of earlier runs by key."""
        done = {}
        if self.results.exists():
            for line in self.results.read_text().splitlines():
                result = json.loads(line)
                done[result["key"]] = result
        if self.options.again:
            self.missed = {k for k, r in done.items() if r["outcome"] == "missed"}
            done = {k: r for k, r in done.items() if k not in self.missed}
        return done

    def record(self, mutant, outcome, why=""):
        with self.results.open("a") as file:
            file.write(json.dumps({"key": self.key(mutant), "outcome": outcome, "why": why, "name": mutant["name"]}) + "\n")
        if outcome == "missed":
            print(f"missed: {mutant['name']} {why}", flush=True)

    def pause(self):
        while self.options.pause and os.path.exists(self.options.pause):
            time.sleep(1)
        if time.monotonic() > self.ends:
            self.report()
            print("stopped: the time is over; the next call goes on")
            sys.exit(0)

    # One build with a switch for each mutant.

    def switched(self, todo):
        """Compiles the switches; returns the numbers of the mutants without one, and the test binaries."""
        by_file = collections.defaultdict(list)
        for number, mutant in todo.items():
            by_file[mutant["file"]].append((number, mutant))
        files = {name: switches.File(self.source(mutants[0][1]), mutants) for name, mutants in by_file.items()}
        alone = {number for file in files.values() for number in file.alone}
        unviable = set()
        for _ in range(20):
            ranges = {}
            for name, file in files.items():
                output, ranges[name] = file.switched(without=alone)
                (self.tree / name).write_bytes(output)
            root = self.tree / self.area.directory / "src/lib.rs"
            if str(root.relative_to(self.tree)) not in files:
                shutil.copy(self.options.root / root.relative_to(self.tree), root)
            count = str(max(self.mutants) + 1)
            root.write_bytes(switches.LINTS + root.read_bytes() + switches.MODULE.replace("COUNT", count).encode())
            name = root.relative_to(self.tree).as_posix()
            shift = len(switches.LINTS)
            ranges[name] = [(a + shift, b + shift, number) for a, b, number in ranges.get(name, ())]
            refused = self.refused(ranges)
            print(f"the compiler refuses {len(refused)} switches", flush=True)
            if not refused:
                break
            alone |= set(refused)
            for number, codes in refused.items():
                mutant = todo[number]
                if codes <= OWN_ERRORS and "impl " not in (mutant["function"] or {}).get("return_type", ""):
                    self.record(mutant, "unviable", " ".join(sorted(codes)))
                    unviable.add(number)
        else:
            sys.exit("mutants: the switched crate does not compile")
        binaries = self.build()
        if binaries is None:
            sys.exit(f"mutants: the tests of the switched crate do not compile: {self.last_error}")
        for name in files:
            (self.tree / name).write_bytes(self.sources[name])
        shutil.copy(self.options.root / root.relative_to(self.tree), root)
        return alone - unviable, binaries

    def test(self, mutants, binaries):
        reached = self.reached(binaries)
        for number, mutant in mutants.items():
            self.pause()
            self.record(mutant, *self.outcome(number, reached.get(number, {})))

    def refused(self, ranges):
        """The switches that the compiler refuses, with the codes of its errors."""
        refused = {}
        unknown = []
        for message in self.messages(["check", "--lib"])[1]:
            if message["level"] != "error" or not message["spans"]:
                continue
            found = set()
            for span in message["spans"]:
                if span["is_primary"]:
                    found |= self.switch_at(ranges, span)
            for number in found:
                code = (message["code"] or {}).get("code") or " ".join(message["message"].split()[:3])
                refused.setdefault(number, set()).add(code)
            if not found:
                unknown.append(message["rendered"])
        if unknown and not refused:
            sys.exit("mutants: " + unknown[0])
        return refused

    def switch_at(self, ranges, span):
        name, start, end = span["file_name"], span["byte_start"], span["byte_end"]
        inside = [(b - a, number) for a, b, number in ranges.get(name, ()) if a <= start and end <= b]
        if inside:
            least = min(inside)[0]
            return {number for length, number in inside if length == least}
        # A match without an arm is an error of the whole match.
        if name not in ranges:
            return set()
        node = switches.PARSER.parse((self.tree / name).read_bytes()).root_node.descendant_for_byte_range(start, end)
        while node and node.type not in ("match_expression", "function_item"):
            node = node.parent
        if node is None:
            return set()
        found = {number for a, b, number in ranges[name] if node.start_byte <= a and b <= node.end_byte}
        return {number for number in found if self.mutants[number]["genre"] == "MatchArm"} or found

    def messages(self, command):
        """The exit code of cargo, the compiler's messages about the area's package, and the test binaries."""
        self.pause()
        features = ["--features", ",".join(FEATURES.get(self.area.package, []))]
        process = subprocess.run([self.cargo, *command, "-p", self.area.package, *features, "--message-format=json"],
                                 cwd=self.tree, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        messages, binaries = [], {}
        for line in process.stdout.splitlines():
            entry = json.loads(line)
            if entry["reason"] == "compiler-message":
                messages.append(entry["message"])
            elif entry["reason"] == "compiler-artifact" and entry.get("executable") and entry["profile"]["test"]:
                kind = entry["target"]["kind"]
                binaries["lib" if "lib" in kind else entry["target"]["name"]] = entry["executable"]
        if process.returncode and not messages:
            sys.exit(process.stderr.decode())
        return process.returncode, messages, binaries

    def build(self):
        which = []
        if self.area.tests:
            for name in self.area.tests:
                which += ["--lib"] if name == "lib" else ["--test", name]
        else:
            which = ["--lib", "--tests"]
        code, messages, binaries = self.messages(["test", "--no-run", *which])
        if code:
            self.last_error = next((m["rendered"] for m in messages if m["level"] == "error"), "")
        return None if code else {name: self.keep(binary) for name, binary in binaries.items()}

    def keep(self, binary):
        """Copies a test binary, because a build of the checkout itself may have the same name."""
        kept = self.work / "binaries" / pathlib.Path(binary).name
        kept.parent.mkdir(exist_ok=True)
        shutil.copy(binary, kept)
        return str(kept)

    # Which tests evaluate which switch.

    def reached(self, binaries):
        """Runs each test once; for each switch, the tests that evaluate it, with the seconds that each takes."""
        reached = collections.defaultdict(dict)
        kept = self.work / "reached.json"
        if kept.exists() and kept.stat().st_mtime > (self.work / "built.json").stat().st_mtime:
            for number, binary, test, seconds in json.loads(kept.read_text()):
                reached[number][binary, test] = seconds
            return reached
        trace = self.work / "reached"
        failed = []
        for name, binary in binaries.items():
            for test in self.list_tests(name, binary):
                self.pause()
                trace.unlink(missing_ok=True)
                begin = time.monotonic()
                code = self.run(binary, [test], {"HAUL_MUTANT_REACHED": str(trace)}, 300)
                seconds = time.monotonic() - begin
                if code != 0:
                    failed.append(test)
                    continue
                if trace.exists():
                    for number in set(trace.read_text().split()):
                        reached[int(number)][binary, test] = seconds
        for test in failed:
            print(f"left out, for it fails without a mutant: {test}", flush=True)
        kept.write_text(json.dumps([[n, b, t, s] for n, tests in reached.items() for (b, t), s in tests.items()]))
        return reached

    def list_tests(self, name, binary):
        filters = (self.area.tests or {}).get(name, [])
        output = subprocess.run([binary, "--list", "--format", "terse", *filters], cwd=self.tree / self.area.directory,
                                stdout=subprocess.PIPE, check=True).stdout.decode()
        return [line[: -len(": test")] for line in output.splitlines() if line.endswith(": test")]

    def run(self, binary, tests, environment, seconds):
        """The exit code of tests; None if they took too long."""

        def limits():
            resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR, PROCESSOR + 5))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        process = subprocess.Popen([binary, "--exact", *tests], cwd=self.tree / self.area.directory,
                                   env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True, preexec_fn=limits)
        # A busy machine must not look like a mutant that hangs: a run ends by its processor time, or if it uses none.
        used, idle_since, begin = 0.0, time.monotonic(), time.monotonic()
        try:
            while True:
                try:
                    code = process.wait(1)
                    return None if code == -24 else code
                except subprocess.TimeoutExpired:
                    now, before, used = time.monotonic(), used, processor_time(process.pid)
                    if used > before:
                        idle_since = now
                    if used > seconds or now - begin > seconds and now - idle_since > 20:
                        return None
        finally:
            try:
                os.killpg(process.pid, 9)
            except ProcessLookupError:
                pass
            process.wait()

    def outcome(self, number, tests):
        """Runs the quickest tests first, few at a time, until one of them fails."""
        if not tests:
            return "missed", "(no test reaches it)"
        order = sorted(tests, key=tests.get)
        size, slow = 4, ""
        while order:
            binary = order[0][0]
            batch = [(b, t) for b, t in order if b == binary][:size]
            order = [entry for entry in order if entry not in set(batch)]
            expected = sum(tests[entry] for entry in batch)
            code = self.run(binary, [t for _, t in batch], {"HAUL_MUTANT": str(number)}, 10 + 10 * expected)
            if code is None:
                return "timeout", batch[0][1]
            if code:
                return "caught", batch[0][1]
            size *= 2
        return "missed", f"({len(tests)} tests reach it)"

    # The rest: each is compiled by itself.

    def one_by_one(self, numbers):
        for number in numbers:
            mutant = self.mutants[number]
            file = self.tree / mutant["file"]
            file.write_bytes(switches.replaced(self.source(mutant), mutant))
            try:
                if self.messages(["check", "--lib"])[0]:
                    self.record(mutant, "unviable")
                    continue
                binaries = self.build()
                if binaries is None:
                    self.record(mutant, "caught", "compile time")
                    continue
                self.record(mutant, *self.whole(binaries))
            finally:
                file.write_bytes(self.source(mutant))

    def whole(self, binaries):
        for name, binary in binaries.items():
            tests = self.list_tests(name, binary)
            if tests:
                code = self.run(binary, tests, {}, 600)
                if code is None:
                    return "timeout", name
                if code:
                    return "caught", name
        return "missed", "(all tests)"

    def report(self):
        """Writes this share's figures to docs/design/scores.json."""
        self.options.again = False
        done = self.done()
        counts = collections.Counter()
        for mutant in self.mutants.values():
            outcome = "equivalent" if self.is_equivalent(mutant) else done.get(self.key(mutant), {}).get("outcome", "not_run")
            counts[outcome] += 1
        tried = counts["caught"] + counts["timeout"] + counts["missed"]
        path = self.options.root / "docs/design/scores.json"
        scores = json.loads(path.read_text()) if path.exists() else []
        entry = {
            "area": self.options.area,
            "crate": self.area.package,
            "mutants": len(self.listed),
            "share": len(self.mutants),
            "caught": counts["caught"],
            "timed_out": counts["timeout"],
            "unviable": counts["unviable"],
            "equivalent": counts["equivalent"],
            "missed": counts["missed"],
            "not_run": counts["not_run"],
            "percent": round(100 * (counts["caught"] + counts["timeout"]) / tried, 1) if tried else None,
            "date": datetime.date.today().isoformat(),
            "command": f"make mutants AREA={self.options.area} SEED={self.options.seed} SHARE={self.options.share}",
        }
        scores = [s for s in scores if s["command"] != entry["command"]] + [entry]
        scores.sort(key=lambda s: s["command"])
        path.write_text("[\n" + ",\n".join("  " + json.dumps(s) for s in scores) + "\n]\n")
        print(json.dumps(entry))


def processor_time(pid):
    """The seconds of processor time that a process has used."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.setrecursionlimit(100_000)
    main()
