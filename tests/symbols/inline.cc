// SPDX-License-Identifier: Apache-2.0
// Inlining of every kind that has a name of its own: templates, lambdas, members, local classes, namespaces.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace outer
{
namespace
{
static inline int hidden(int x)
{
	return x * 3 + 1;
}
} // namespace

template <typename T> struct Box {
	T value;
	explicit Box(T v) : value(v) {}
	T twice() const { return value + value; }
	template <typename U> auto add(U u) const { return value + static_cast<T>(u); }
	~Box() { value = T(); }
};

class Shape
{
      public:
	virtual ~Shape() = default;
	virtual double area() const = 0;
};

class Square : public Shape
{
	double side;

      public:
	explicit Square(double s) : side(s) {}
	double area() const override { return side * side; }
};

static __attribute__((noinline)) int cold_part(int x)
{
	if (__builtin_expect(x == 123456789, 0)) {
		fprintf(stderr, "never\n");
		abort();
	}
	return hidden(x) + hidden(x + 1);
}
} // namespace outer

static int local_class(int n)
{
	struct Adder {
		int base;
		int operator()(int x) const { return base + x; }
	} adder{n};
	std::vector<int> v;

	for (int i = 0; i < n; i++)
		v.push_back(adder(i));
	return std::count_if(v.begin(), v.end(), [n](int x) { return x > n; });
}

template <typename F> static __attribute__((noinline)) int apply(F f, int x)
{
	return f(x) + f(x + 1);
}

extern "C" int plain_c(int x)
{
	return outer::cold_part(x) + 7;
}

int main(int argc, char **argv)
{
	std::map<std::string, int> counts;
	std::vector<std::unique_ptr<outer::Shape>> shapes;
	double area = 0;
	int sum = 0;

	for (int i = 0; i < argc; i++) {
		counts[argv[i]] += plain_c(i);
		shapes.push_back(std::make_unique<outer::Square>(i));
	}
	for (const auto &s : shapes)
		area += s->area();
	for (const auto &[name, count] : counts)
		sum += count + static_cast<int>(name.size());
	outer::Box<int> box(sum);
	std::function<int(int)> f = [&](int x) { return box.twice() + box.add(2.5) + x; };
	sum += apply(f, 3) + apply([](int x) { return outer::hidden(x); }, 4) + local_class(argc + 5);
	std::sort(argv, argv + argc);
	printf("%d %f\n", sum, area);
	return 0;
}
