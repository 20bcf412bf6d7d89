# SPDX-License-Identifier: MIT
"""Makes pprof files as a test wants them, without a process to be profiled."""

import gzip
import time

TYPES = (("samples", "count"), ("cpu", "nanoseconds"), ("wall", "nanoseconds"))


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(number, value):
    return varint(number << 3) + varint(value)


def bytes_field(number, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def make(samples, age_s=1, comments=(), file="/usr/bin/made", at_ns=None):
    """A profile of samples: (names leaf first, count, labels); each tick is 10 ms."""
    strings, functions = {"": 0}, {}

    def string(text):
        return strings.setdefault(text, len(strings))

    def function(name):
        string(name)
        return functions.setdefault(name, len(functions) + 1)

    head = b""
    for kind, unit in TYPES:
        value_type = integer(1, string(kind)) + integer(2, string(unit))
        head += bytes_field(1, value_type)
    head += bytes_field(11, value_type) + integer(12, 10**7) + integer(14, string("wall"))
    head += integer(9, at_ns or time.time_ns() - int(age_s * 1e9)) + integer(10, 10**9)
    for comment in comments:
        head += integer(13, string(comment))
    body = []
    for names, count, labels in samples:
        locations = b"".join(varint(function(name)) for name in names)
        wall = count * 10**7
        cpu = wall if labels.get("state") == "running" else 0
        message = bytes_field(1, locations) + bytes_field(2, varint(count) + varint(cpu) + varint(wall))
        for key, text in labels.items():
            message += bytes_field(3, integer(1, string(key)) + integer(2, string(text)))
        body.append(bytes_field(2, message))
    mapping = integer(1, 1) + integer(2, 0x1000) + integer(3, 0x100000)
    mapping += integer(5, string(file)) + integer(6, string("ab12")) + integer(7, 1)
    body.append(bytes_field(3, mapping))
    for name, number in functions.items():
        line = bytes_field(4, integer(1, number))
        body.append(bytes_field(4, integer(1, number) + integer(2, 1) + integer(3, 0x1000 + number) + line))
        body.append(bytes_field(5, integer(1, number) + integer(2, string(name))))
    body += [bytes_field(6, text) for text in strings]
    return gzip.compress(head + b"".join(body), 1)
