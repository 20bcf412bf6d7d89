"""A scripted server for what is pushed: it keeps every request, and answers as it is told to.

A script is a list of answers, one for each request; the last one goes on. An answer is a status, or
(status, headers, body), or one of the words below.
"""

import base64
import functools
import gzip
import http.server
import json
import socket
import ssl
import threading
import time

import pprof

HANG = "hang"  # the request is read, and no answer comes
CLOSE = "close"  # the connection is closed without an answer
CUT = "cut"  # 200, but the connection is closed in the midst of the body
DRIP = "drip"  # 200, and a byte of the body a second


def fields(data):
    """{number: [values]} of a message."""
    found = {}
    for number, _, value in pprof.fields(data):
        found.setdefault(number, []).append(value)
    return found


class Series:
    """One series as it came: its labels, the profile, its UUID if there is one."""

    def __init__(self, labels, raw, uuid=None):
        self.labels, self.uuid = dict(labels), uuid
        self.raw = gzip.decompress(raw)
        self.profile = pprof.Profile(self.raw, pushed=True)

    @property
    def n_samples(self):
        return sum(sample.count for sample in self.profile.samples)

    @property
    def wall_ns(self):
        return sum(sample.wall_ns for sample in self.profile.samples)


def read_pyroscope(body):
    series = []
    for message in fields(body).get(1, []):
        parts = fields(message)
        labels = [fields(label) for label in parts[1]]
        (sample,) = parts[2]
        series.append(Series(
            [(label[1][0].decode(), label.get(2, [b""])[0].decode()) for label in labels],
            fields(sample)[1][0], fields(sample)[2][0].decode(),
        ))  # fmt: skip
    return series


def read_parca(body):
    series = []
    for item in json.loads(body)["series"]:
        labels = [(label["name"], label["value"]) for label in item["labels"]["labels"]]
        (sample,) = item["samples"]
        series.append(Series(labels, base64.b64decode(sample["rawProfile"], validate=True)))
    return series


class Request:
    def __init__(self, handler, body):
        self.path, self.headers, self.body = handler.path, dict(handler.headers), body
        self.at_s = time.monotonic()
        self.status = None

    @functools.cached_property
    def series(self):
        read = {"application/proto": read_pyroscope, "application/json": read_parca}
        return read[self.headers["Content-Type"]](self.body)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = Request(self, body)
        answer = self.server.owner.take(request)
        if answer == HANG:
            self.server.owner.ended.wait()
        if answer in (HANG, CLOSE):
            self.close_connection = True
            return
        status, headers, text = (200, {}, b"{}") if isinstance(answer, str) else answer
        request.status = status
        self.send_response(status)
        size = 1000 if answer in (CUT, DRIP) else len(text)
        for name, value in {**headers, "Content-Length": size}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(text)
        while answer == DRIP and not self.server.owner.ended.wait(1):
            self.wfile.write(b" ")
            self.wfile.flush()
        if answer in (CUT, DRIP):
            self.close_connection = True


class QuietServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Clients that are killed, or do not trust the certificate, are expected."""


class Server:
    """Runs in threads of its own until close()."""

    def __init__(self, script=(200,), port=0, certificate=None):
        self.script = list(script)
        self.requests = []
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.http = QuietServer(("127.0.0.1", port), Handler)
        self.http.owner = self
        scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
            scheme = "https"
        self.port = self.http.server_address[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def take(self, request):
        with self.lock:
            self.requests.append(request)
            answer = self.script[0]
            if callable(answer):
                answer = answer(request)
            elif len(self.script) > 1:
                self.script.pop(0)
        return (answer, {}, b"{}") if isinstance(answer, int) else answer

    @property
    def taken(self):
        """The series of all requests that were answered with success."""
        return [s for r in self.requests if r.status == 200 for s in r.series]

    def close(self):
        self.ended.set()
        self.http.shutdown()
        self.http.server_close()


def free_port():
    """A port where nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]
