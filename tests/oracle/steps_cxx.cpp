// steps_cxx: exceptions through frames with clean-ups, to be single-stepped by oracle_step.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static volatile int sink;

struct Guard {
	~Guard()
	{
		sink = sink + 1;
	}
};

// A function for each depth: what _Unwind_Resume does to its own frame before it leaves would pass
// for a caller in a recursion.
template <int N> __attribute__((noinline)) static void thrower()
{
	Guard guard;
	thrower<N - 1>();
	sink = sink + N;
}

template <> __attribute__((noinline)) void thrower<0>()
{
	Guard guard;
	throw std::runtime_error("at the bottom");
}

template <int N> __attribute__((noinline)) static int catcher()
{
	try {
		std::vector<std::string> texts(3, std::string(40, 'x'));
		thrower<N>();
		return (int)texts.size();
	} catch (const std::logic_error &) {
		return 1;
	} catch (const std::exception &error) {
		return (int)std::string(error.what()).size();
	}
}

__attribute__((noinline)) static long take(long a, long b, long c, long d, long e, long f, long g,
                                           long h, volatile char *bytes)
{
	thrower<2>();
	return a + b + c + d + e + f + g + h + bytes[0];
}

// Handlers and clean-ups in frames without a fixed size, and behind calls with arguments on the
// stack: nothing but the unwinder leads there.
__attribute__((noinline)) static int catcher_of_any_size(int n)
{
	alignas(64) volatile char aligned[64];
	volatile char *bytes =
	    static_cast<volatile char *>(__builtin_alloca(static_cast<size_t>(n) * 40));

	bytes[0] = aligned[0] = 1;
	try {
		Guard guard;
		return (int)take(n, 2, 3, 4, 5, 6, 7, 8, bytes);
	} catch (const std::exception &error) {
		const Guard guard;
		return (int)std::string(error.what()).size() + bytes[0] + aligned[0];
	}
}

struct Base {
	virtual ~Base() = default;
	virtual int call() = 0;
};
struct Derived : Base {
	int call() override
	{
		return catcher<0>() + catcher<3>() + catcher_of_any_size(1) +
		       catcher_of_any_size(7);
	}
};

int main()
{
	std::unique_ptr<Base> object(new Derived);

	__asm__ volatile("int3");
	sink = object->call();
	return 0;
}
