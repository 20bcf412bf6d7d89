"""expect: lock append_row
Rows are appended to a file under a file lock, which an export in another process holds for long."""
import fcntl
import os
import signal
import tempfile
import time

signal.alarm(90)
path = os.path.join(tempfile.mkdtemp(), "rows")


def append_row(row):
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{row}\n")


def export():
    with open(path, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        time.sleep(0.08)


open(path, "w").close()
if os.fork() == 0:
    signal.alarm(90)
    parent = os.getppid()
    while os.getppid() == parent:
        export()
        time.sleep(0.01)
    os._exit(0)
print("ready", flush=True)
number = 0
while True:
    number += 1
    append_row(" ".join(str(number * i % 97) for i in range(300)))
