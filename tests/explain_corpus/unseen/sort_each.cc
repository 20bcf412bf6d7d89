/* expect: hot insert_price
 * A book of prices is sorted as a whole after each insertion. */
#include <algorithm>
#include <string>
#include <vector>
#include "../corpus.h"

struct Price {
	std::string name;
	double value;
};

NOINLINE static void insert_price(std::vector<Price> &book, unsigned seed)
{
	book.push_back({"item " + std::to_string(seed % 1000), seed % 977 / 10.0});
	std::sort(book.begin(), book.end(), [](const Price &a, const Price &b) { return a.value < b.value; });
}

NOINLINE static double best_price(const std::vector<Price> &book)
{
	return book.empty() ? 0 : book.front().value;
}

static void *trade(void *arg)
{
	double sum = 0;
	for (unsigned seed = 1;; seed = seed * 1103515245 + 12345) {
		static std::vector<Price> book;
		insert_price(book, seed >> 8);
		sum += best_price(book);
		if (book.size() > 2000)
			book.clear();
	}
	return arg;
}

int main()
{
	run_threads(1, trade);
}
