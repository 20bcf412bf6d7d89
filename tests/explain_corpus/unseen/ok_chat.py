"""expect: none
A chat server on asyncio; three clients in another process say something now and then."""
import asyncio
import os
import signal
import socket
import time

signal.alarm(90)
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
if os.fork() == 0:
    signal.alarm(90)
    parent = os.getppid()
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    while os.getppid() == parent:
        for client in clients:
            client.sendall(b"hello\n")
            time.sleep(0.03)
    os._exit(0)
writers = set()


async def talk(reader, writer):
    writers.add(writer)
    while line := await reader.readline():
        for one in writers:
            one.write(line)


async def main():
    server = await asyncio.start_server(talk, sock=listener)
    print("ready", flush=True)
    await server.serve_forever()


asyncio.run(main())
