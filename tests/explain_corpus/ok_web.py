"""expect: none
A web server with a light load, and its client in another process."""
import http.client
import http.server
import os
import signal
import threading
import time

signal.alarm(90)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        text = b"hello " * 20
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
if os.fork() == 0:
    signal.alarm(90)
    parent = os.getppid()
    while os.getppid() == parent:
        client = http.client.HTTPConnection("127.0.0.1", server.server_port)
        client.request("GET", "/")
        client.getresponse().read()
        client.close()
        time.sleep(0.05)
    os._exit(0)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
