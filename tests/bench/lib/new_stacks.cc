// SPDX-License-Identifier: Apache-2.0
//
// new_stacks hot|cold: makes and evaluates random expressions for ever, so that nearly every stack
// is new: recursion through virtual functions, std::function, std::map and the callbacks of
// std::sort, 10 to 60 frames deep. cold: what it evaluates walks 2 MiB at random, so that the near
// caches do not belong to whoever samples it. Waits at BURN_GATE as the programs of
// tests/accuracy do.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

static unsigned table[(2u << 20) / sizeof(unsigned)];
static bool cold;
static unsigned long seed = 1;

static unsigned rnd(unsigned n)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return static_cast<unsigned>(seed >> 33) % n;
}

struct Node {
	virtual ~Node() = default;
	virtual unsigned eval(unsigned x) const = 0;
};
using Ptr = std::unique_ptr<Node>;

struct Leaf : Node {
	unsigned eval(unsigned x) const override
	{
		for (unsigned i = 0; i < (cold ? 300u : 3000u); i++) {
			x = x * 1664525 + 1013904223;
			if (cold)
				x ^= table[x >> 13 & (sizeof(table) / sizeof(*table) - 1)];
		}
		return x;
	}
};

struct Sum : Node {
	Ptr a, b;
	Sum(Ptr l, Ptr r) : a(std::move(l)), b(std::move(r)) {}
	unsigned eval(unsigned x) const override { return a->eval(x) + b->eval(x + 1); }
};

struct Call : Node {
	std::function<unsigned(unsigned)> f;
	explicit Call(Ptr p)
	{
		std::shared_ptr<Node> inner = std::move(p);
		f = [inner](unsigned x) { return inner->eval(x) ^ 1; };
	}
	unsigned eval(unsigned x) const override { return f(x) + 1; }
};

struct Sorted : Node {
	Ptr by;
	explicit Sorted(Ptr p) : by(std::move(p)) {}
	unsigned eval(unsigned x) const override
	{
		std::vector<unsigned> v = {x, x ^ 5, x + 3};

		std::sort(v.begin(), v.end(), [this](unsigned l, unsigned r) {
			return by->eval(l) % 8 < r % 8;
		});
		return v[0] + 1;
	}
};

struct Mapped : Node {
	std::map<std::string, Ptr> parts;
	unsigned eval(unsigned x) const override
	{
		for (const auto &part : parts)
			x += part.second->eval(x) + static_cast<unsigned>(part.first.size());
		return x;
	}
};

static Ptr make(unsigned depth)
{
	if (!depth)
		return std::make_unique<Leaf>();
	switch (rnd(8)) {
	case 0: {
		auto m = std::make_unique<Mapped>();

		m->parts["one"] = make(depth - 1);
		return m;
	}
	case 1:
		return std::make_unique<Sorted>(make(depth - 1));
	case 2:
	case 3:
		return std::make_unique<Sum>(make(depth - 1), make(rnd(3) ? 0 : depth / 2));
	default:
		return std::make_unique<Call>(make(depth - 1));
	}
}

int main(int argc, char **argv)
{
	const char *gate = getenv("BURN_GATE");
	int fd = gate ? open(gate, O_RDONLY) : -1;
	volatile unsigned sink = 0;
	char byte;

	if (argc < 2 || (gate && read(fd, &byte, 1) != 1))
		return 1;
	cold = !strcmp(argv[1], "cold");
	for (unsigned i = 0; i < sizeof(table) / sizeof(*table); i++)
		table[i] = i * 2654435761u;
	for (;;)
		sink = sink + make(4 + rnd(16))->eval(sink);
}
