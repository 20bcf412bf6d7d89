"""expect: none
A busy batch job: it makes lines, parses them, counts, sorts, compresses and hashes; nothing of it stands out."""
import hashlib
import json
import random
import signal
import zlib

signal.alarm(90)
N = 400


def generate():
    return [json.dumps({"id": i, "user": f"u{random.randrange(99)}", "price": random.random()}) for i in range(N)]


def parse(lines):
    return [json.loads(line) for line in lines]


def by_user(orders):
    users = {}
    for _ in range(8):
        for order in orders:
            users.setdefault(order["user"], []).append(order["price"])
    return users


def rank(orders):
    for _ in range(6):
        orders = sorted(orders, key=lambda order: (order["user"], order["price"]))
    return orders


def report(users):
    return "\n".join(f"{user:>10} {sum(prices):12.2f}" for _ in range(8) for user, prices in sorted(users.items()))


def pack(text):
    return zlib.compress(text.encode() * 2, 6)


def check(packed):
    return [hashlib.sha256(packed).hexdigest() for _ in range(200)]


print("ready", flush=True)
while True:
    orders = parse(generate())
    rank(orders)
    check(pack(report(by_user(orders))))
