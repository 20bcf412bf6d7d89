# SPDX-License-Identifier: MIT
"""The static file (src/deploy/build-static), alone in a root directory of its own.

    PROFILER=STATIC-FILE FIXTURES=FIXTURES test_static.py

In CI this is a step of its own. PROFILER=STATIC-FILE also runs any other test on that file.
"""

import os
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import harness  # noqa: E402 (its place is known only now)
import push_server  # noqa: E402
from harness import PROFILER  # noqa: E402

MAX_BYTES = 4_000_000
PT_DYNAMIC, PT_INTERP, DT_NEEDED = 2, 3, 1
PYTHON = "import time\ndef work():\n while True: sum(range(1000))\nprint(flush=True)\nwork()"


def segments(data):
    """(type, offset, size) of the program headers."""
    (at,), (size, n) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<HH", data, 54)
    for i in range(n):
        header = struct.unpack_from("<IIQQQQQQ", data, at + i * size)
        yield header[0], header[2], header[5]


class Root:
    """A directory with the profiler and /proc, and nothing else: what `run` starts sees no more."""

    def __init__(self, test):
        self.path = tempfile.mkdtemp()
        test.addCleanup(shutil.rmtree, self.path)
        os.mkdir(self.path + "/proc")
        shutil.copy(PROFILER, self.path + "/profiler")
        self.words = [*harness.unshare("--mount"), "sh", "-c",
                      'mount -t proc proc "$0/proc" && exec chroot "$0" /profiler "$@"', self.path]  # fmt: skip

    def run(self, *args, expect=0, **more):
        told = subprocess.run(
            [*self.words, *map(str, args)], capture_output=True, text=True, check=False,
            timeout=harness.RUN_TIMEOUT_S, **more,
        )  # fmt: skip
        assert told.returncode == expect, f"{args}: {told.returncode}: {told.stdout} {told.stderr}"
        return told.stdout, told.stderr

    def write(self, path, text):
        os.makedirs(os.path.dirname(self.path + path), exist_ok=True)
        with open(self.path + path, "w", encoding="ascii") as file:
            file.write(text)


class Static(harness.TestCase):
    def begin(self, *command):
        """A process that has said that it is ready."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdout.readline()
        return process.pid

    def test_needs_no_library(self):
        with open(PROFILER, "rb") as file:
            data = file.read()
        self.assertLess(len(data), MAX_BYTES)
        for kind, at, size in segments(data):
            self.assertNotEqual(kind, PT_INTERP)
            if kind == PT_DYNAMIC:
                tags = [tag for tag, _ in struct.iter_unpack("<QQ", data[at : at + size])]
                self.assertNotIn(DT_NEEDED, tags)

    def test_native(self):
        """Names of the target's files, with inlined calls and lines, which it sees by way of /proc."""
        root = Root(self)
        pid = self.begin(harness.fixture("threads"), "60", "1", "1")
        stacks, _ = root.run("-p", pid, "-d", "1", "-F", "199", "-f", "folded")
        self.assertRegex(stacks, r"(?m);worker;spin_here \d+$")
        self.assertIn("sleep_here;sleep_ms_[i];", stacks)
        page, _ = root.run("-p", pid, "-d", "0.5", "-f", "html")
        self.assertTrue(page.startswith("<!doctype html>") and page.rstrip().endswith("</html>"))
        self.assertIn('"spin_here', root.run("top", "--json", "-n", "1", pid)[0])
        self.assertRegex(root.run("dump", pid)[0], r"threads\.c:\d+")

    def test_python(self):
        root = Root(self)
        pid = self.begin(sys.executable, "-c", PYTHON)
        stacks, _ = root.run("-p", pid, "-d", "1", "-f", "folded")
        self.assertRegex(stacks, r"(?m)^.*<module>;work")

    def test_push(self):
        """Host names are found without glibc's modules, whatever nsswitch.conf says."""
        root, server = Root(self), push_server.Server()
        self.addCleanup(server.close)
        root.write("/etc/hosts", "127.0.0.1 pyroscope.test\n")
        root.write("/etc/nsswitch.conf", "hosts: resolve mdns4_minimal [NOTFOUND=return]\npasswd: sss\n")
        pid = self.begin(harness.fixture("threads"), "60", "1", "1")
        url = f"http://pyroscope.test:{server.port}"
        _, told = root.run("-p", pid, "-d", "1", f"--push={url}", "-v")
        self.assertRegex(told, r"pushed [1-9]\d* windows?")
        self.assertTrue(server.taken)

    def test_secure_server(self):
        """A machine's certificates are found where its distribution keeps them."""
        key = os.path.join(self.directory(), "key.pem")
        subprocess.run(
            [harness.find_tool("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
             "-subj", "/CN=x", "-addext", "subjectAltName=DNS:safe.test", "-keyout", key, "-out", key + ".crt"],
            check=True, capture_output=True)  # fmt: skip
        with open(key, "a", encoding="ascii") as file, open(key + ".crt", encoding="ascii") as part:
            certificate = part.read()
            file.write(certificate)
        for path in ("ssl/certs/ca-certificates.crt", "pki/tls/certs/ca-bundle.crt", "ssl/ca-bundle.pem", "ssl/cert.pem"):
            root, server = Root(self), push_server.Server(certificate=key)
            self.addCleanup(server.close)
            root.write("/etc/hosts", "127.0.0.1 safe.test other.test\n")
            root.write("/etc/" + path, certificate)
            pid = self.begin(harness.fixture("threads"), "60", "1", "1")
            root.run("-p", pid, "-d", "0.5", f"--push=https://safe.test:{server.port}")
            self.assertTrue(server.taken, path)


if __name__ == "__main__":
    harness.main()
