"""Mixed load for MINUTES, and samples of the memory, descriptors and threads of the processes that carry it.

Run by scripts/soak.sh. Four processes live as long as the run: a fleet that reads URLs from a pipe, a fleet over
HTTP/3, the agent, and a Python program. A share of the URLs leads to faults: resets, early ends, stalls, 503. The run
fails if one of the processes ends, if a healthy answer is wrong, or if the last third of the samples exceeds the
second third.
"""

import argparse
import collections
import datetime
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

# By how much the last third of a run may exceed the second: bytes of resident memory, descriptors, threads.
MARGIN = {"rss": 6 << 20, "descriptors": 16, "threads": 4}
FAULTS = ["reset-at=3000x1", "close-at=5000", "unavailable=1", "stall-at=2000x1&stall-ms=300", "gzip", "chunked",
          "rst-at=2500x1", "goaway-at=4000x1", "short=7"]

PYTHON = """
import asyncio, hashlib, random, sys, haul
plain, tls, faulty, faulty_tls, seed = sys.argv[1:]
draw = random.Random(int(seed))
session, count, wrong = haul.Session(), 0, 0
known = {}
def check(url, content):
    global wrong
    if known.setdefault(url, hashlib.sha256(content).digest()) != hashlib.sha256(content).digest():
        wrong += 1
async def several():
    async with haul.AsyncSession(max_parallel=6) as asynchronous:
        urls = [f"{draw.choice([plain, tls])}/small/{draw.randrange(50)}" for _ in range(12)]
        for url, response in zip(urls, await asyncio.gather(*(asynchronous.get(url, timeout=60) for url in urls))):
            check(url, response.content)
    return len(urls)
while True:
    for _ in range(20):
        url = f"{draw.choice([plain, tls])}/small/{draw.randrange(50)}"
        check(url, session.get(url, timeout=60).content)
    count += 20
    urls = [f"{draw.choice([plain, tls])}/small/{draw.randrange(50)}" for _ in range(12)]
    for result in haul.fetch_many(urls, 6):
        check(result.url, result.content)
    count += 12 + asyncio.run(several())
    try:
        session.get(f"{draw.choice([faulty, faulty_tls])}/f/p{draw.randrange(10**9)}?size=20000&{draw.choice(FAULTS)}", timeout=20).content
    except haul.exceptions.RequestException:
        pass
    print(count, wrong, flush=True)
"""


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--haul", required=True)
    arguments.add_argument("--servers", required=True, help="the directory of the programs origin and faulty")
    arguments.add_argument("--python", help="a Python with the module haul")
    arguments.add_argument("--minutes", type=float, default=10)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--result", type=pathlib.Path)
    with tempfile.TemporaryDirectory() as directory:
        sys.exit(Soak(arguments.parse_args(), pathlib.Path(directory)).run())


class Soak:
    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.draw = random.Random(options.seed)
        self.processes, self.watched = [], {}
        self.samples = collections.defaultdict(list)
        self.counts = collections.Counter()
        self.problems = []
        self.over = threading.Event()

    def start(self, *command, **more):
        process = subprocess.Popen(command, cwd=self.directory, **more)
        self.processes.append(process)
        return process

    def server(self, name, *options):
        """Starts a server of the tests; returns its plain and its TLS URL."""
        process = self.start(f"{self.options.servers}/{name}", "--ca", f"{name}.pem", "--http2", "--http3", "--until-eof",
                             *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        _, http, https = process.stdout.readline().split()
        return "http://" + http.split("=")[1], "https://" + https.split("=")[1]

    def run(self):
        try:
            self.plain, self.tls = self.server("origin", "--pages", "50", "--cache")
            self.faulty, self.faulty_tls = self.server("faulty")
            pem = [(self.directory / f"{name}.pem").read_text() for name in ("origin", "faulty")]
            (self.directory / "ca.pem").write_text("".join(pem))
            workers = [self.fleet("fleet"), self.fleet("fleet-h3", "--http3"), self.agent(), self.python()]
            for worker in filter(None, workers):
                worker.start()
            self.watch()
            self.over.set()
        finally:
            self.over.set()
            subprocess.run([self.options.haul, f"--agent={self.directory}/a/agent", "--agent-stop"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for process in self.processes:
                if process.poll() is None:
                    process.terminate()
                    process.wait()
        return self.report()

    def url(self, fault_share=0.2):
        if self.draw.random() < fault_share:
            server, fault = self.draw.choice([self.faulty, self.faulty_tls]), self.draw.choice(FAULTS)
            return f"{server}/f/n{self.draw.randrange(10**9)}?size={self.draw.choice([4000, 20000, 300000])}&{fault}"
        return f"{self.draw.choice([self.plain, self.tls])}/small/{self.draw.randrange(50)}"

    # The processes that carry the load.

    def fleet(self, name, *options):
        process = self.start(self.options.haul, "--cacert", "ca.pem", "-s", "--retry", "2", "--retry-delay", "0",
                             "--max-time", "60", "--parallel-max", "12", *options, "--input-file", "-",
                             "-w", "%{http_code} %{http_version}\n", "-o", "/dev/null",
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.watched[name] = process.pid

        def feed():
            while not self.over.is_set():
                try:
                    print(self.url(), file=process.stdin, flush=True)
                except BrokenPipeError:
                    return
                self.counts[name] += 1
                time.sleep(0.01)

        def read():
            for line in process.stdout:
                self.counts[f"{name}: {line.strip()}"] += 1

        threading.Thread(target=read, daemon=True).start()
        return threading.Thread(target=feed, daemon=True)

    def agent(self):
        (self.directory / "a").mkdir(mode=0o700)
        base = [self.options.haul, f"--agent={self.directory}/a/agent", "--agent-idle", "600", "--cacert", "ca.pem", "-s"]

        def call():
            known = {}
            while not self.over.is_set():
                url = self.url(0.1)
                done = subprocess.run([*base, "--max-time", "60", url], cwd=self.directory, stdout=subprocess.PIPE)
                self.counts["agent"] += 1
                if "/small/" in url:
                    digest = hashlib.sha256(done.stdout).digest()
                    if done.returncode or known.setdefault(url, digest) != digest:
                        self.problems.append(f"agent: {url} ended with {done.returncode}")
                if "agent" not in self.watched:
                    status = subprocess.run([*base, "--agent-status"], cwd=self.directory, stdout=subprocess.PIPE, text=True)
                    lines = dict(line.split(": ") for line in status.stdout.splitlines())
                    if "pid" in lines:
                        self.watched["agent"] = int(lines["pid"])

        return threading.Thread(target=call, daemon=True)

    def python(self):
        if not self.options.python:
            return None
        program = PYTHON.replace("FAULTS", repr(FAULTS))
        process = self.start(self.options.python, "-c", program, self.plain, self.tls, self.faulty, self.faulty_tls,
                             str(self.options.seed), stdout=subprocess.PIPE, text=True,
                             env=os.environ | {"REQUESTS_CA_BUNDLE": "ca.pem"})
        self.watched["python"] = process.pid

        def read():
            for line in process.stdout:
                self.counts["python"], wrong = map(int, line.split())
                if wrong:
                    self.problems.append(f"python: {wrong} wrong contents")

        return threading.Thread(target=read, daemon=True)

    # The samples.

    def watch(self):
        ends = time.monotonic() + self.options.minutes * 60
        while time.monotonic() < ends:
            time.sleep(2)
            for name, pid in list(self.watched.items()):
                try:
                    status = pathlib.Path(f"/proc/{pid}/status").read_text()
                    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
                    fields = dict(line.split(":", 1) for line in status.splitlines())
                    self.samples[name].append({
                        "rss": int(fields["VmRSS"].split()[0]) << 10,
                        "descriptors": descriptors,
                        "threads": int(fields["Threads"]),
                    })
                except (OSError, KeyError):
                    self.problems.append(f"{name} ended")
                    return

    def report(self):
        rows = {}
        for name, samples in self.samples.items():
            third = len(samples) // 3
            if third < 5:
                self.problems.append(f"{name}: only {len(samples)} samples")
                continue
            second, last = samples[third : 2 * third], samples[2 * third :]
            rows[name] = {}
            for what, margin in MARGIN.items():
                before, after = (max(sample[what] for sample in part) for part in (second, last))
                rows[name][what] = [before, after]
                if after > before + margin:
                    self.problems.append(f"{name}: {what} grew from {before} to {after}")
        missing = {"fleet", "fleet-h3", "agent"} - set(rows)
        self.problems += [f"{name} was not seen" for name in sorted(missing)]
        result = {
            "date": datetime.date.today().isoformat(),
            "command": f"make soak MINUTES={self.options.minutes:g} SEED={self.options.seed}",
            "counts": dict(sorted(self.counts.items())),
            "second and last third": rows,
            "problems": self.problems[:20],
        }
        text = json.dumps(result, indent=2)
        print(text)
        if self.options.result:
            self.options.result.write_text(text + "\n")
        return bool(self.problems)


if __name__ == "__main__":
    main()
