/* expect: none
 * A batch analysis: it makes words, counts, sorts and joins them, and smooths a series; all parts take
 * about as long. */
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>
#include "../corpus.h"

static unsigned seed = 1;

static unsigned draw()
{
	return seed = seed * 1103515245 + 12345, seed >> 8;
}

NOINLINE static std::vector<std::string> make_words()
{
	std::vector<std::string> words;
	for (int i = 0; i < 12000; i++)
		words.push_back("w" + std::to_string(draw() % 3000) + "x" + std::to_string(i % 7));
	return words;
}

NOINLINE static std::map<std::string, int> count_words(const std::vector<std::string> &words)
{
	std::map<std::string, int> counts;
	for (size_t i = 0; i < words.size() / 6; i++)
		counts[words[i]]++;
	return counts;
}

NOINLINE static void sort_words(std::vector<std::string> words)
{
	words.resize(words.size() / 3);
	std::sort(words.begin(), words.end());
}

NOINLINE static size_t join_words(const std::vector<std::string> &words)
{
	size_t length = 0;
	for (int i = 0; i < 12; i++) {
		std::string text;
		for (const auto &word : words)
			text += word + ' ';
		length += text.size();
	}
	return length;
}

NOINLINE static double smooth(int n)
{
	std::vector<double> values(2000, 1.0);
	for (int round = 0; round < n; round++)
		for (size_t i = 1; i + 1 < values.size(); i++)
			values[i] = (values[i - 1] + values[i] * 2 + values[i + 1]) / 4;
	return values[1000];
}

NOINLINE static unsigned checksum(const std::vector<std::string> &words)
{
	unsigned sum = 0;
	for (int i = 0; i < 9; i++)
		for (const auto &word : words)
			for (char c : word)
				sum = sum * 31 + c;
	return sum;
}

static void *analyze(void *arg)
{
	for (;;) {
		auto words = make_words();
		count_words(words);
		sort_words(words);
		join_words(words);
		smooth(150);
		checksum(words);
	}
	return arg;
}

int main()
{
	run_threads(1, analyze);
}
