#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Profiles a shop on Jetty under load (JettyShop.java), with platform and with virtual threads.

    java_servers.py [-d SECONDS] [JAVA...]

The profile must name the shop's handlers and its lock, in the table that a terminal shows and on the
page, without options of Java's and without an agent. The handlers compute for 1, 3 and 2 units a
request, and the clients ask them in turn: the shares must be 1/6, 1/2 and 1/3 of what all of them
compute. Whoever waits for the lock must be told an owner that is a thread of the shop's. Prints a table,
with a row for each java (default: those of /usr/lib/jvm), and fails if something is missing. Needs a
javac of 21 or later, and mvn, which gets Jetty. Takes a minute or two; not a part of CI.
"""

import argparse
import collections
import contextlib
import glob
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import harness  # noqa: E402  pylint: disable=wrong-import-position
import page  # noqa: E402  pylint: disable=wrong-import-position
import pprof  # noqa: E402  pylint: disable=wrong-import-position
from terminal import run_in_terminal  # noqa: E402  pylint: disable=wrong-import-position

JETTY = "12.1.14"
N_CLIENTS = 12
N_WARM, MAX_WARM_S = 5000, 30
UNITS = {"Search": 1, "Render": 3, "Order": 2}
HELD = re.compile(r'monitor JettyShop\$Stock 0x[0-9a-f]+, held by "([^"]*)" (\d+)')
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>shop</groupId><artifactId>shop</artifactId><version>1</version>
<dependencies><dependency><groupId>org.eclipse.jetty</groupId><artifactId>jetty-server</artifactId>
<version>{JETTY}</version></dependency></dependencies></project>
"""


def get_jetty(directory):
    with open(os.path.join(directory, "pom.xml"), "w", encoding="utf-8") as file:
        file.write(POM)
    jars = os.path.join(directory, "jars")
    copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    subprocess.run(copy, cwd=directory, check=True, stdout=subprocess.DEVNULL)
    return jars


def build(directory, jars):
    """The class path of the shop."""
    javac = sorted(glob.glob("/usr/lib/jvm/*/bin/javac"), key=major)[-1]
    source = os.path.join(HERE, "JettyShop.java")
    subprocess.run([javac, "--release", "17", "-cp", f"{jars}/*", "-d", directory, source], check=True)
    return f"{jars}/*:{directory}"


def major(java):
    """The version of a java or javac."""
    argv = [os.path.join(os.path.dirname(java), "java"), "-version"]
    text = subprocess.run(argv, stderr=subprocess.PIPE, check=True).stderr.decode()
    return int(re.search(r'version "(\d+)', text)[1])


class Client(threading.Thread):
    """Asks for each page in turn, over one connection, until it is told to end."""

    ends = threading.Event()
    n_asked = 0

    def __init__(self, port):
        super().__init__(daemon=True)
        self.socket = socket.create_connection(("127.0.0.1", port))

    def run(self):
        with contextlib.suppress(ConnectionError):
            while not self.ends.is_set():
                self.ask()

    def ask(self):
        for name in UNITS:
            self.socket.sendall(f"GET /{name.lower()} HTTP/1.1\r\nHost: shop\r\n\r\n".encode())
            answer = b""
            while not re.search(rb"\r\n\r\n\S", answer):
                part = self.socket.recv(4096)
                if not part:
                    raise ConnectionError
                answer += part
        Client.n_asked += len(UNITS)


def await_compiled():
    """Until each handler was asked often, or not much longer than that should take."""
    end_s, start = time.monotonic() + MAX_WARM_S, Client.n_asked
    while Client.n_asked < start + N_WARM and time.monotonic() < end_s:
        time.sleep(0.1)


class Failed(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Failed(what)


def check_shares(samples):
    """How many samples compute; the share of each handler of them, in %."""
    counts, named = collections.Counter(), set()
    for sample in samples:
        names = [name for name in UNITS if f"JettyShop${name}.work" in sample.stack]
        named.update(names)
        if sample.state == "running" and "JettyShop.compute" in sample.stack:
            counts.update({name: sample.count for name in names})
    total = sum(counts.values())
    need(named == UNITS.keys() and total > 0, f"only {named} are named")
    for name, units in UNITS.items():
        share = units / sum(UNITS.values())
        error = abs(counts[name] / total - share)
        need(error < max(0.05, 5 * math.sqrt(share * (1 - share) / total)), f"{name}: {counts}")
    return total, {name: 100 * counts[name] / total for name in UNITS}


def check_page(html, waits):
    """The page has each handler in a stack, and the lock where it is waited for."""
    shown = page.Page(html)
    for name in UNITS:
        need(any(f"JettyShop${name}.work" in str(run[3]) for run in shown.runs), f"page: no {name}")
    need(not waits or any(HELD.search(run[5] or "") for run in shown.runs), "page: no lock")


def check_table(pid, directory, seconds, waits):
    _, text = run_in_terminal(["-p", pid, "-d", seconds], directory)
    need("JettyShop.compute" in text, f"table: no function:\n{text}")
    need(not waits or "JettyShop$Stock" in text, f"table: no lock:\n{text}")


def profile(pid, seconds, directory):
    """Samples; the page."""
    recording = os.path.join(directory, "shop.wprof")
    argv = [harness.PROFILER, "-p", str(pid), "-d", str(seconds), "-F", "199", "-o", recording]
    subprocess.run(argv, check=True, stderr=subprocess.DEVNULL)
    files = []
    for name in ("shop.pb.gz", "shop.html"):
        path = os.path.join(directory, name)
        argv = [harness.PROFILER, "report", recording, "-o", path]
        subprocess.run(argv, check=True, stderr=subprocess.DEVNULL)
        with open(path, "rb") as file:
            files.append(file.read())
    return pprof.Profile(files[0]).samples, files[1]


def check(pid, threads, java, seconds):
    directory = tempfile.mkdtemp(prefix="shop-")
    try:
        samples, html = profile(pid, seconds, directory)
        waits = sum(s.count for s in samples if HELD.search(s.descriptor or ""))
        owners = {HELD.search(s.descriptor)[1] for s in samples if HELD.search(s.descriptor or "")}
        computing, found = check_shares(samples)
        # A virtual thread that waits is in the heap alone, from JDK 24 on also where it waits for a monitor.
        need(waits or threads == "virtual" and major(java) >= 24, "nobody waits for the lock")
        need(all(re.match(r"qtp|ForkJoinPool", name) for name in owners), f"owners: {owners}")
        check_page(html, waits)
        check_table(pid, directory, seconds, waits)
        named = [s.count for s in samples if not any(re.match(r"\[(anon|jit)", n) for n in s.stack)]
        count = sum(s.count for s in samples)
        return [computing, *(f"{found[name]:.1f}" for name in UNITS), waits, len(owners), f"{100 * sum(named) / count:.2f}"]
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def run_shop(java, class_path, threads, seconds):
    argv = [java, "-cp", class_path, "JettyShop", threads]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as shop:
        try:
            port = int(shop.stdout.readline())
            Client.ends.clear()
            clients = [Client(port) for _ in range(N_CLIENTS)]
            for client in clients:
                client.start()
            await_compiled()
            return check(shop.pid, threads, java, seconds)
        finally:
            Client.ends.set()
            shop.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-d", "--duration", type=int, default=10)
    parser.add_argument("-j", "--jars", help="a directory that has Jetty's")
    parser.add_argument("javas", nargs="*", metavar="JAVA")
    options = parser.parse_args()
    javas = options.javas or {os.path.realpath(p) for p in glob.glob("/usr/lib/jvm/*/bin/java")}
    head = ["JDK", "threads", "samples computing", *(f"{name} %" for name in UNITS), "samples waiting for the lock", "owners", "named stacks %"]
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    failed = False
    with tempfile.TemporaryDirectory() as directory:
        class_path = build(directory, options.jars or get_jetty(directory))
        for java in sorted(javas, key=major):
            for threads in ("platform", "virtual") if major(java) >= 21 else ("platform",):
                try:
                    cells = run_shop(java, class_path, threads, options.duration)
                except Failed as why:
                    cells, failed = [f"failed: {why}"], True
                print("| " + " | ".join(map(str, [major(java), threads, *cells])) + " |", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
