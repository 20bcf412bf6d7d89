"""deep.py THREADS: threads that work for a moment and sleep for a moment, each 20 calls through C
deep; a single one never sleeps."""

import json
import sys
import threading
import time

N = int(sys.argv[1])


def work(rest_s):
    while True:
        json.dumps(json.loads('[1, {"a": 2}]'))
        sorted(range(200), key=lambda x: -x)
        if rest_s:
            time.sleep(rest_s)


def deeper(level):
    if level == 0:
        work(0.002 if N > 1 else 0)
    sorted([level], key=lambda _: deeper(level - 1))


threads = [threading.Thread(target=deeper, args=(20,), daemon=True) for _ in range(N - 1)]
for thread in threads:
    thread.start()
deeper(20)
