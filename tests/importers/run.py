#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The timelines, opened by their real importers; figures compared with the profile's own. And the
page, looked at by axe-core.

    run.py PROFILER FIXTURES MODULES

MODULES is a node_modules directory with what package.json names: `npm install --prefix`. In CI this
is a step of its own; it needs Node.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import browser  # noqa: E402 (its place is known only now)

TIMEOUT_S = 120
POLL_S = 0.2


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, f"{command}: {done.stdout} {done.stderr}"
    return done.stdout


def record(profiler, fixtures, directory):
    """Threads that run and sleep; the file, and the samples of each tid."""
    target = subprocess.Popen(
        [os.path.join(fixtures, "threads"), "5", "2", "1"], stdout=subprocess.PIPE, text=True
    )
    try:
        target.stdout.readline()
        path = os.path.join(directory, "run.wprof")
        told = subprocess.run(
            [profiler, "-p", str(target.pid), "-d", "1", "-F", "199", "-v", "-o", path],
            capture_output=True, text=True, check=True, timeout=TIMEOUT_S,
        ).stderr  # fmt: skip
    finally:
        target.kill()
        target.wait()
    samples = re.findall(r'thread (\d+) ".*": .* (\d+) samples', told)
    return path, target.pid, {int(tid): int(count) for tid, count in samples}


def check_speedscope(modules, path, title):
    """Both what is its own format, and Chrome's."""
    said = run("node", os.path.join(HERE, "speedscope.js"), modules, path)
    if path.endswith(".speedscope.json"):
        assert "schema: valid" in said, said
    assert re.search(rf"^title: .*{re.escape(title)}", said, re.M), said


def check_that_it_can_fail(modules, path, title):
    """A file that lies is not opened."""
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    profile["profiles"][0]["samples"][0] = [len(profile["shared"]["frames"]) + 7]
    broken = path.replace("run.", "broken.")
    with open(broken, "w", encoding="utf-8") as file:
        json.dump(profile, file)
    try:
        check_speedscope(modules, broken, title)
    except AssertionError:
        return
    raise AssertionError("speedscope has opened a file with a frame that is not there")


def await_loaded(daemon, log):
    """Until the daemon has told its log that the profile is loaded. Asked before that, a client takes
    the session for dead and removes its files, also those that the daemon writes in this moment.
    """
    deadline = time.monotonic() + TIMEOUT_S
    told = ""
    while "Profile loaded successfully" not in told:
        assert daemon.poll() is None and time.monotonic() < deadline, told
        time.sleep(POLL_S)
        if os.path.exists(log):
            with open(log, encoding="utf-8") as file:
                told = file.read()


def check_firefox(modules, path, samples):
    cli = ("node", os.path.join(modules, "@firefox-devtools/profiler-cli/dist/profiler-cli.js"))
    session = ("--session", "importers")
    directory = os.environ["PROFILER_CLI_SESSION_DIR"] = os.path.dirname(path)
    # Not by the command `load`, which gives the daemon half a second to start.
    daemon = subprocess.Popen([*cli, "--daemon", path, *session], stdout=subprocess.DEVNULL)
    try:
        await_loaded(daemon, os.path.join(directory, "importers.log"))
        info = json.loads(run(*cli, "profile", "info", *session, "--json"))
        assert info["threadCount"] == len(samples), info
        told = json.dumps(info)
        for tid in samples:
            assert re.search(rf'"tid": ?"?{tid}\b', told) or len(samples) > 5, told
        top = run(*cli, "thread", "samples", *session, "--include-idle")
        count = int(re.search(r"Heaviest stack \(([\d.]+) samples", top)[1].split(".")[0])
        assert 0 < count <= max(samples.values()), top
    finally:
        daemon.terminate()
        daemon.wait(TIMEOUT_S)


def check_page(modules, path):
    """axe-core finds nothing serious in any view, in either theme; and can: of a button without a name."""
    with open(os.path.join(modules, "axe-core", "axe.min.js"), encoding="utf-8") as file:
        axe = file.read()
    window = browser.Browser()
    try:
        window.ask("Page.setBypassCSP", enabled=True)  # for axe-core, which the page would not run
        window.open(path)
        window.evaluate(axe + "; 1")
        script = """axe.run(document).then(({violations}) => violations
            .filter(one => ['serious', 'critical'].includes(one.impact))
            .map(one => one.id + ': ' + one.nodes.map(node => node.target.join(' ')).join(', ')))"""
        for key in ("1", "3", "4", "?", "t", "3", "4"):
            window.key(key)
            found = window.evaluate(script)
            assert not found, (key, found)
            window.evaluate("document.getElementById('dialog').close()")
        window.evaluate("document.getElementById('save').title = ''; document.getElementById('save').textContent = ''")
        assert window.evaluate(script), "axe-core finds nothing at all"
    finally:
        window.close()


def main():
    profiler, fixtures, modules = sys.argv[1:4]
    with tempfile.TemporaryDirectory(prefix="profiler-importers-") as directory:
        recording, pid, samples = record(profiler, fixtures, directory)
        for form, suffix in (("speedscope", "speedscope"), ("chrome", "trace"),
                             ("firefox", "firefox")):  # fmt: skip
            path = os.path.join(directory, f"run.{suffix}.json")
            run(profiler, "report", recording, "-q", "-o", path)
            if form == "firefox":
                check_firefox(modules, path, samples)
            else:
                check_speedscope(modules, path, f"threads ({pid})" if form == "speedscope" else "")
            print(form, "ok")
            if form == "speedscope":
                check_that_it_can_fail(modules, path, f"threads ({pid})")
        page = os.path.join(directory, "run.html")
        run(profiler, "report", recording, "-q", "-o", page)
        check_page(modules, page)
        print("page ok")


if __name__ == "__main__":
    main()
