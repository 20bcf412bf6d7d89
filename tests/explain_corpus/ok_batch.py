"""expect: none
A batch job of one thread; its work is spread over six functions evenly."""
import signal

signal.alarm(90)
N = 3000


def read(rows):
    return [row + 1 for row in rows for _ in (0, 1)][::2]


def clean(rows):
    return [row % 997 for row in rows for _ in (0, 1)][::2]


def enrich(rows):
    return [row * 3 for row in rows for _ in (0, 1)][::2]


def score(rows):
    return [row ^ 5 for row in rows for _ in (0, 1)][::2]


def render(rows):
    return [row - 2 for row in rows for _ in (0, 1)][::2]


def write(rows):
    return [row & 1023 for row in rows for _ in (0, 1)][::2]


def main():
    rows = list(range(N))
    while True:
        rows = write(render(score(enrich(clean(read(rows))))))


print("ready", flush=True)
main()
