# SPDX-License-Identifier: MIT
"""Pushing: what servers, proxies and lines do that is neither a plain success nor a plain refusal."""

import concurrent.futures
import os
import socket
import threading
import time

import harness
import pprof_maker
from harness import STATUS_OUTPUT, STATUS_USAGE
from push_case import RUNNING, Push, window
from push_server import reserve_port

SCHEMES = ("", "parca+", "otlp+", "pprof+")
PAGE = b"<!doctype html><html><title>Sign in</title>"
PROTOBUF, HTML, TEXT = ({"Content-Type": t} for t in ("application/x-protobuf", "Text/HTML; charset=utf-8", "text/plain"))


def partial_success(rejected, text):
    """ExportProfilesServiceResponse."""
    inner = pprof_maker.integer(1, rejected) if rejected else b""
    return pprof_maker.bytes_field(1, inner + pprof_maker.bytes_field(2, text))


class Answers(Push):
    def assert_sent(self, scheme, answer):
        server = self.serve(answer)
        spool = self.spool(window(5))
        told = self.push(scheme + server.url, spool, "--remove")
        self.assertEqual((told.windows, told.samples, told.dropped), (1, 10, 0))
        n = 2 if scheme == "parca+" else 1  # one for each state
        self.assertEqual((len(server.requests), os.listdir(spool)), (n, []))

    def assert_kept(self, scheme, answer, words):
        server = self.serve(answer)
        spool = self.spool(window(5))
        told = self.push(scheme + server.url, spool, "--remove", expect=STATUS_OUTPUT)
        self.assertEqual((told.windows, told.dropped, told.left), (0, 0, 1))
        self.assertEqual((len(server.requests), len(os.listdir(spool))), (1, 1))
        self.assertRegex(self.stderr, words + ": nothing is sent until this is fixed\n")

    def test_partial_success(self):
        """A success by which OpenTelemetry's servers reject profiles, or warn."""
        answers = (partial_success(3, b"tenant disabled"), partial_success(1, b"x" * 5000), partial_success(2, b""))
        for answer, words in zip(answers, ("3 profiles: tenant disabled", "1 profile: xx", "2 profiles")):
            with self.subTest(words):
                server = self.serve((200, PROTOBUF, answer), 200)
                spool = self.spool(window(5), window(2))
                told = self.push("otlp+" + server.url, spool, "--remove", expect=STATUS_OUTPUT)
                self.assertEqual((told.windows, told.samples, told.dropped, told.dropped_samples), (1, 4, 1, 10))
                self.assertEqual((len(server.requests), os.listdir(spool)), (2, []))
                self.assertIn(f"it answers 200, but rejects {words}", self.stderr)
        self.assert_sent("otlp+", (200, PROTOBUF, partial_success(0, b"old \x1bclient")))
        self.assertIn("it takes it, but says: old _client: sent\n", self.stderr)
        for body in (b"", b"{}", b"\x0a\x00", b"\x0a\x7f\x08", b"\xff" * 30):
            self.assert_sent("otlp+", (200, PROTOBUF, body))
        self.assert_sent("", (200, PROTOBUF, partial_success(3, b"")))  # not this protocol's

    def test_web_page(self):
        """Of a proxy that wants a login, or of what else listens there: nothing was taken."""
        words = "it answers 20[03] with a web page: check the address and whether a proxy wants a login"
        for scheme in SCHEMES:
            for answer in ((200, HTML, PAGE), (203, {}, b"\xef\xbb\xbf\r\n <HTML>"), (200, HTML, b"<!-- --><p>")):
                with self.subTest(scheme, answer=answer):
                    self.assert_kept(scheme, answer, words)
        self.assert_kept("", (200, HTML, b"sign in, please"), words)
        self.assert_sent("pprof+", (200, HTML, b"ok"))  # as of some frameworks

    def test_other_successes(self):
        for scheme in SCHEMES:
            for answer in ((200, {}, b""), (202, TEXT, b"taken <html>"), (204, {}, b"")):
                with self.subTest(scheme, answer=answer):
                    self.assert_sent(scheme, answer)

    def test_redirection(self):
        """Told with where it leads to, but for what may be a secret there."""
        for status in (301, 302, 307, 308):
            answer = (status, {"Location": "https://login.example/x?token=secret"}, b"moved")
            self.assert_kept("", answer, f"it answers {status}, a redirection to https://login.example/x")
            self.assertNotIn("secret", self.stderr)

    def test_age(self):
        """Whether a window is too old is the server's to say: servers differ, and clocks are set."""
        for scheme in SCHEMES:
            server = self.serve(400, 200)
            told = self.push(scheme + server.url, self.spool(window(5, age_s=10**6), window(6, age_s=4000)),
                             expect=STATUS_OUTPUT)  # fmt: skip
            self.assertEqual((told.windows, told.samples, told.dropped_samples), (1, 12, 10))


class Messages(Push):
    def test_addresses(self):
        """One that can never work is a mistake at once."""
        spool = self.spool(window(1))
        for host in ("h:99999", "h:0", "h:", "h:x", "h:1:2", ":4040", "[::1", "[::1]x", "[::1]:", "[::1]:x"):
            with self.subTest(host):
                process = self.begin(f"http://{host}/p", spool)
                self.end(process, STATUS_USAGE)
                self.assertIn("the address to push to names no host that can be reached", self.stderr)
        for host in ("h", "h:1", "h:65535", "127.0.0.1:9", "[::1]", "[::1]:4040"):
            self.end(self.begin(f"http://{host}", spool, "--dry-run"))

    def first_line(self, url, **env):
        env = {**{k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}, **env}
        process = self.begin(url, self.spool(window(1)), "--follow", env=env)
        line = process.stderr.readline()
        process.kill()
        return line

    def answer_as_grpc(self):
        """A port of HTTP/2, which greets so."""
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)

        def serve():
            while True:
                try:
                    connection = server.accept()[0]
                except OSError:
                    return
                connection.recv(100)
                connection.sendall(b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00")
                connection.close()

        threading.Thread(target=serve, daemon=True).start()
        return server.getsockname()[1]

    def test_why(self):
        """The cause, and the proxy's address where it is the proxy's fault."""
        nobody = reserve_port()
        self.addCleanup(nobody.close)
        port = nobody.getsockname()[1]
        line = self.first_line("http://pyroscope.example", http_proxy=f"http://127.0.0.1:{port}")
        self.assertRegex(line, rf"pyroscope\.example: .*127\.0\.0\.1 port {port}.*: it will be tried again")
        grpc = self.answer_as_grpc()
        line = self.first_line(f"otlp+http://127.0.0.1:{grpc}")
        self.assertIn("does not speak HTTP/1.1: is it a port for gRPC or TLS?: it will be tried again", line)
        line = self.first_line(f"otlp+https://127.0.0.1:{grpc}")
        self.assertRegex(line, r"(?i)ssl|tls")
        self.assertNotIn("SSL connect error", line)


class Line(Push):
    """A server behind a thin line."""

    RATE = 16000  # bytes a second

    def listen(self, serve):
        server = socket.create_server(("127.0.0.1", 0))
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.addCleanup(server.close)

        def accept():
            while True:
                try:
                    connection = server.accept()[0]
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"pprof+http://127.0.0.1:{server.getsockname()[1]}"

    def read_slowly(self, connection):
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(512)
        head, body = data.split(b"\r\n\r\n", 1)
        (size,) = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                   if line.startswith(b"content-length")]  # fmt: skip
        while len(body) < size:
            time.sleep(0.02)
            more = connection.recv(self.RATE // 50)
            if not more:
                return
            body += more
        self.n_read.append(len(body))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    def spool_of(self, size):
        """A window of more bytes than that."""
        return self.spool(pprof_maker.make([(["f"], 1, RUNNING)], comments=[os.urandom(size).hex()]))

    def test_slow_and_stuck(self):
        """It may take its time, as long as bytes get there; one that takes none does not hold up for ever."""
        self.n_read, sockets, spool, stuck_spool = [], [], self.spool_of(110000), self.spool_of(4 << 20)
        slow = self.begin(self.listen(self.read_slowly), spool)
        stuck = self.begin(self.listen(sockets.append), stuck_spool, "--follow")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            line = pool.submit(stuck.stderr.readline)
            self.end(slow)
            self.assertEqual(self.n_read, [os.path.getsize(os.path.join(spool, os.listdir(spool)[0]))])
            self.assertIn("pushed 1 windows (1 samples)", self.stderr)
            self.assertIn("less than 1 kB a second gets there: it will be tried again", line.result())
        stuck.kill()


if __name__ == "__main__":
    harness.main()
