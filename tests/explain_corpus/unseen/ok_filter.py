"""expect: none
A filter at the end of a pipe: lines come now and then, as from tail -f, and it keeps those that matter."""
import os
import signal
import sys
import time

signal.alarm(90)
out, into = os.pipe()
if os.fork() == 0:
    signal.alarm(90)
    os.close(out)
    try:
        while True:
            os.write(into, b"GET /page 200\nGET /other 500\n" * 3)
            time.sleep(0.03)
    except BrokenPipeError:
        os._exit(0)
os.close(into)


def matters(line):
    return line.split()[-1] == "500"


def follow(lines):
    return sum(matters(line) for line in lines)


print("ready", flush=True)
follow(os.fdopen(out))
