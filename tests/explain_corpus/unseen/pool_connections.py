"""expect: pool|lock borrow
Eight handlers share a pool of one connection; each uses it for a query of twenty milliseconds."""
import signal
import threading
import time

signal.alarm(90)
free = threading.Semaphore(1)


def borrow():
    free.acquire()


def run_query():
    time.sleep(0.02)


def handle():
    borrow()
    try:
        run_query()
    finally:
        free.release()
    return sum(i * i for i in range(2000))


def work():
    while True:
        handle()


for _ in range(8):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
