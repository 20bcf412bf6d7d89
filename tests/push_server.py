# SPDX-License-Identifier: MIT
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
ANNOUNCE = "announce"  # of an answer, which does not come
ENDLESS = "endless"  # 200, and headers behind the body until the client has had enough of them
TRICKLE = "trickle"  # a byte of the answer's first line a second
FLOOD = "flood"  # 200, and a body without end
SIZES = {CUT: 1000, DRIP: 1000, FLOOD: 1 << 40}  # as they are announced


def fields(data):
    """{number: [values]} of a message."""
    found, at = {}, 0
    while at < len(data):
        key, at = pprof.read_varint(data, at)
        if key & 7 == pprof.FIXED64:
            value, at = int.from_bytes(data[at : at + 8], "little"), at + 8
        else:
            value, at = pprof.read_varint(data, at)
            if key & 7 == pprof.BYTES:
                value, at = data[at : at + value], at + value
        assert key & 7 in (pprof.VARINT, pprof.FIXED64, pprof.BYTES) and at <= len(data), key
        found.setdefault(key >> 3, []).append(value)
    return found


class Otlp:
    """A request of OpenTelemetry's protocol 1.10: {type: {stack, root first: (sum, attributes)}}."""

    TABLES = dict(mapping=1, location=2, function=3, link=4, string=5, attribute=6, stack=7)

    def __init__(self, body):
        request = fields(body)
        (dictionary,) = request[2]
        dictionary = fields(dictionary)
        tables = {name: dictionary[number] for name, number in self.TABLES.items()}
        assert all(table[0] == b"" for table in tables.values()), "the first items are not empty"
        self.strings = [string.decode() for string in tables.pop("string")]
        self.tables = {name: [fields(item) for item in table] for name, table in tables.items()}
        (resource_profiles,) = map(fields, request[1])
        (resource,) = map(fields, resource_profiles[1])
        self.resource = {}
        for attribute in map(fields, resource[1]):
            self.resource[attribute[1][0].decode()] = fields(attribute[2][0])[1][0].decode()
        (scope,) = map(fields, resource_profiles[2])
        self.profiles = dict(map(self.read_profile, map(fields, scope[2])))

    def read_profile(self, profile):
        kind, period_type = (fields(profile[number][0]) for number in (1, 5))
        assert self.strings[period_type[1][0]] and profile[6][0] > 0 and profile[3][0] > 0
        assert len(profile[7][0]) == 16 and any(profile[7][0]), "no id"
        samples = {}
        for sample in map(fields, profile.get(2, [])):
            (value,) = pprof.packed(pprof.BYTES, sample[4][0])
            attributes = [self.attribute(i) for i in pprof.packed(pprof.BYTES, sample[2][0])]
            samples[self.stack(sample[1][0])] = (value, attributes)
        return self.strings[kind[1][0]], samples

    def attribute(self, number):
        attribute = self.tables["attribute"][number]
        return self.strings[attribute[1][0]], fields(attribute[2][0])[1][0].decode()

    def stack(self, number):
        names = []
        for location in pprof.packed(pprof.BYTES, self.tables["stack"][number][1][0]):
            for line in self.tables["location"][location].get(3, []):
                function = self.tables["function"][fields(line)[1][0]]
                names.append(self.strings[function[1][0]])
        return tuple(names[::-1])


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
        self.path, self.headers, self.size = handler.path, dict(handler.headers), len(body)
        self.body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        self.at_s = time.monotonic()
        self.status, self.answered = None, 0

    @functools.cached_property
    def series(self):
        read = {"application/proto": read_pyroscope, "application/json": read_parca}
        return read[self.headers["Content-Type"]](self.body)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.read_body(int(self.headers.get("Content-Length", 0)))
        request = Request(self, body)
        answer = self.server.owner.take(request)
        if answer == HANG:
            self.server.owner.ended.wait()
        if answer == ANNOUNCE:
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if answer == TRICKLE:
            self.trickle()
        if answer in (HANG, CLOSE, ANNOUNCE, TRICKLE):
            self.close_connection = True
            return
        if answer == ENDLESS:
            self.answer_without_end(request)
        status, headers, text = (200, {}, b"{}") if isinstance(answer, str) else answer
        request.status = status
        self.send_response(status)
        size = SIZES.get(answer, 0) if isinstance(answer, str) else len(text)
        for name, value in {**headers, "Content-Length": size}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(text)
        while answer == FLOOD:
            self.wfile.write(b"x" * 1000)
            request.answered += 1000
        while answer == DRIP and not self.server.owner.ended.wait(1):
            self.wfile.write(b" ")
            self.wfile.flush()
        if answer in (CUT, DRIP):
            self.close_connection = True

    def read_body(self, size):
        body = b""
        while self.server.owner.is_slow and len(body) < size:
            part = self.rfile.read1(min(4096, size - len(body)))
            if not part:
                break
            body += part
            self.server.owner.ended.wait(0.5)
        return body + self.rfile.read(size - len(body))

    def do_CONNECT(self):
        """As a proxy that lets nobody through."""
        self.server.owner.requests.append(Request(self, b""))
        self.send_error(403)

    def answer_without_end(self, request):
        header = b"X-Header: " + b"x" * 1000 + b"\r\n"
        self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
        while True:  # until the connection is closed
            self.wfile.write(header * 100)
            request.answered += len(header) * 100

    def trickle(self):
        for byte in b"HTTP/1.1 200 OK\r\n":
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            if self.server.owner.ended.wait(1):
                return


class QuietServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Clients that are killed, or do not trust the certificate, are expected."""


class Server:
    """Runs in threads of its own until close()."""

    def __init__(self, script=(200,), reserved=None, certificate=None, is_slow=False):
        """`reserved`: of reserve_port(), where it listens from now on. `is_slow`: it takes 8 kB a second."""
        self.script = list(script)
        self.requests = []
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.http = QuietServer(("127.0.0.1", 0), Handler, bind_and_activate=not reserved)
        if reserved:
            self.http.socket.close()
            self.http.socket, self.http.server_address = reserved, reserved.getsockname()
            self.http.server_activate()
        self.http.owner = self
        self.is_slow = is_slow
        if is_slow:
            self.http.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
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


def reserve_port():
    """A socket with a port that nobody else can have meanwhile, and where nobody listens."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    return sock
