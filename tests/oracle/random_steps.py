# SPDX-License-Identifier: MIT
"""random_steps.py SEED: prints a C program of random functions whose ways out are hard to follow by
their code alone: frames that are realigned and that grow, arguments on the stack, jump tables, tail
calls, and calls that never return, behind which another function's code begins. oracle_step steps
through it from the int3 on."""

import random
import sys

N_FUNCTIONS = 28
N_CALLED = 6  # a function calls some of so many before it

BEGINNING = """\
#include <alloca.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __clang__
#define FRAME __attribute__((noinline))
#else
#define FRAME __attribute__((noinline, noipa))
#endif
#define KEEP() __asm__ volatile("" ::: "memory")

static volatile long sink;
static volatile int zero;
typedef double vector __attribute__((vector_size(32)));

FRAME static long leaf(long x) { sink += x; return sink * 3; }
FRAME static void use(void *bytes) { *(volatile char *)bytes += 1; KEEP(); }
FRAME __attribute__((noreturn)) static void fail(long x) { sink = x; _exit(3); }
FRAME __attribute__((noreturn)) static void
fail_with(long a, long b, long c, long d, long e, long f, long g, long h)
{
    sink = a + b + c + d + e + f + g + h;
    _exit(3);
}
FRAME static long many(long a, long b, long c, long d, long e, long f, long g, long h)
{
    return leaf(a + h) + leaf(b + g) + c + d + e + f;
}
"""
FAILURES = (
    "fail(x)", "fail_with(1, 2, 3, 4, 5, 6, x, x)", "abort()", "__builtin_trap()",
    "__builtin_unreachable()",
)  # fmt: skip
CASES = """\
    switch ((x + sink) & 7) {{
    case 0: x += leaf(1); break;
    case 1: x = leaf(x) + 2; break;
    case 2: x += {call}; break;
    case 3: x ^= many(x, 1, 2, 3, 4, 5, 6, 7); break;
    case 4: x -= leaf(5); break;
    case 5: x *= leaf(4); if (zero) fail_with(1, 2, 3, 4, 5, 6, 7, x); break;
    case 6: x = leaf(x + 9); break;
    default: x += 3;
    }}"""


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        # How many arguments each takes, and whether more may follow.
        self.shapes = [
            (self.random.choice((1, 2, 3, 6, 7, 8, 9)), self.chance(0.08)) for _ in range(N_FUNCTIONS)
        ]

    def chance(self, share):
        return self.random.random() < share

    def call(self, i, first):
        n, has_more = self.shapes[i]
        values = ("x", "sink", str(i), "a0")
        others = [f"(long){self.random.choice(values)}" for _ in range(n - 1)]
        return f"f{i}({', '.join([first, *others, *(['1.5', '2.5'] if has_more else [])])})"

    def returns_early(self, n):
        value = self.random.choice(("leaf(x)", "x", "leaf(x + 1) + 1"))
        return f"if (a{self.random.randrange(n)} == {self.random.choice((0, 1, -99))}) return {value};"

    def fails(self, n):
        return f"if (a{self.random.randrange(n)} == -77) {self.random.choice(FAILURES)};"

    def aligns(self):
        alignment = self.random.choice((32, 32, 64, 128, 256, 4096))
        size = self.random.choice((32, 64, 200))
        return (
            f"char aligned[{size}] __attribute__((aligned({alignment})));"
            " memset(aligned, (int)x, sizeof(aligned)); use(aligned);"
        )

    def calls(self, i):
        call = self.call(self.random.choice(range(i)[-N_CALLED:]), "x & 15")
        times, bit = self.random.choice((1, 2)), self.random.choice((1, 2, 4))
        return self.random.choice((
            f"x += {call};",
            f"if ((x ^ a0) & {bit}) x += {call}; else x += leaf({bit});",
            f"for (int i = 0; i < {times}; i++) x += {call};",
            CASES.format(call=call),
            f"if (zero) {self.random.choice(FAILURES[:2])}; else x += {call};",
        ))  # fmt: skip

    def ends(self):
        return self.random.choice((
            "return leaf(x);",
            "return many(x, 2, 3, 4, 5, 6, a0, 8);",
            "if (x != -12345) return x + leaf(x); fail(x);",
            "KEEP(); return x + leaf(x);",
        ))  # fmt: skip

    def function(self, i):
        n, has_more = self.shapes[i]
        arguments = ", ".join([f"long a{k}" for k in range(n)] + ["..."] * has_more)
        lines = [f"FRAME static long f{i}({arguments})", "{", "long x = a0;"]
        for share, line in (
            (0.3, self.returns_early(n)),
            (0.25, self.fails(n)),
            (0.5, self.aligns()),
            (0.25, "vector v = {x, 1, 2, 3}, w = v * 2.0; use(&w); v += w; x += (long)v[1];"),
            (0.25, "char *space = alloca((x & 63) + 17 + zero); use(space);"),
            (0.2, "long array[(x & 7) + 1]; array[0] = x; use(array); x += array[0] & 3;"),
            (has_more, f"va_list more; va_start(more, a{n - 1});"
                       " x += (long)va_arg(more, double); va_end(more);"),
            *[(0.7, self.calls(i)) for _ in range(2) if i > 0],
            (0.3, "x += many(x, a0, 3, 4, 5, 6, 7, 8);"),
            (0.2, "if (__builtin_expect(zero, 0)) { leaf(x); fail(x); }"),
        ):  # fmt: skip
            if self.chance(share):
                lines.append(line)
        return "\n".join([*lines, self.ends(), "}"])

    def text(self):
        functions = [self.function(i) for i in range(N_FUNCTIONS)]
        calls = [f"s += {self.call(i, f'm + {i}')}; KEEP();" for i in range(N_FUNCTIONS)]
        run = ["FRAME static long run(int m)", "{", "long s = 0, x = m, a0 = m;", *calls, "return s;", "}"]
        main = """\
int main(int argc, char **argv)
{
    __asm__ volatile("int3");
    sink = run(argc);
    sink = run(argc + 1);
    KEEP();
    return 0;
}"""
        return "\n".join([BEGINNING, *functions, *run, main])


if __name__ == "__main__":
    print(Program(int(sys.argv[1])).text())
