"""expect: sleep throttle
A crawler sleeps before each page that it fetches from a fast server."""
import signal
import socket
import threading
import time

signal.alarm(90)
server, client = socket.socketpair()


def serve():
    while request := server.recv(100):
        server.sendall(request * 100)


def throttle():
    time.sleep(0.05)


def parse(page):
    return sum(page) % 255


def fetch_page(number):
    throttle()
    client.sendall(b"%d" % number)
    return parse(client.recv(10000))


threading.Thread(target=serve, daemon=True).start()
print("ready", flush=True)
page = 1
while True:
    page += fetch_page(page)
