# SPDX-License-Identifier: MIT
"""What .github/release made: each package is installed where nothing else is, run, and removed.

    RELEASE=DIRECTORY BARE=ROOT FIXTURES=FIXTURES PROFILER=STATIC-FILE test_release.py

BARE is a root directory of Debian that debootstrap made (--variant=minbase). In CI this is a step of
its own.
"""

import glob
import gzip
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile

import root
import browser
import harness
import terminal

RELEASE, BARE = os.environ["RELEASE"], os.environ["BARE"]
DPKG = ("env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "dpkg")
REPOSITORY = os.path.join(root.HERE, "..", "..")
MANUAL = ("man1/profiler.1.gz", "man1/profiler-dump.1.gz", "man7/profiler-promises.7.gz")


def find(pattern):
    (path,) = glob.glob(os.path.join(RELEASE, pattern))
    return path


def read(path):
    with open(path, "rb") as file:
        return file.read()


def run(*command, **more):
    told = subprocess.run(command, capture_output=True, check=False, **more)
    assert told.returncode == 0, f"{command}: {told.stdout} {told.stderr}"
    return told.stdout


def files_below(path):
    """Of a root directory, but what changes by itself; with the sizes of files."""
    found = {}
    for folder, folders, names in os.walk(path):
        if folder == path:
            folders[:] = [name for name in folders if name not in ("proc", "tmp", "dev", "sys")]
        if folder.startswith(path + "/var"):
            continue  # what dpkg writes about itself
        for name in names:
            at = os.path.join(folder, name)
            found[at[len(path) :]] = os.lstat(at).st_size
    return found


class Release(root.Case):
    def copy_of_bare(self):
        harness.need(os.path.exists(BARE + "/usr/bin/dpkg"), "debootstrap made no root directory")
        path = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, path)
        run("cp", "-a", BARE + "/.", path)
        return path

    def check_jobs(self, where):
        """The main jobs, of processes outside: a flame graph, dump, top; native, Python, Go."""
        native = self.begin_native()
        self.assertEqual(where.run("--version")[0], f"profiler {self.version()}\n")
        self.check_page(where, native)
        self.assertRegex(where.run("dump", native)[0], r"worker .*threads\.c:\d+")
        self.check_top(where, native)
        stacks, _ = where.run("-p", self.begin_python(), "-d", "1", "-f", "folded")
        self.assertRegex(stacks, r"<module>;work")
        stacks, _ = where.run("-p", self.begin_go(), "-d", "1", "-f", "folded")
        self.assertRegex(stacks, r"main\.\w+;main\.\w+")

    def check_page(self, where, pid):
        """Recorded and served in there, shown by a browser out here."""
        os.makedirs(where.path + "/tmp", exist_ok=True)
        where.run("-p", pid, "-d", "1", "-o", "/tmp/native.wprof")
        window = browser.Browser()
        self.addCleanup(window.close)
        command = [*where.words, where.program, "view", "-q", "--serve=0", "/tmp/native.wprof"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                address = server.stdout.readline().strip()
                window.open(address)
                self.assertIn("worker-00", window.evaluate("document.documentElement.outerHTML"))
                self.assertEqual((window.errors, set(window.requests)), ([], {address}))
            finally:
                server.terminate()

    def check_top(self, where, pid):
        """In a terminal, as it was before at its end."""
        command = os.path.join(self.directory(), "profiler")
        with open(command, "w", encoding="ascii") as file:
            words = " ".join(f"'{word}'" for word in [*where.words, where.program])
            file.write(f'#!/bin/sh\nexec {words} "$@"\n')
        os.chmod(command, 0o755)
        terminal.PROFILER = command
        shown = terminal.Terminal(self, pid)
        shown.wait_for("spin_here")
        shown.type("q")
        shown.wait_for_end()

    def version(self):
        return os.path.basename(find("*-x86_64")).split("-")[1]

    def test_sums(self):
        """SHA256SUMS has every other file, and is right."""
        told = run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=RELEASE).decode()
        checked = {line.rpartition(": ")[0] for line in told.splitlines()}
        self.assertEqual(checked, set(os.listdir(RELEASE)) - {"SHA256SUMS"})

    def test_version(self):
        """All name one version, the examples for containers as well; a manual and news belong to it."""
        version = self.version()
        for path in glob.glob(os.path.join(REPOSITORY, "src/deploy/*.[yj]*")):
            text = read(path).decode()
            self.assertIn(f"profiler:{version}", text, path)
        readme = read(os.path.join(REPOSITORY, "README.md")).decode()
        told = set(re.findall(r"\bprofiler[-_:]\d[-\w.*]*\w", readme))
        self.assertEqual({name for name in told if not re.match(rf"profiler[-_:]{re.escape(version)}(?!\d)", name)}, set())
        names = [name for name in os.listdir(RELEASE) if name != "SHA256SUMS"]
        self.assertTrue(all(version in name for name in names), names)

    def test_bill_of_materials(self):
        bill = json.loads(read(find("*.cdx.json")))
        self.assertEqual((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.5"))
        names = {c["name"] for c in bill["components"] if c["version"] and c["purl"].startswith("pkg:deb/")}
        self.assertLessEqual({"elfutils", "curl", "mbedtls", "glibc", "zlib", "xz-utils"}, names)
        self.assertTrue(os.stat(find("*-x86_64")).st_mode & stat.S_IXOTH)
        digest = hashlib.sha256(read(find("*-x86_64"))).hexdigest()
        self.assertEqual(bill["metadata"]["component"]["hashes"][0]["content"], digest)

    def check_program(self, data):
        """It is the static file."""
        self.assertEqual(hashlib.sha256(data).digest(), hashlib.sha256(read(find("*-x86_64"))).digest())

    def check_symbols(self, bare):
        """They are where debuggers look for this build."""
        (debug,) = glob.glob(bare.path + "/usr/lib/debug/.build-id/*/*.debug")
        told = run("readelf", "-n", bare.path + bare.program).decode()
        self.assertIn("".join(debug.removesuffix(".debug").split("/")[-2:]), told)

    def test_deb(self):
        bare = root.Root(self, self.copy_of_bare(), "/usr/bin/profiler")
        before = files_below(bare.path)
        package, symbols = find("profiler_*.deb"), find("profiler-dbgsym_*.deb")
        for path in (package, symbols):
            shutil.copy(path, bare.path + "/tmp")
        paths = [f"/tmp/{os.path.basename(path)}" for path in (package, symbols)]
        bare.call(*DPKG, "-i", *paths)
        self.check_program(read(bare.path + bare.program))
        for name in ("bash-completion/completions/profiler", "zsh/vendor-completions/_profiler",
                     "fish/vendor_completions.d/profiler.fish", "doc/profiler/copyright",
                     "profiler/agent.rules"):  # fmt: skip
            self.assertTrue(os.path.exists(f"{bare.path}/usr/share/{name}"), name)
        # Minimal systems of Debian leave the manual out; the package has it.
        listed = run("dpkg-deb", "--contents", package).decode()
        for name in (*MANUAL, "lib/systemd/system/profiler-agent.service"):
            self.assertIn(name, listed)
        self.check_symbols(bare)
        self.check_jobs(bare)
        bare.call(*DPKG, "-r", "profiler-dbgsym", "profiler")
        after = files_below(bare.path)
        self.assertEqual({p for p in after if "profiler" in p}, set())
        self.assertEqual(after, before)

    def test_lintian(self):
        for package in glob.glob(os.path.join(RELEASE, "*.deb")):
            run(harness.find_tool("lintian"), "--allow-root", "--fail-on", "error", package)

    def test_rpm(self):
        rpm, packages = harness.find_tool("rpm"), glob.glob(os.path.join(RELEASE, "*.rpm"))
        self.assertEqual(len(packages), 2)
        self.assertEqual(run(rpm, "-qp", "--requires", *packages).decode().count(".so"), 0)
        bare = root.Root(self, program="/usr/bin/profiler")
        words = [rpm, "--root", bare.path, "--dbpath", "/var/lib/rpm"]
        run(*words, "--install", "--nodeps", "--noscripts", *packages)
        self.check_symbols(bare)
        self.check_program(read(bare.path + bare.program))
        for name in MANUAL:
            self.assertTrue(os.path.exists(f"{bare.path}/usr/share/man/{name}"), name)
        self.check_jobs(bare)
        run(*words, "--erase", "--nodeps", "--noscripts", "profiler-debuginfo", "profiler")
        self.assertEqual([path for path in files_below(bare.path) if "profiler" in path], [])

    def test_wheel(self):
        path = self.directory()
        run(sys.executable, "-m", "venv", path + "/venv", timeout=harness.RUN_TIMEOUT_S)
        pip = [path + "/venv/bin/python", "-m", "pip", "--disable-pip-version-check"]
        run(*pip, "install", "--no-index", find("*.whl"))
        installed = path + "/venv/bin/profiler"
        self.check_program(read(installed))
        pid = self.begin(path + "/venv/bin/python", "-c", root.PYTHON)
        stacks = run(installed, "-p", str(pid), "-d", "1", "-f", "folded").decode()
        self.assertRegex(stacks, r"<module>;work")
        self.assertTrue(os.path.exists(path + "/venv/share/man/man1/profiler.1.gz"))
        run(*pip, "uninstall", "-y", "profiler")
        self.assertFalse(os.path.exists(installed))

    def test_image(self):
        """Its file system, as `docker load` gets it, run by bwrap."""
        path = self.directory()
        with tarfile.open(fileobj=gzip.open(find("*-image.tar.gz"))) as image:
            (manifest,) = json.load(image.extractfile("manifest.json"))
            config = json.load(image.extractfile(manifest["Config"]))
            for layer in manifest["Layers"]:
                with tarfile.open(fileobj=image.extractfile(layer)) as files:
                    files.extractall(path + "/root")
        self.assertEqual(manifest["RepoTags"], [f"profiler:{self.version()}"])
        (program,) = config["config"]["Entrypoint"]
        self.check_program(read(path + "/root" + program))
        self.assertIn(b"BEGIN CERTIFICATE", read(path + "/root/etc/ssl/certs/ca-certificates.crt"))
        self.check_jobs(root.Bubble(self, path + "/root", program))


if __name__ == "__main__":
    harness.main()
