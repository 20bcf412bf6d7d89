# SPDX-License-Identifier: MIT
"""A strict reader of pprof's profile.proto: whatever a consumer could trip over is an error.

Stricter than `go tool pprof`: the ids of mappings, functions and locations are 1..n in the order
of the file, no field is unknown, every string is UTF-8, every location with a mapping lies in it.
"""

import gzip

VARINT, FIXED64, BYTES = 0, 1, 2
FIRST_GOROUTINE = 10**9  # where a number of a thread is asked for, a goroutine's is above all of them


# What a runtime tells of a thread.
RUNTIME_LABELS = {"gil", "gc", "task", "awaited_by", "interpreter"}


class Malformed(Exception):
    """The profile breaks a rule."""


# The stack of time that the kernel counted, and no tick saw.
UNSEEN = "[seen at no tick]"


def check(condition, what):
    if not condition:
        raise Malformed(what)


def read_varint(data, at):
    value = shift = 0
    while True:
        check(at < len(data), "a varint is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            check(value < 1 << 64, "a varint is larger than 64 bits")
            return value, at
        check(shift < 70, "a varint is too long")


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def fields(data):
    """(number, wire type, value) of each field of a message."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        check(number > 0, "a field's number is 0")
        if wire == VARINT:
            value, at = read_varint(data, at)
        elif wire == BYTES:
            length, at = read_varint(data, at)
            check(at + length <= len(data), f"field {number} is cut off")
            value = data[at : at + length]
            at += length
        else:
            raise Malformed(f"field {number} has wire type {wire}")
        yield number, wire, value


def packed(wire, value):
    """The numbers of a repeated field, packed or not."""
    if wire == VARINT:
        return [value]
    numbers, at = [], 0
    while at < len(value):
        number, at = read_varint(value, at)
        numbers.append(number)
    return numbers


def message(data, spec):
    """A message as a dict. spec: number -> (name, kind); kind: int, uint, bool, ints, uints,
    messages (bytes, repeated) or message (bytes)."""
    result = {}
    for name, kind in spec.values():
        result[name] = {"message": None}.get(kind, [] if kind.endswith("s") else 0)
    seen = set()
    for number, wire, value in fields(data):
        check(number in spec, f"unknown field {number}")
        name, kind = spec[number]
        if kind in ("ints", "uints"):
            numbers = packed(wire, value)
            result[name] += [signed(n) for n in numbers] if kind == "ints" else numbers
            continue
        check((wire == BYTES) == kind.startswith("message"), f"{name}: wire type {wire}")
        if kind == "messages":
            result[name].append(value)
            continue
        check(number not in seen, f"{name} comes twice")
        seen.add(number)
        result[name] = signed(value) if kind == "int" else value
    return result


PROFILE = {
    1: ("sample_type", "messages"),
    2: ("sample", "messages"),
    3: ("mapping", "messages"),
    4: ("location", "messages"),
    5: ("function", "messages"),
    6: ("string_table", "messages"),
    7: ("drop_frames", "int"),
    8: ("keep_frames", "int"),
    9: ("time_nanos", "int"),
    10: ("duration_nanos", "int"),
    11: ("period_type", "message"),
    12: ("period", "int"),
    13: ("comment", "ints"),
    14: ("default_sample_type", "int"),
    15: ("doc_url", "int"),
}
VALUE_TYPE = {1: ("type", "int"), 2: ("unit", "int")}
SAMPLE = {1: ("location_id", "uints"), 2: ("value", "ints"), 3: ("label", "messages")}
LABEL = {1: ("key", "int"), 2: ("str", "int"), 3: ("num", "int"), 4: ("num_unit", "int")}
MAPPING = {
    1: ("id", "uint"),
    2: ("memory_start", "uint"),
    3: ("memory_limit", "uint"),
    4: ("file_offset", "uint"),
    5: ("filename", "int"),
    6: ("build_id", "int"),
    7: ("has_functions", "uint"),
    8: ("has_filenames", "uint"),
    9: ("has_line_numbers", "uint"),
    10: ("has_inline_frames", "uint"),
}
LOCATION = {
    1: ("id", "uint"),
    2: ("mapping_id", "uint"),
    3: ("address", "uint"),
    4: ("line", "messages"),
    5: ("is_folded", "uint"),
}
LINE = {1: ("function_id", "uint"), 2: ("line", "int"), 3: ("column", "int")}
FUNCTION = {
    1: ("id", "uint"),
    2: ("name", "int"),
    3: ("system_name", "int"),
    4: ("filename", "int"),
    5: ("start_line", "int"),
}


class Frame:
    """One function of a stack, inlined or not."""

    def __init__(self, name, system_name="", file="", line=0, inlined=False, location=None):
        self.name, self.system_name, self.file, self.line = name, system_name, file, line
        self.inlined, self.location = inlined, location

    def __repr__(self):
        return f"{self.name} ({self.file}:{self.line})"


class Sample:
    """One sample: its values, its labels and its stack, root first."""

    def __init__(self, values, labels, frames, locations):
        self.count, self.cpu_ns, self.wall_ns = values
        self.labels, self.frames, self.locations = labels, frames, locations
        self.pid, self.goid, self.wait = labels.get("pid"), labels.get("goid"), labels.get("wait")
        self.tid = FIRST_GOROUTINE + self.goid if self.goid else labels.get("tid")
        self.process = labels.get("process")  # with --children
        self.thread, self.state = labels.get("thread"), labels.get("state")
        self.kind = labels.get("kind")
        self.syscall, self.descriptor = labels.get("syscall"), labels.get("descriptor")

    @property
    def stack(self):
        return tuple(frame.name for frame in self.frames)


class Profile:
    """A whole profile, read from the bytes of a file and checked."""

    def __init__(self, data, differences=False, pushed=False):
        """`differences`: values may be negative, or 0. `pushed`: labels were left out."""
        self.differences, self.pushed = differences, pushed
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        check(data, "the profile is empty")
        self.raw = message(data, PROFILE)
        self._read_strings()
        self._read_head()
        self.mappings = self._read_ids("mapping", MAPPING, self._check_mapping)
        self.functions = self._read_ids("function", FUNCTION, self._check_function)
        self.locations = self._read_ids("location", LOCATION, self._check_location)
        self.samples = [self._read_sample(message(data, SAMPLE)) for data in self.raw["sample"]]

    def _read_strings(self):
        try:
            self.strings = [string.decode("utf-8") for string in self.raw["string_table"]]
        except UnicodeDecodeError as error:
            raise Malformed(f"a string is not UTF-8: {error}") from error
        check(self.strings and self.strings[0] == "", 'string_table[0] is not ""')
        check(len(set(self.strings)) == len(self.strings), "a string is there twice")
        for string in self.strings:
            check(string.isprintable() or "\n" not in string, f"{string!r} has several lines")

    def string(self, index):
        check(0 <= index < len(self.strings), f"there is no string {index}")
        return self.strings[index]

    def _value_type(self, data):
        raw = message(data, VALUE_TYPE)
        return self.string(raw["type"]), self.string(raw["unit"])

    def _read_head(self):
        self.sample_types = [self._value_type(data) for data in self.raw["sample_type"]]
        check(
            self.sample_types
            == [("samples", "count"), ("cpu", "nanoseconds"), ("wall", "nanoseconds")],
            f"the sample types are {self.sample_types}",
        )
        check(self.raw["period_type"] is not None, "there is no period type")
        self.period_type = self._value_type(self.raw["period_type"])
        check(self.period_type[1] == "nanoseconds", f"the period type is {self.period_type}")
        self.period_ns = self.raw["period"]
        self.duration_ns = self.raw["duration_nanos"]
        self.time_ns = self.raw["time_nanos"]
        check(self.period_ns > 0, "there is no period")
        check(self.duration_ns >= 0 and self.time_ns > 0, "there is no time")
        default = self.string(self.raw["default_sample_type"])
        check(default == "wall", f"the default sample type is {default!r}")
        self.comments = [self.string(index) for index in self.raw["comment"]]

    def _read_ids(self, name, spec, check_one):
        items = [message(data, spec) for data in self.raw[name]]
        for position, item in enumerate(items, 1):
            check(item["id"] == position, f"{name} {position} has the id {item['id']}")
            check_one(item)
        return items

    def _check_mapping(self, mapping):
        check(mapping["memory_start"] < mapping["memory_limit"], f"an empty mapping: {mapping}")
        mapping["filename"] = self.string(mapping["filename"])
        mapping["build_id"] = self.string(mapping["build_id"])
        check(mapping["filename"], "a mapping without a file name")

    def _check_function(self, function):
        for key in ("name", "system_name", "filename"):
            function[key] = self.string(function[key])
        check(function["name"], "a function without a name")
        check(function["start_line"] >= 0, "a negative line")

    def _check_location(self, location):
        mapping = None
        if location["mapping_id"]:
            check(location["mapping_id"] <= len(self.mappings), "a location's mapping is unknown")
            mapping = self.mappings[location["mapping_id"] - 1]
            check(
                mapping["memory_start"] <= location["address"] < mapping["memory_limit"],
                f"the address {location['address']:#x} is not in its mapping {mapping}",
            )
        location["mapping"] = mapping
        location["line"] = [message(data, LINE) for data in location["line"]]
        for line in location["line"]:
            check(1 <= line["function_id"] <= len(self.functions), "a line's function is unknown")
            check(line["line"] >= 0, "a negative line")
            line["function"] = self.functions[line["function_id"] - 1]
            check(not mapping or mapping["has_functions"], "names, but no has_functions")
            if line["line"] and mapping:
                check(mapping["has_line_numbers"], "lines, but no has_line_numbers")
            if line["function"]["filename"] and mapping:
                check(mapping["has_filenames"], "files, but no has_filenames")
        if len(location["line"]) > 1 and mapping:
            check(mapping["has_inline_frames"], "inlined calls, but no has_inline_frames")

    def _read_labels(self, raw):
        labels = {}
        for data in raw:
            label = message(data, LABEL)
            key = self.string(label["key"])
            check(key and key not in labels, f"the label {key!r} is there twice")
            check(not (label["str"] and label["num"]), f"the label {key!r} is two things")
            if key in ("pid", "tid", "goid"):
                check(label["num"] > 0, f"the label {key} is {label['num']}")
                labels[key] = label["num"]
            else:
                labels[key] = self.string(label["str"])
        if self.pushed:
            return labels
        known = {"process", "syscall", "descriptor", "unwound", "since", "wait", "goid"}
        known |= RUNTIME_LABELS | ({"pprof::base"} if self.differences else set())
        least = {"pid", "thread", "state", "kind"}
        check(least <= set(labels), f"the labels are {sorted(labels)}")
        # A goroutine's have no tid, and the program's own labels.
        check(
            "tid" not in labels or not set(labels) - known - least - {"tid"},
            f"the labels are {sorted(labels)}",
        )
        check("tid" not in labels or not {"wait", "goid"} & set(labels), f"a thread's: {labels}")
        check(
            labels["state"] != "running" or "syscall" not in labels,
            f"it runs, but waits in {labels.get('syscall')}",
        )
        for name in ("running", "stopped", "runnable"):
            check((labels["state"] == name) == (labels["kind"] == name), f"the labels are {labels}")
        check(
            {"syscall", "wait"} & set(labels) or "descriptor" not in labels,
            "a descriptor of nothing that is waited in",
        )
        return labels

    def _frames(self, location):
        if not location["line"]:
            mapping = location["mapping"]
            name = mapping["filename"].rsplit("/", 1)[-1] if mapping else "?"
            return [Frame(f"[{name}+?]", location=location)]
        return [
            Frame(
                line["function"]["name"],
                line["function"]["system_name"],
                line["function"]["filename"],
                line["line"],
                position < len(location["line"]) - 1,
                location,
            )
            for position, line in enumerate(location["line"])
        ]

    def _read_sample(self, raw):
        check(len(raw["value"]) == len(self.sample_types), "another number of values than of types")
        check(self.differences or all(value >= 0 for value in raw["value"]), f"a negative value: {raw['value']}")
        check(raw["location_id"], "a sample without a stack")
        locations = []
        for number in raw["location_id"]:
            check(1 <= number <= len(self.locations), f"the location {number} is unknown")
            locations.append(self.locations[number - 1])
        leaf_first = [frame for location in locations for frame in self._frames(location)]
        sample = Sample(
            raw["value"], self._read_labels(raw["label"]), leaf_first[::-1], locations[::-1]
        )
        unseen = leaf_first and leaf_first[0].name == UNSEEN
        check(self.differences or (sample.count > 0) != unseen, "a sample that counts 0")
        check(sample.cpu_ns == 0 or self.differences or sample.cpu_ns <= sample.wall_ns, "more cpu than wall")
        if self.pushed and not sample.state:
            return sample
        check(
            sample.cpu_ns == 0 or sample.state == "running",
            f"{sample.cpu_ns} ns on a CPU, {sample.state}",
        )
        check(
            sample.state in ("running", "runnable", "sleeping", "disk", "stopped"),
            f"the state is {sample.state!r}",
        )
        return sample
