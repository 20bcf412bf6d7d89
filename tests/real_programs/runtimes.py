"""Those of programs.py that make code while they run."""

import os
import time

from programs import program

JAVA_SOURCE = """
import java.util.*;
import java.util.stream.*;
public class Work {
	interface Shape { double area(double x); }
	static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
	static double compute(int seed) {
		Map<String, List<Integer>> map = new HashMap<>();
		for (int i = 0; i < 5000; i++) map.computeIfAbsent("k" + (i * 7919 + seed) % 997, k -> new ArrayList<>()).add(i);
		Shape s = x -> Math.sin(x) * 2;
		double sum = map.values().stream().flatMap(List::stream).mapToDouble(i -> s.area(i)).sum();
		String text = map.keySet().stream().sorted().collect(Collectors.joining(","));
		return sum + text.replaceAll("k(\\\\d)7", "$1").length() + fib(18);
	}
	public static void main(String[] a) {
		Thread t = new Thread(() -> { for (int i = 0;; i++) compute(i); }, "worker"); t.start();
		for (int i = 0;; i++) compute(i);
	}
}
"""


def start_java(work, flags):
    work.write("Work.java", JAVA_SOURCE)
    work.run("javac Work.java")
    pid = work.start(f"java -Xmx256m {flags} -cp {work.directory} Work")
    time.sleep(6)
    work.run(f"jcmd {pid} Compiler.perfmap")
    return ["-p", pid]


@program("java", "javac", "jcmd")
def java(work):
    return start_java(work, "")


@program("java", "javac", "jcmd")
def java_frame_pointers(work):
    return start_java(work, "-XX:+PreserveFramePointer")


JAVA_LOOP_SOURCE = """
import java.util.*;
public class Loop {
	static Object sink;
	static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
	public static void main(String[] a) {
		for (int i = 0; i < 3; i++)
			new Thread(() -> {
				Map<Integer, byte[]> m = new HashMap<>();
				Random r = new Random(1);
				while (System.currentTimeMillis() > 0) {
					for (int k = 0; k < 2000; k++) m.put(r.nextInt(5000), new byte[r.nextInt(2000)]);
					sink = new ArrayList<>(m.values());
					fib(18);
				}
			}, "churn-" + i).start();
	}
}
"""


def start_java_loop(work, flags, with_map):
    """Threads that never leave the loop in which they were compiled."""
    work.write("Loop.java", JAVA_LOOP_SOURCE)
    work.run("javac Loop.java")
    pid = work.start(f"java -Xmx400m {flags} -cp {work.directory} Loop")
    time.sleep(8)
    if with_map:
        work.run(f"jcmd {pid} Compiler.perfmap")
    return ["-p", pid]


@program("java", "javac", "jcmd")
def java_loop(work):
    return start_java_loop(work, "", True)


@program("java", "javac")
def java_loop_parallel(work):
    return start_java_loop(work, "-XX:+UseParallelGC", False)


@program("java", "javac")
def java_loop_z(work):
    return start_java_loop(work, "-XX:+UseZGC", False)


@program("java", "javac")
def java_loop_untiered(work):
    return start_java_loop(work, "-XX:-TieredCompilation", False)


LUA_SOURCE = """
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local function text() local t = {} for i = 1, 5000 do t[i] = tostring(i * 7919 % 5003) end
	table.sort(t, function(a, b) return a < b end) return #table.concat(t) end
local function deep(n) if n == 0 then return text() end local _, r = pcall(deep, n - 1) return r end
local s = 0
while true do
	s = s + fib(22) + deep(5)
	for i = 1, 1000000 do s = s + i % 7 end
	s = s + #(("a b c"):gsub("%w+", function(w) return w .. fib(15) end))
end
"""


RUBY_SOURCE = """
def work(n)
  n.times.inject { |sum, i| (sum * 7 + i) % 1000003 }
end
computes = Fiber.new { loop { work(20000); Fiber.yield } }
loop { 20.times { computes.resume }; Fiber.new { sleep 0.02 }.resume }
"""


@program("ruby")
def ruby_fibers(work):
    return ["-p", work.start("ruby " + work.write("work.rb", RUBY_SOURCE))]


@program("luajit")
def luajit(work):
    return ["-p", work.start("luajit " + work.write("work.lua", LUA_SOURCE))]


@program("luajit")
def luajit_interpreted(work):
    return ["-p", work.start("luajit -joff " + work.write("work.lua", LUA_SOURCE))]


@program("sysbench")
def sysbench_lua(work):
    script = work.write("work.lua", """
function event()
	local s = 0
	for i = 1, 1000 do s = s + sysbench.rand.uniform(1, 1000) % 7 end
	local t = {}
	for i = 1, 50 do t[i] = string.format("%d-%s", i, tostring(s)) end
	table.concat(t)
end
""")  # fmt: skip
    return ["-p", work.start(f"sysbench {script} --threads=2 --time=600 run")]


HASKELL_SOURCE = """
import qualified Data.Map.Strict as M
import Control.Concurrent
import Control.Monad
import Data.List (foldl')
fib :: Int -> Integer
fib n = if n < 2 then fromIntegral n else fib (n - 1) + fib (n - 2)
work :: Int -> Int
work k = M.size (foldl' (\\m i -> M.insertWith (+) (i * 7919 `mod` 10007) i m) M.empty [1 .. 20000 + k])
loop :: Integer -> Int -> IO ()
loop s k = work k `seq` fib (18 + (k `mod` 3)) `seq` loop (s + 1) (k + 1)
main :: IO ()
main = do { _ <- forkIO (forever (threadDelay 20000)); loop 0 0 }
"""


def start_haskell(work, flags):
    work.write("work.hs", HASKELL_SOURCE)
    work.run(f"ghc -O1 {flags} -o work work.hs")
    return ["-p", work.start(work.path("work"))]


@program("ghc")
def haskell(work):
    return start_haskell(work, "")


@program("ghc")
def haskell_threaded(work):
    return start_haskell(work, "-threaded")


PHP_SOURCE = """<?php
function fib($n){ return $n<2?$n:fib($n-1)+fib($n-2); }
function sorts(){ $a=[]; for($i=0;$i<5000;$i++) $a["k".($i*7919%5003)]=md5("x$i"); ksort($a);
	usort($a, fn($x,$y)=>strcmp($x,$y)); return count($a); }
while(true){ fib(20); sorts(); preg_match_all('/(\\d+)[a-f]/', md5(rand()), $m); }
"""


def start_php(work, jit, debug):
    script = work.write("work.php", PHP_SOURCE)
    # The cache leaves files alone that are younger than two seconds.
    os.utime(script, (time.time() - 60, time.time() - 60))
    pid = work.start(
        "php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M "
        f"-d opcache.jit={jit} -d opcache.jit_debug={debug} {script}"
    )
    time.sleep(2)
    return ["-p", pid]


@program("php")
def php_tracing(work):
    return start_php(work, "tracing", 0)


@program("php")
def php_function(work):
    return start_php(work, "function", 0)


@program("php")
def php_function_images(work):
    return start_php(work, "function", 272)


@program("sbcl")
def sbcl(work):
    source = work.write("work.lisp", """
(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(defun strs () (let ((l nil)) (dotimes (i 20000) (push (format nil "~a" i) l)) (length (sort l #'string<))))
(compile 'fib) (compile 'strs)
(sb-thread:make-thread (lambda () (loop (sleep 0.05))))
(loop (fib 22) (strs))
""")  # fmt: skip
    pid = work.start(f"sbcl --script {source}")
    time.sleep(2)
    return ["-p", pid]


ERLANG_SOURCE = """
-module(work).
-export([main/0]).
fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).
strs() -> length(lists:sort([integer_to_list(I * 7919 rem 5003) || I <- lists:seq(1, 3000)])).
deep(0) -> length(binary_to_list(term_to_binary(lists:seq(1, 2000))));
deep(N) -> 1 + deep(N - 1).
loop() -> fib(20), strs(), deep(10), loop().
main() -> [spawn(fun() -> loop() end) || _ <- [1, 2, 3]], receive stop -> ok end.
"""


def start_erlang(work, flags):
    work.run(f"erlc {work.write('work.erl', ERLANG_SOURCE)}")
    pid = work.start(f"erl -noshell {flags} -s work main")
    time.sleep(4)
    return ["-p", pid]


@program("erl", "erlc")
def erlang(work):
    return start_erlang(work, "")


@program("erl", "erlc")
def erlang_for_perf(work):
    return start_erlang(work, "+JPperf true")
