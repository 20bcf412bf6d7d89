"""The programs that run.py profiles, and what they do meanwhile."""

import os
import shlex
import shutil
import signal
import subprocess
import time

PROGRAMS = {}


class Missing(Exception):
    pass


def program(*tools):
    """A function that sets a program up, and says what to profile, by its name."""

    def add(function):
        PROGRAMS[function.__name__.replace("_", "-")] = (tools, function)
        return function

    return add


class Work:
    """What a program is profiled doing, in a directory of its own."""

    def __init__(self, directory, seconds):
        self.directory, self.seconds = directory, seconds
        self.started = []

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def run(self, command, **more):
        subprocess.run(
            shlex.split(command), check=True, cwd=self.directory,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more,
        )  # fmt: skip

    def start(self, command, **more):
        """Starts something that serves, or that loads what does; its pid."""
        more.setdefault("stdout", subprocess.DEVNULL)
        process = subprocess.Popen(
            shlex.split(command), cwd=self.directory, stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, **more,
        )  # fmt: skip
        self.started.append(process)
        return process.pid

    def end(self):
        for process in reversed(self.started):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in reversed(self.started):
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


# Each of these returns the profiler's arguments: a process to attach to, or a command to start.


@program("pgbench")
def postgresql(work):
    bin_dir = max(
        (d for d in os.listdir("/usr/lib/postgresql")), default=None, key=float
    )  # fmt: skip
    bin_dir = f"/usr/lib/postgresql/{bin_dir}/bin"
    os.chmod(work.directory, 0o777)
    as_user = "setpriv --reuid=postgres --regid=postgres --clear-groups "
    work.run(f"{as_user}{bin_dir}/initdb -D {work.path('db')} -A trust")
    pid = work.start(
        f"{as_user}{bin_dir}/postgres -D {work.path('db')} -k {work.directory} -p 54329 -h ''"
    )
    for _ in range(100):
        time.sleep(0.1)
        if os.path.exists(work.path(".s.PGSQL.54329")):
            break
    client = f"-h {work.directory} -p 54329 -U postgres postgres"
    time.sleep(1)
    work.run(f"pgbench -i -s 2 {client}")
    work.start(f"pgbench -c 4 -j 1 -T {work.seconds + 5} {client}")
    return ["-p", pid, "--children"]


@program("redis-server", "redis-benchmark")
def redis(work):
    socket = work.path("socket")
    pid = work.start(f"redis-server --port 0 --unixsocket {socket} --save '' --io-threads 2")
    time.sleep(0.5)
    work.start(f"redis-benchmark -s {socket} -l -c 20 -P 4 -t set,get,lpush,lrange_100,zadd")
    return ["-p", pid]


@program("nginx", "wrk")
def nginx(work):
    os.chmod(work.directory, 0o777)
    work.write("index.html", "hello\n" * 1000)
    conf = work.write("nginx.conf", f"""
        daemon off; worker_processes 2; pid {work.path('pid')}; error_log /dev/null;
        events {{ worker_connections 512; }}
        http {{ access_log {work.path('log')}; gzip on; gzip_types *; gzip_min_length 1;
                client_body_temp_path {work.path('b')}; proxy_temp_path {work.path('p')};
                fastcgi_temp_path {work.path('f')}; uwsgi_temp_path {work.path('u')};
                scgi_temp_path {work.path('s')};
                server {{ listen 127.0.0.1:54380; root {work.directory}; }} }}""")  # fmt: skip
    pid = work.start(f"nginx -c {conf}")
    time.sleep(0.5)
    work.start(f"wrk -t1 -c16 -d{work.seconds + 5} -H 'Accept-Encoding: gzip' http://127.0.0.1:54380/")
    return ["-p", pid, "--children"]


@program("sqlite3")
def sqlite3(work):
    work.write("work.sql", """
        CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
        WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300000)
            INSERT INTO t SELECT x, hex(randomblob(8)), x * 0.5 FROM n;
        CREATE INDEX i ON t(b);
        """ + "SELECT count(*), sum(c) FROM t WHERE b LIKE '%A1%' ORDER BY b;" * 200)  # fmt: skip
    return ["--", "sh", "-c", f"exec sqlite3 {work.path('db')} < {work.path('work.sql')}"]


@program("python3")
def python3(work):
    return ["--", "python3", work.write("work.py", """
import hashlib, json, re, sqlite3, threading, zlib
try:
    import numpy
except ImportError:
    numpy = None
def spin():
    while True:
        data = json.dumps({str(i): [i, i * 0.5, "x" * (i % 50)] for i in range(2000)})
        hashlib.sha256(zlib.compress(data.encode())).hexdigest()
        re.findall(r"(\\\\d+)x?", data)
        sorted(json.loads(data).items(), key=lambda item: -item[1][0])
        if numpy is not None:
            matrix = numpy.random.rand(120, 120)
            numpy.linalg.svd(matrix @ matrix.T)
        base = sqlite3.connect(":memory:")
        base.execute("create table t(a)")
        base.executemany("insert into t values (?)", [(i,) for i in range(1000)])
threading.Thread(target=spin, daemon=True).start()
spin()
""")]  # fmt: skip


@program("perl")
def perl(work):
    return ["--", "perl", work.write("work.pl", r"""
use strict; use List::Util qw(sum); use Digest::MD5 qw(md5_hex); use Storable qw(dclone);
sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) }
while (1) {
    my %words; my $text = join ' ', map { md5_hex($_) } 1 .. 3000;
    $words{$1}++ while $text =~ /([a-f]\d+[a-f])/g;
    my @sorted = sort { $words{$b} <=> $words{$a} || $a cmp $b } keys %words;
    my $copy = dclone(\%words); fib(15); my $sum = sum(values %$copy);
}
""")]  # fmt: skip


@program("git")
def git(work):
    """Clones, repacks and searches a repository that is made for it."""
    script = work.write("work.sh", """
        git init -q r && cd r && git config user.email a@b && git config user.name a
        i=0; while [ $i -lt 40 ]; do
            i=$((i + 1)); seq $i $((i * 400 + 3000)) > file$((i % 7)); git add . && git commit -qm "$i"
        done
        while :; do git repack -adfq --depth=50 --window=50; git log -p > /dev/null
            git blame file1 > /dev/null; git grep -c '[13]7$' > /dev/null; git fsck > /dev/null; done
        """)  # fmt: skip
    return ["--children", "--", "sh", script]


CXX_SOURCE = """
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <variant>
#include <vector>
template <int N> struct Deep { static int f(int x) { return Deep<N - 1>::f(x * N) + N; } };
template <> struct Deep<0> { static int f(int x) { return x; } };
int main(int argc, char **)
{
	std::map<std::string, std::vector<std::variant<int, std::string>>> m;
	std::regex r("(a|b)*c+[0-9]{2,5}");
	m["x"].push_back(Deep<400>::f(argc));
	std::sort(m["x"].begin(), m["x"].end());
	return std::regex_match("abc12", r) + %s;
}
"""


def compiling(work, compiler):
    # An expression of some thousand nested operators, for deep recursion.
    work.write("work.cpp", CXX_SOURCE % ("(" * 1500 + "argc" + " + 1)" * 1500))
    script = f"while :; do {compiler} -O2 -fbracket-depth=5000 -c work.cpp -o out.o; done"
    if compiler == "g++":
        script = script.replace("-fbracket-depth=5000 ", "")
    return ["--children", "--", "sh", "-c", f"cd {work.directory}; {script}"]


@program("g++")
def gcc(work):
    return compiling(work, "g++")


@program("clang++")
def clang(work):
    return compiling(work, "clang++")


@program("ffmpeg")
def ffmpeg(work):
    return ["--", "ffmpeg", "-nostdin", "-v", "quiet", "-f", "lavfi", "-i",
            "testsrc2=size=640x360:rate=30", "-vf", "scale=960:540,hue=s=2", "-c:v", "libx264",
            "-f", "null", "-"]  # fmt: skip


@program("x264", "ffmpeg")
def x264(work):
    work.run("ffmpeg -nostdin -v quiet -f lavfi -i testsrc2=size=640x360:rate=30:duration=30 "
             "-pix_fmt yuv420p in.y4m")  # fmt: skip
    return ["--", "x264", "--quiet", "--preset", "slow", "-o", work.path("out.mkv"),
            work.path("in.y4m")]  # fmt: skip


@program("rustc")
def rust_thin_lto(work):
    work.write("work.rs", """
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::{fmt::Write, thread};
fn work(seed: u64) -> usize {
    let mut map: HashMap<String, Vec<u64>> = HashMap::new();
    let mut x = seed;
    for i in 0..20000u64 {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        map.entry(format!("{:x}", x % 5000)).or_default().push(i);
    }
    let mut tree: BTreeMap<_, _> = map.iter().map(|(k, v)| (k.clone(), v.iter().sum::<u64>())).collect();
    tree.retain(|_, v| *v % 3 != 0);
    let mut text = String::new();
    for (k, v) in &tree { write!(text, "{k}={v:?};").unwrap(); }
    let mut parts: Vec<&str> = text.split(';').collect();
    parts.sort_by_key(|p| p.len());
    std::panic::catch_unwind(|| if seed % 2 == 0 { panic!("even") }).is_ok() as usize + parts.len()
}
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let total = Arc::new(Mutex::new(0usize));
    let threads: Vec<_> = (0..2).map(|t| { let total = total.clone();
        thread::spawn(move || for i in 1.. { *total.lock().unwrap() += work(i * 7 + t); }) }).collect();
    for t in threads { t.join().unwrap(); }
}
""")  # fmt: skip
    work.run("rustc --edition 2021 -C opt-level=3 -C lto=thin -C codegen-units=4 work.rs -o work")
    return ["--", work.path("work")]


@program("g++")
def cxx_coroutines(work):
    work.write("work.cpp", """
#include <algorithm>
#include <coroutine>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>
struct Numbers {
	struct promise_type {
		int value;
		Numbers get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
		std::suspend_always initial_suspend() { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		std::suspend_always yield_value(int v) { value = v; return {}; }
		void return_void() {}
		void unhandled_exception() { throw; }
	};
	std::coroutine_handle<promise_type> handle;
	~Numbers() { if (handle) handle.destroy(); }
};
__attribute__((noinline)) int thrower(int n) { if (n % 3 == 0) throw std::runtime_error(std::to_string(n)); return n; }
__attribute__((noinline)) int deeper(int n, int depth) { return depth ? deeper(n, depth - 1) + 1 : thrower(n); }
Numbers count(int n) { for (int i = 0; i < n; i++) { int v = 0; try { v = deeper(i, i % 20); } catch (const std::exception &e) { v = e.what()[0]; } co_yield v; } }
Numbers nested(int n) { auto inner = count(n); while (!inner.handle.done()) { inner.handle.resume(); co_yield inner.handle.promise().value + rand() % 7; } }
int main() { for (;;) { std::vector<int> all; auto n = nested(3000); while (!n.handle.done()) { n.handle.resume(); all.push_back(n.handle.promise().value); } std::sort(all.begin(), all.end(), [](int a, int b) { return a % 100 < b % 100; }); } }
""")  # fmt: skip
    work.run("g++ -std=c++20 -O2 work.cpp -o work")
    return ["--", work.path("work")]


C_SOURCE = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <math.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void work(void)
{
	int *numbers = malloc(20000 * sizeof(int)); char text[256]; double sum = 0;
	for (int i = 0; i < 20000; i++) numbers[i] = rand();
	qsort(numbers, 20000, sizeof(int), compare);
	for (int i = 0; i < 3000; i++) { snprintf(text, sizeof(text), "%d %g %s", numbers[i], sqrt(i), "text"); sum += strlen(text) + sin(i); free(malloc(i)); }
	nanosleep(&(struct timespec){.tv_nsec = 100000 + (sum < 0)}, NULL);
	free(numbers);
}
static void *thread(void *p) { for (;;) work(); return p; }
int main(void) { pthread_t t; pthread_create(&t, NULL, thread, NULL); for (;;) work(); }
"""


@program("musl-gcc")
def musl_static(work):
    work.write("work.c", C_SOURCE)
    work.run("musl-gcc -static -O2 work.c -o work -lm")
    return ["--", work.path("work")]


@program("gcc")
def glibc_static(work):
    work.write("work.c", C_SOURCE)
    work.run("gcc -static -O2 work.c -o work -lm -lpthread")
    return ["--", work.path("work")]


GO_SOURCE = """package main
import ("compress/gzip"; "crypto/sha256"; "encoding/json"; "fmt"; "io"; "net"; "regexp"; "sort"; "strings"; "sync")
type item struct { Name string; Values []float64 }
func compute() int {
	var items []item
	for i := 0; i < 500; i++ { items = append(items, item{fmt.Sprintf("n%d", i*7919%500), []float64{float64(i), 0.5}}) }
	sort.Slice(items, func(a, b int) bool { return items[a].Name < items[b].Name })
	text, _ := json.Marshal(items)
	var back []item
	json.Unmarshal(text, &back)
	w := gzip.NewWriter(io.Discard); w.Write(text); w.Close()
	sum := sha256.Sum256(text)
	return len(regexp.MustCompile(`n\\d+[13]`).FindAllString(string(text), -1)) + int(sum[0]) + len(strings.Fields(string(text)))
}
func echo(listener net.Listener) { for { c, _ := listener.Accept(); go io.Copy(c, c) } }
func talk(address string) { c, _ := net.Dial("tcp", address); b := make([]byte, 512); for { c.Write(b); io.ReadFull(c, b) } }
func main() {
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	go echo(listener)
	var lock sync.Mutex
	total := 0
	for i := 0; i < 2; i++ { go talk(listener.Addr().String()); go func() { for { n := compute(); lock.Lock(); total += n; lock.Unlock() } }() }
	select {}
}
"""


def build_go(work, flags, source=GO_SOURCE, cgo="0"):
    work.write("work.go", source)
    work.write("go.mod", "module example.com/work\ngo 1.19\n")
    environment = {**os.environ, "CGO_ENABLED": cgo, "GOFLAGS": "", "GOCACHE": work.path("cache")}
    work.run(f"go build {flags} -o work .", env=environment)
    return ["--", work.path("work")]


@program("go")
def go_default(work):
    return build_go(work, "")


@program("go")
def go_stripped(work):
    return build_go(work, "-ldflags='-s -w'")


@program("go", "gcc")
def go_cgo(work):
    work.write("via.c", '#include "_cgo_export.h"\nint viaC(int x) { return callback(x) + 1; }\n')
    return build_go(work, "", cgo="1", source="""package main
// #include <math.h>
// static double compute(int n) { double s = 0; for (int i = 1; i < n; i++) s += sin(i) * sqrt(i); return s; }
// int viaC(int x);
// #cgo LDFLAGS: -lm
import "C"
import "fmt"
//export callback
func callback(x C.int) C.int { s := 0; for i := 0; i < 100000; i++ { s = s*31 + i ^ int(x) }; return C.int(s) }
func main() {
	total := 0.0
	for { total += float64(C.compute(100000)) + float64(C.viaC(3)); if len(fmt.Sprint(total)) > 100 { break } }
}
""")  # fmt: skip


NODE_SOURCE = """
const zlib = require('zlib'), crypto = require('crypto'), fs = require('fs');
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
class Shape { area(k) { return k * 2; } } class Circle extends Shape { area(k) { return super.area(k) * 3.14; } }
async function work() {
	const data = JSON.stringify(Array.from({length: 2000}, (_, i) => ({i, s: 'x'.repeat(i % 40), f: i / 3})));
	JSON.parse(data).sort((a, b) => a.s.length - b.s.length || b.i - a.i).map(x => new Circle().area(x.f));
	fib(20); data.replace(/"f":(\\d+)/g, (m, d) => d * 2); new Map([...data].map((c, i) => [i, c]));
	await new Promise(done => zlib.gzip(data, done)); crypto.createHash('sha256').update(data).digest();
	await fs.promises.readFile(__filename);
	setImmediate(work);
}
work();
"""


@program("node")
def node(work):
    # Its map is written in pieces of two megabytes, the last at the end.
    return ["--", "node", "--perf-basic-prof", work.write("work.js", NODE_SOURCE)]


@program("node")
def node_interpreted_frames(work):
    return ["--", "node", "--perf-basic-prof", "--interpreted-frames-native-stack",
            work.write("work.js", NODE_SOURCE)]  # fmt: skip


@program("gcc")
def ucontext_sigaltstack(work):
    work.write("work.c", """
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
static ucontext_t main_context, contexts[4];
static volatile unsigned long total;
__attribute__((noinline)) void spin(int n) { for (int i = 0; i < n; i++) total += i; }
__attribute__((noinline)) void recurse(int depth) { if (depth) recurse(depth - 1); else spin(100000); total++; }
static void coroutine(int i) { for (;;) { recurse(10 + i); swapcontext(&contexts[i], &main_context); } }
static void on_timer(int n, siginfo_t *info, void *context) { (void)n, (void)info, (void)context; recurse(5); }
int main(void)
{
	stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
	sigaltstack(&stack, NULL);
	sigaction(SIGALRM, &(struct sigaction){.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_ONSTACK}, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 500}, {0, 500}}, NULL);
	for (int i = 0; i < 4; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack = (stack_t){.ss_sp = malloc(65536), .ss_size = 65536};
		makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
	}
	for (int i = 0;; i++) swapcontext(&main_context, &contexts[i % 4]);
}
""")  # fmt: skip
    work.run("gcc -O2 work.c -o work")
    return ["--", work.path("work")]


@program("qemu-x86_64", "perl")
def qemu_user(work):
    return ["--", "qemu-x86_64", shutil.which("perl"), "-e",
            "sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) } f(20) while 1"]  # fmt: skip
