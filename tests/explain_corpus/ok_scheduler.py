"""expect: none
A scheduler waits for the next job's time, runs it, and two consumers wait for a queue."""
import queue
import signal
import threading

signal.alarm(90)
todo = queue.Queue()
stop = threading.Event()


def consume():
    while True:
        job = todo.get()
        sum(range(job))


def schedule():
    while not stop.wait(0.05):
        todo.put(1000)


for _ in range(2):
    threading.Thread(target=consume, daemon=True).start()
print("ready", flush=True)
schedule()
