"""expect: none
A build as make does it: two jobs at a time, each a shell with a compiler under it; it waits for whichever ends first."""
import os
import signal
import subprocess
import sys

signal.alarm(90)
COMPILE = f"{sys.executable} -S -c 'sum(range(900000))'; true"


def start(running):
    job = subprocess.Popen(["/bin/sh", "-c", COMPILE])
    running[job.pid] = job


def reap(running):
    pid, _ = os.wait()
    running.pop(pid).returncode = 0


def build():
    running = {}
    while True:
        while len(running) < 2:
            start(running)
        reap(running)


print("ready", flush=True)
build()
