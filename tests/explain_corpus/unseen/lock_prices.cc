/* expect: lock find_price rebuild_index
 * Requests look prices up under a mutex; a thread builds the index anew under the same mutex. */
#include <map>
#include <mutex>
#include <string>
#include <atomic>
#include "../corpus.h"

static std::mutex guard;
static std::map<std::string, int> index_of;
static std::atomic<int> next_thread{0};

NOINLINE static int find_price(const std::string &name)
{
	std::lock_guard<std::mutex> held(guard);
	auto found = index_of.find(name);
	return found == index_of.end() ? 0 : found->second;
}

NOINLINE static void rebuild_index()
{
	std::lock_guard<std::mutex> held(guard);
	index_of.clear();
	for (int i = 0; i < 60000; i++)
		index_of["article number " + std::to_string(i)] = i;
}

static void *start(void *arg)
{
	const bool rebuilds = next_thread++ == 0;
	for (int i = 0;; i++) {
		if (rebuilds)
			rebuild_index();
		else
			find_price("article number " + std::to_string(i % 60000));
		nap_ms(rebuilds ? 15 : 2);
	}
	return arg;
}

int main()
{
	run_threads(5, start);
}
