"""expect: lock get_user refresh
Handlers share a cache behind a lock; a thread refreshes it slowly under that lock."""
import signal
import threading
import time

signal.alarm(90)
lock = threading.Lock()
cache = {}


def load():
    time.sleep(0.08)
    return {n: str(n) for n in range(1000)}


def refresh():
    with lock:
        cache.update(load())


def get_user(number):
    with lock:
        return cache.get(number)


def handler():
    number = 0
    while True:
        get_user(number % 1000)
        number += 1
        time.sleep(0.001)


def refresher():
    while True:
        refresh()
        time.sleep(0.01)


for _ in range(5):
    threading.Thread(target=handler, daemon=True).start()
threading.Thread(target=refresher, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
