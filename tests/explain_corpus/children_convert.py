"""expect: children convert
A Python script starts a program for each file and waits for it."""
import signal
import subprocess
import sys

signal.alarm(90)
TOOL = "sum(i * i for i in range(3_000_000))"


def convert(name):
    return subprocess.run([sys.executable, "-S", "-c", TOOL, name], check=True)


def main():
    number = 0
    while True:
        convert(f"picture{number}")
        number += 1


print("ready", flush=True)
main()
