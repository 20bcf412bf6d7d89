"""expect: gil tokenize
Four threads tokenize texts in Python: one runs, the others wait for the GIL."""
import signal
import threading

signal.alarm(90)


def tokenize(text):
    words = {}
    for letter in text:
        words[letter] = words.get(letter, 0) + 1
    return words


def worker():
    while True:
        tokenize("the quick brown fox jumps over the lazy dog" * 200)


for _ in range(4):
    threading.Thread(target=worker, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
