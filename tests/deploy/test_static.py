# SPDX-License-Identifier: MIT
"""The static file (src/deploy/build-static), alone in a root directory of its own.

    PROFILER=STATIC-FILE FIXTURES=FIXTURES test_static.py

In CI this is a step of its own. PROFILER=STATIC-FILE also runs any other test on that file.
"""

import os
import shutil
import struct
import subprocess

import root
import harness
import push_server
from harness import PROFILER

MAX_BYTES = 4_000_000
PT_DYNAMIC, PT_INTERP, DT_NEEDED = 2, 3, 1
BUNDLES = ("ssl/certs/ca-certificates.crt", "pki/tls/certs/ca-bundle.crt", "ssl/ca-bundle.pem", "ssl/cert.pem")


def segments(data):
    """(type, offset, size) of the program headers."""
    (at,), (size, n) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<HH", data, 54)
    for i in range(n):
        header = struct.unpack_from("<IIQQQQQQ", data, at + i * size)
        yield header[0], header[2], header[5]


class Static(root.Case):
    def root(self):
        """A directory with the profiler and nothing else."""
        made = root.Root(self)
        shutil.copy(PROFILER, made.path + made.program)
        return made

    def serve(self, **more):
        server = push_server.Server(**more)
        self.addCleanup(server.close)
        return server

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
        """Names, inlined calls and lines of the process's files, which it sees by way of /proc."""
        alone, pid = self.root(), self.begin_native()
        stacks, _ = alone.run("-p", pid, "-d", "1", "-F", "199", "-f", "folded")
        self.assertRegex(stacks, r"(?m);worker;spin_here \d+$")
        self.assertIn("sleep_here;sleep_ms_[i];", stacks)
        page, _ = alone.run("-p", pid, "-d", "0.5", "-f", "html")
        self.assertTrue(page.startswith("<!doctype html>") and page.rstrip().endswith("</html>"))
        self.assertIn('"spin_here', alone.run("top", "--json", "-n", "1", pid)[0])
        self.assertRegex(alone.run("dump", pid)[0], r"threads\.c:\d+")

    def test_python(self):
        stacks, _ = self.root().run("-p", self.begin_python(), "-d", "1", "-f", "folded")
        self.assertRegex(stacks, r"(?m)^.*<module>;work")

    def test_push(self):
        """Host names are found without glibc's modules, whatever nsswitch.conf says."""
        alone, server = self.root(), self.serve()
        alone.write("/etc/hosts", "127.0.0.1 pyroscope.test\n")
        alone.write("/etc/nsswitch.conf", "hosts: resolve mdns4_minimal [NOTFOUND=return]\npasswd: sss\n")
        url = f"http://pyroscope.test:{server.port}"
        _, told = alone.run("-p", self.begin_native(), "-d", "1", f"--push={url}", "-v")
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
        for path in BUNDLES:
            alone, server = self.root(), self.serve(certificate=key)
            alone.write("/etc/hosts", "127.0.0.1 safe.test\n")
            alone.write("/etc/" + path, certificate)
            url = f"https://safe.test:{server.port}"
            alone.run("-p", self.begin_native(), "-d", "0.5", f"--push={url}")
            self.assertTrue(server.taken, path)


if __name__ == "__main__":
    harness.main()
