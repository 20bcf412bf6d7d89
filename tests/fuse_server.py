# SPDX-License-Identifier: MIT
"""A file system of one file whose server stops answering: fuse_server.py DIRECTORY FILE STALL [USER]

DIRECTORY/prog has FILE's bytes, until the file STALL exists: from then on no request is answered
any more. What is written to it is forgotten. With USER, a number,
the file system is that user's alone. Whoever opens it with O_SYNC shares no page cache. Says "ready" when it is mounted. Speaks the kernel's protocol (linux/fuse.h) by itself.
"""

import ctypes
import errno
import os
import stat
import struct
import sys

IN_HEADER = struct.Struct("<IIQQIIII")  # len, opcode, unique, nodeid, uid, gid, pid, padding
LOOKUP, FORGET, GETATTR, OPEN, READ, WRITE, RELEASE, FLUSH = 1, 2, 3, 14, 15, 16, 18, 25
INIT, OPENDIR, RELEASEDIR, ACCESS, INTERRUPT, BATCH_FORGET = 26, 27, 29, 34, 36, 42
NO_REPLY = {FORGET, INTERRUPT, BATCH_FORGET}
ROOT, FILE = 1, 2
MS_NODEV = 4
FOPEN_DIRECT_IO = 1


class Server:
    def __init__(self, content):
        self.content = content

    def attributes(self, node):
        mode, size = (stat.S_IFDIR, 0) if node == ROOT else (stat.S_IFREG, len(self.content))
        blocks = (size + 511) // 512
        return struct.pack("<QQQQQQIIIIIIIIII", node, size, blocks, 0, 0, 0, 0, 0, 0,
                           mode | 0o755, 1, 0, 0, 0, 4096, 0)  # fmt: skip

    def answer(self, opcode, node, argument):
        """(error, what follows the header)."""
        if opcode == INIT:
            return 0, struct.pack("<IIIIHHIIHH32x", 7, 31, 65536, 0, 12, 9, 65536, 1, 16, 0)
        if opcode == LOOKUP:
            if argument.rstrip(b"\0") != b"prog":
                return errno.ENOENT, b""
            return 0, struct.pack("<QQQQII", FILE, 0, 0, 0, 0, 0) + self.attributes(FILE)
        if opcode == GETATTR:
            return 0, struct.pack("<QII", 0, 0, 0) + self.attributes(node)
        if opcode in (OPEN, OPENDIR):
            (flags,) = struct.unpack_from("<I", argument)
            own_cache = FOPEN_DIRECT_IO if flags & os.O_SYNC == os.O_SYNC else 0
            return 0, struct.pack("<QII", 1, own_cache, 0)
        if opcode == WRITE:
            _, _, size = struct.unpack_from("<QQI", argument)
            return 0, struct.pack("<II", size, 0)
        if opcode == READ:
            _, offset, size = struct.unpack_from("<QQI", argument)
            return 0, self.content[offset : offset + size]
        if opcode in (RELEASE, RELEASEDIR, FLUSH, ACCESS):
            return 0, b""
        return errno.ENOSYS, b""

    def serve(self, device, stall):
        while True:
            try:
                request = os.read(device, 1 << 20)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT):
                    continue
                return  # unmounted
            _, opcode, unique, node, *_ = IN_HEADER.unpack_from(request)
            if opcode in NO_REPLY or os.path.exists(stall):
                continue
            error, body = self.answer(opcode, node, request[IN_HEADER.size :])
            os.write(device, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)


def main():
    directory, file, stall, *user = sys.argv[1:]
    with open(file, "rb") as content:
        server = Server(content.read())
    device = os.open("/dev/fuse", os.O_RDWR)
    rights = f"user_id={user[0]},group_id={user[0]}" if user else "user_id=0,group_id=0,allow_other"
    options = f"fd={device},rootmode=40000,{rights}"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"profiler-test", directory.encode(), b"fuse", MS_NODEV, options.encode()) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    print("ready", flush=True)
    server.serve(device, stall)


if __name__ == "__main__":
    main()
