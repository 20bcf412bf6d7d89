"""expect: disk save_order
Each order is a transaction of its own: the database waits for the disk each time."""
import signal
import sqlite3
import tempfile

signal.alarm(90)
folder = tempfile.TemporaryDirectory(dir=".")
database = sqlite3.connect(folder.name + "/orders")
database.execute("create table orders (number integer, text text)")


def price(number):
    return sum(i * number % 7 for i in range(50))


def save_order(number, text):
    database.execute("insert into orders values (?, ?)", (number, text))
    database.commit()


print("ready", flush=True)
count = 0
while True:
    count += 1
    save_order(count, f"{price(count)} Euro")
