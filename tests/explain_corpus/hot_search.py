"""expect: hot find_user
A report searches a list from its start for each order."""
import signal

signal.alarm(90)
users = [f"user{n}" for n in range(3000)]


def find_user(name):
    for place, user in enumerate(users):
        if user == name:
            return place
    return None


def format_line(place):
    return f"{place:>10}"


def report():
    lines = []
    for order in range(0, 3000, 7):
        lines.append(format_line(find_user(f"user{order}")))
    return "\n".join(lines)


print("ready", flush=True)
while True:
    report()
