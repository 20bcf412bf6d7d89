"""expect: none
A monitor: twenty times a second it reads a few figures, and keeps a mean."""
import signal
import time

signal.alarm(90)


def read_figures():
    with open("/proc/loadavg") as file:
        return [float(word) for word in file.read().split()[:3]]


def keep(means, figures):
    for i, figure in enumerate(figures):
        means[i] += (figure - means[i]) / 20


print("ready", flush=True)
means = [0.0] * 3
while True:
    keep(means, read_figures())
    time.sleep(0.05)
