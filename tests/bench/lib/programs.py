# SPDX-License-Identifier: Apache-2.0
"""What the cost benchmark profiles: clang++ compiling a big file, and a big C++ program with debug
information."""

import os
import subprocess

UNIT = """// one of many units of a generated program: everything here is instantiated for types of its own
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>
namespace unit_%(u)d {
%(types)s
}
unsigned long run_unit_%(u)d(unsigned long seed)
{
	unsigned long r = seed;
%(calls)s
	return r;
}
"""

TYPE = """
struct Key_%(t)d {
	unsigned long a, b;
	bool operator<(const Key_%(t)d &o) const { return a != o.a ? a < o.a : b < o.b; }
	bool operator==(const Key_%(t)d &o) const { return a == o.a && b == o.b; }
};
struct Hash_%(t)d {
	size_t operator()(const Key_%(t)d &k) const { return k.a * 31 + k.b * %(t)d + %(u)d; }
};
struct Shape_%(t)d {
	virtual ~Shape_%(t)d() = default;
	virtual unsigned long area(unsigned long n) const = 0;
};
struct Square_%(t)d : Shape_%(t)d {
	unsigned long side;
	explicit Square_%(t)d(unsigned long s) : side(s) {}
	unsigned long area(unsigned long n) const override { return side * side + n; }
};
template <class T> T mix_%(t)d(T x) { return (x ^ (x >> 13)) * 0x9e3779b97f4a7c15ul + %(t)d; }
static unsigned long maps_%(t)d(unsigned long seed)
{
	std::map<Key_%(t)d, std::string> m;
	std::unordered_map<Key_%(t)d, std::vector<unsigned long>, Hash_%(t)d> h;
	for (unsigned long i = 0; i < 60; i++) {
		seed = mix_%(t)d(seed);
		m[{seed %% 97, i}] = std::to_string(seed);
		h[{seed %% 31, 1}].push_back(i);
	}
	return std::accumulate(m.begin(), m.end(), seed, [](unsigned long s, const auto &p) { return s + p.second.size(); }) + h.size();
}
static unsigned long sorts_%(t)d(unsigned long seed)
{
	std::vector<Key_%(t)d> v(150);
	std::vector<std::unique_ptr<Shape_%(t)d>> shapes;
	for (auto &k : v)
		k = {seed = mix_%(t)d(seed), seed %% 7};
	std::sort(v.begin(), v.end(), [](const auto &x, const auto &y) { return y < x; });
	std::stable_sort(v.begin(), v.end());
	for (const auto &k : v)
		shapes.push_back(std::make_unique<Square_%(t)d>(k.a %% 100));
	return std::accumulate(shapes.begin(), shapes.end(), v[0].a, [](unsigned long s, const auto &p) { return s + p->area(s %% 3); });
}
"""


def write(path, text):
    if not os.path.exists(path) or open(path).read() != text:
        with open(path, "w") as f:
            f.write(text)


def unit(u, types):
    return UNIT % dict(
        u=u,
        types="".join(TYPE % dict(u=u, t=t) for t in range(types)),
        calls="".join(
            "\tr += unit_%d::maps_%d(r) + unit_%d::sorts_%d(r);\n" % (u, t, u, t)
            for t in range(types)
        ),
    )


def big_program(folder, units=20, types=6):
    """Builds it (a minute or so, once); -> its path"""
    os.makedirs(folder, exist_ok=True)
    main = "#include <cstdio>\n#include <cstdlib>\n#include <ctime>\n"
    main += "".join("unsigned long run_unit_%d(unsigned long);\n" % u for u in range(units))
    main += "int main(int argc, char **argv)\n{\n\tunsigned long r = 1;\n\tdouble s = argc > 1 ? atof(argv[1]) : 5;\n"
    main += "\twhile ((double)clock() / CLOCKS_PER_SEC < s) {\n"
    main += (
        "".join("\t\tr += run_unit_%d(r);\n" % u for u in range(units))
        + '\t}\n\tprintf("%lu\\n", r);\n}\n'
    )
    rules = "O := $(patsubst %.cc,%.o,$(wildcard *.cc))\nbig: $(O)\n\tg++ -o $@ $^\n%.o: %.cc\n\tg++ -O2 -g -std=c++17 -c -o $@ $<\n"
    write(os.path.join(folder, "main.cc"), main)
    write(os.path.join(folder, "Makefile"), rules)
    for u in range(units):
        write(os.path.join(folder, "unit%d.cc" % u), unit(u, types))
    subprocess.run(["make", "-s", "-C", folder, "-j%d" % os.cpu_count(), "big"], check=True)
    return os.path.join(folder, "big")


def big_file(folder, types=20):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "compiled.cpp")
    write(path, unit(0, types))
    return path
