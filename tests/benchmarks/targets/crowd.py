"""crowd.py FILE SLEEPERS WORKERS WORK_US REST_US: as the fixture crowd.c, in Python.

The workers hash, without the interpreter's lock, about WORK_US at a time, and then sleep.
"""

import hashlib
import mmap
import struct
import sys
import threading
import time

path, sleepers, workers, work_us, rest_us = sys.argv[1], *map(int, sys.argv[2:6])
with open(path, "r+b") as file:
    memory = mmap.mmap(file.fileno(), 0)


def calibrate():
    """How many bytes take work_us."""
    data = bytes(1 << 18)
    least_s = 1
    for _ in range(10):
        start_s = time.perf_counter()
        hashlib.sha256(data).digest()
        least_s = min(least_s, time.perf_counter() - start_s)
    return int(len(data) * work_us / 1e6 / least_s) + 4096


SIZE = calibrate()


def work(number):
    data = bytes(SIZE)
    count = 0
    while True:
        hashlib.sha256(data).digest()
        count += 1
        struct.pack_into("Q", memory, 64 * number, count)
        if rest_us:
            time.sleep(rest_us / 1e6)


def rest():
    threading.Event().wait()


threading.stack_size(256 << 10)
for _ in range(sleepers):
    threading.Thread(target=rest, daemon=True).start()
for i in range(workers):
    threading.Thread(target=work, args=(i,), daemon=True).start()
time.sleep(0.2)
print("ready", flush=True)
rest()
