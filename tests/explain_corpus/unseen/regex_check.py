"""expect: hot check_address
A pattern with nested repetition tries every way to match an address that is wrong."""
import re
import signal

signal.alarm(90)
ADDRESS = re.compile(r"^([a-z0-9]+\.?)+@example\.com$")


def check_address(text):
    return ADDRESS.match(text) is not None


def import_users(lines):
    return [line for line in lines if check_address(line)]


users = ["ann.b@example.com", "carl@example.com", "abcdefghijklmnopqr", "dora.e.f@example.com"]
print("ready", flush=True)
while True:
    import_users(users)
