"""expect: none
A web handler that nobody asks at the moment; two clients keep their connections open."""
import http.server
import signal
import socket
import threading

signal.alarm(90)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
clients = [socket.create_connection(server.server_address) for _ in range(2)]
for client in clients:
    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    client.recv(1000)
print("ready", flush=True)
threading.Event().wait()
