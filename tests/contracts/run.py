#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is pushed, read by the servers' own definitions and compared, field by field, with the files.

    run.py PROFILER FIXTURES TOOLS

TOOLS is a directory with the program pyroscope (of pyroscope.go), node_modules (of package.json) and
python (opentelemetry-proto): the generated classes of Pyroscope's API, of Parca's and of
OpenTelemetry's protocol. In CI this is a step of its own; it needs Go, Node and pip.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(sys.argv[3], "python")]
import pprof  # noqa: E402 (their places are known only now)
import pprof_maker  # noqa: E402
import push_server  # noqa: E402
from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: E402
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2  # noqa: E402

TIMEOUT_S = 120
LABELS = {"service_name": "shöp", "host": 'a,b}c=d "q"', "region": "eu"}


class Plain:
    """What a profile says, whoever read it: {(state, stack): [samples, cpu, wall]}; a stack has the
    address, the mapping and the lines of each location, leaf first."""

    def __init__(self, *head):
        self.head, self.samples = head, {}

    def add(self, state, stack, values):
        sums = self.samples.setdefault((state, tuple(stack)), [0] * len(values))
        self.samples[state, tuple(stack)] = [a + b for a, b in zip(sums, values)]

    def __eq__(self, other):
        return self.head == other.head and self.samples == other.samples


def of_file(data, state=None):
    """As our own strict reader sees it; `state`: that of all samples, which do not say it."""
    profile = pprof.Profile(data, pushed=True)
    plain = Plain(profile.sample_types, profile.period_type, profile.period_ns, profile.time_ns, profile.duration_ns)
    for sample in profile.samples:
        stack = []
        for location in sample.locations[::-1]:
            m = location["mapping"]
            stack.append((
                location["address"],
                m and (m["memory_start"], m["memory_limit"], m["file_offset"], m["filename"], m["build_id"]),
                tuple((f["name"], f["system_name"], f["filename"], f["start_line"], line["line"])
                      for line in location["line"] for f in [line["function"]]),
            ))  # fmt: skip
        plain.add(state or sample.state, stack, [sample.count, sample.cpu_ns, sample.wall_ns])
    return plain


def of_pyroscope(profile):
    """Of the JSON of Pyroscope's classes, which leave zeros out."""

    def number(item, name):
        return int(item.get(name, 0))

    def text(item, name):
        return profile["stringTable"][number(item, name)]

    def type_of(item):
        return text(item, "type"), text(item, "unit")

    mappings = {m["id"]: (number(m, "memoryStart"), number(m, "memoryLimit"), number(m, "fileOffset"),
                          text(m, "filename"), text(m, "buildId")) for m in profile["mapping"]}  # fmt: skip
    functions = {f["id"]: (text(f, "name"), text(f, "systemName"), text(f, "filename"), number(f, "startLine"))
                 for f in profile["function"]}  # fmt: skip
    locations = {}
    for item in profile["location"]:
        lines = tuple((*functions[line["functionId"]], number(line, "line")) for line in item.get("line", []))
        locations[item["id"]] = number(item, "address"), mappings.get(item.get("mappingId")), lines
    plain = Plain([type_of(t) for t in profile["sampleType"]], type_of(profile["periodType"]),
                  number(profile, "period"), number(profile, "timeNanos"), number(profile, "durationNanos"))  # fmt: skip
    for sample in profile["sample"]:
        (label,) = sample["label"]
        assert text(label, "key") == "state" and set(label) == {"key", "str"}, label
        plain.add(text(label, "str"), [locations[n] for n in sample["locationId"]], list(map(int, sample["value"])))
    return plain


def check_known(message):
    """No field of it, or of those in it, is one that its definition has not."""
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.message_type:
            for item in [value] if hasattr(value, "ListFields") else value:
                check_known(item)


def of_otlp(body):
    """(labels, Plain) of a request of OpenTelemetry's; its types are profiles of their own."""
    request = profiles_service_pb2.ExportProfilesServiceRequest.FromString(body)
    check_known(request)
    tables, texts = request.dictionary, request.dictionary.string_table
    for name in ("mapping_table", "location_table", "function_table", "link_table", "attribute_table", "stack_table"):
        assert not getattr(tables, name)[0].ListFields(), f"{name} does not begin with nothing"
    assert texts[0] == ""

    def attributes(indices):
        return {texts[a.key_strindex]: a.value.string_value for a in (tables.attribute_table[i] for i in indices)}

    def mapping(index):
        if not index:
            return None
        m = tables.mapping_table[index]
        build_id = attributes(m.attribute_indices).get("process.executable.build_id.gnu", "")
        return m.memory_start, m.memory_limit, m.file_offset, texts[m.filename_strindex], build_id

    def function(line):
        f = tables.function_table[line.function_index]
        return texts[f.name_strindex], texts[f.system_name_strindex], texts[f.filename_strindex], f.start_line

    def stack(index):
        return tuple(
            (at.address, mapping(at.mapping_index), tuple((*function(line), line.line) for line in at.lines))
            for at in (tables.location_table[i] for i in tables.stack_table[index].location_indices)
        )

    def type_of(value):
        return texts[value.type_strindex], texts[value.unit_strindex]

    (resource,) = request.resource_profiles
    (scope,) = resource.scope_profiles
    assert len({profile.profile_id for profile in scope.profiles}) == len(scope.profiles)
    first = scope.profiles[0]
    plain = Plain([type_of(profile.sample_type) for profile in scope.profiles], type_of(first.period_type),
                  first.period, first.time_unix_nano, first.duration_nano)  # fmt: skip
    for position, profile in enumerate(scope.profiles):
        assert (profile.period, profile.time_unix_nano, profile.duration_nano) == plain.head[2:]
        for sample in profile.samples:
            (value,) = sample.values
            values = [0] * len(scope.profiles)
            values[position] = value
            plain.add(attributes(sample.attribute_indices)["state"], stack(sample.stack_index), values)
    labels = {a.key: a.value.string_value for a in resource.resource.attributes}
    return labels, plain


def push(profiler, url, paths):
    labels = [f"--label={key}={value}" for key, value in LABELS.items()]
    subprocess.run([profiler, "push", "-q", url, *labels, *paths], check=True, timeout=TIMEOUT_S)


def check_pyroscope(profiler, tools, paths, expected):
    """Taken by the handler that their module makes, and read by its classes."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as lines:
        receiver = subprocess.Popen([os.path.join(tools, "pyroscope")], stdout=lines, stderr=subprocess.PIPE, text=True)
        try:
            push(profiler, "http://" + receiver.stderr.readline().strip(), paths)
        finally:
            receiver.kill()
            receiver.communicate()
        lines.seek(0)
        said = list(map(json.loads, lines))
    for one in said:
        assert one["labels"] == {"__name__": "wall", **LABELS}, one["labels"]
    assert len({one["id"] for one in said}) == len(paths) and all(len(one["id"]) == 36 for one in said), said
    assert [of_pyroscope(one["profile"]) for one in said] == expected
    assert expected[0] != expected[-1], "all is the same"


def check_otlp(profiler, paths, expected):
    server = push_server.Server()
    try:
        push(profiler, "otlp+" + server.url, paths)
    finally:
        server.close()
    wanted = {"service.name": LABELS["service_name"], "host.name": LABELS["host"], "region": LABELS["region"]}
    for request, plain in zip(server.requests, expected, strict=True):
        assert of_otlp(request.body) == (wanted, plain)


def check_parca(profiler, tools, paths, expected):
    """A series for each state; what has no name keeps its address."""
    server = push_server.Server()
    try:
        push(profiler, "parca+" + server.url, paths)
    finally:
        server.close()
    found = {}
    for request in server.requests:
        said = subprocess.run(
            ["node", os.path.join(HERE, "parca.mjs"), os.path.join(tools, "node_modules")],
            input=request.body, capture_output=True, check=True, timeout=TIMEOUT_S,
        ).stdout  # fmt: skip
        (series,) = json.loads(said)["series"]
        labels = {label["name"]: label["value"] for label in series["labels"]["labels"]}
        state = labels.pop("state")
        assert labels == {"__name__": "wall", **LABELS}, labels
        (sample,) = series["samples"]
        plain = of_file(base64.b64decode(sample["rawProfile"]), state)
        window = found.setdefault(plain.head[3], Plain(*plain.head))
        window.samples.update(plain.samples)
    n_left = 0
    for plain in expected:
        wanted = Plain(*plain.head)
        for (state, stack), values in plain.samples.items():
            left = [is_left(mapping, lines) for _, mapping, lines in stack]
            n_left += sum(left)
            wanted.add(state, [(at, m, () if skip else lines) for (at, m, lines), skip in zip(stack, left)], values)
        assert found[plain.head[3]] == wanted
    assert n_left, "everything has a name"


def is_left(mapping, lines):
    """To the server to be named."""
    return mapping and mapping[4] and len(lines) == 1 and lines[0][0].startswith("[") and "+0x" in lines[0][0]


def sample(profiler, fixtures, directory):
    """Windows of threads that run and sleep."""
    target = subprocess.Popen([os.path.join(fixtures, "threads"), "5", "2", "1"], stdout=subprocess.PIPE, text=True)
    try:
        target.stdout.readline()
        subprocess.run([profiler, "-q", "-p", str(target.pid), "-d", "1", "-F", "199", "--every=500ms", "-o", directory],
                       check=True, timeout=TIMEOUT_S)  # fmt: skip
    finally:
        target.kill()
        target.communicate()


def main():
    profiler, fixtures, tools = sys.argv[1:4]
    with tempfile.TemporaryDirectory(prefix="profiler-contracts-") as directory:
        sample(profiler, fixtures, directory)
        odd = [(["vector<std::pair<int, char> >::operator[]", "[made+0x1f]", "ä\\b"], 3, {"state": "running"}),
               ([f"deep{i}" for i in range(999)], 4, {"state": "sleeping"})]  # fmt: skip
        with open(os.path.join(directory, "odd.pb.gz"), "wb") as file:
            file.write(pprof_maker.make(odd, age_s=0))
        paths = sorted((os.path.join(directory, name) for name in os.listdir(directory)), key=os.path.getmtime)
        expected = []
        for path in paths:
            with open(path, "rb") as file:
                expected.append(of_file(file.read()))
        check_pyroscope(profiler, tools, paths, expected)
        print("pyroscope ok")
        check_otlp(profiler, paths, expected)
        print("otlp ok")
        check_parca(profiler, tools, paths, expected)
        print("parca ok")


if __name__ == "__main__":
    main()
