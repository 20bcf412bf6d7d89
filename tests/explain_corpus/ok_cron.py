"""expect: none
A scheduler as cron is: it sleeps until the next job is due, and runs each as a process of its own."""
import signal
import subprocess
import time

signal.alarm(90)
print("ready", flush=True)
due = time.monotonic()
while True:
    due += 1
    time.sleep(max(0, due - time.monotonic()))
    subprocess.run(["true"], check=True)
