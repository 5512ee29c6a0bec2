/* SPDX-License-Identifier: Apache-2.0 */
/* mixed SECONDS: code of many forms: virtual functions, switches, an interpreter with computed
 * gotos, exceptions, frames of variable size and aligned ones, functions that only tables of
 * pointers name, recursion, std. Nothing of it is built with a description of its stacks in mind. */
#include <algorithm>
#include <alloca.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#define NOINLINE __attribute__((noinline))
static volatile unsigned long sink;

struct Shape {
	virtual ~Shape() = default;
	virtual double area(double scale) const = 0;
	virtual int corners() const { return 0; }
};
struct Circle : Shape {
	double r;
	explicit Circle(double r) : r(r) {}
	double area(double scale) const override { return 3.14159 * r * r * scale; }
};
struct Polygon : Shape {
	std::vector<double> x, y;
	explicit Polygon(int n)
	{
		for (int i = 0; i < n; i++) {
			x.push_back(cos(6.28318 * i / n));
			y.push_back(sin(6.28318 * i / n));
		}
	}
	double area(double scale) const override
	{
		double sum = 0;

		for (size_t i = 0, k = x.size() - 1; i < x.size(); k = i++)
			sum += x[k] * y[i] - x[i] * y[k];
		return sum * scale / 2;
	}
	int corners() const override { return (int)x.size(); }
};

static double shapes(unsigned long seed)
{
	std::vector<std::unique_ptr<Shape>> all;
	double sum = 0;

	for (unsigned long i = 0; i < 24; i++) {
		if ((seed + i) % 3)
			all.push_back(std::make_unique<Polygon>(3 + (int)(i % 5)));
		else
			all.push_back(std::make_unique<Circle>((double)i));
	}
	for (auto &s : all)
		sum += s->area(2) + s->corners();
	return sum;
}

enum { PUSH, ADD, MUL, DUP, SWAP, DROP, JNZ, DEC, XOR, HALT };

NOINLINE static long interpret(const int *code, long n)
{
	static void *const labels[] = {&&push, &&add, &&mul, &&dup, &&swap, &&drop, &&jnz, &&dec, &&xor_, &&halt};
	long stack[32], *sp = stack, t;
	const int *pc = code;

	*sp++ = n;
#define NEXT goto *labels[*pc++]
	NEXT;
push:
	*sp++ = *pc++;
	NEXT;
add:
	sp[-2] += sp[-1];
	sp--;
	NEXT;
mul:
	sp[-2] *= sp[-1];
	sp--;
	NEXT;
dup:
	*sp = sp[-1];
	sp++;
	NEXT;
swap:
	t = sp[-1];
	sp[-1] = sp[-2];
	sp[-2] = t;
	NEXT;
drop:
	sp--;
	NEXT;
jnz:
	pc = sp[-1] ? code + *pc : pc + 1;
	NEXT;
dec:
	sp[-1]--;
	NEXT;
xor_:
	sp[-2] ^= sp[-1];
	sp--;
	NEXT;
halt:
	return sp[-1] + *stack;
}

NOINLINE static unsigned long by_switch(const unsigned char *p, size_t n)
{
	unsigned long h = n, a = 1, b = 2;

	for (size_t i = 0; i < n; i++) {
		switch (p[i] % 13) {
		case 0: h += a; break;
		case 1: h ^= b << 3; break;
		case 2: a += h; break;
		case 3: b -= h >> 3; break;
		case 4: h = h << 7 | h >> 57; break;
		case 5: a ^= b; break;
		case 6: b *= 31; break;
		case 7: h += strlen((const char *)p + i % 3); break;
		case 8: a = a * h + 1; break;
		case 9: h -= p[(i * 7) % n]; break;
		case 10: b += a >> 1; break;
		case 11: sink = h; break;
		default: h++;
		}
	}
	return h + a + b;
}

NOINLINE static unsigned long variable(size_t n)
{
	char *p = (char *)alloca(n);
	unsigned long sum = 0;

	memset(p, (int)n, n);
	for (size_t i = 0; i < n; i++)
		sum += (unsigned char)p[i] * i;
	return sum;
}

NOINLINE static double aligned(int n)
{
	alignas(64) double v[16];
	double sum = 0;

	for (int i = 0; i < 16; i++)
		v[i] = sqrt(n + i);
	for (int k = 0; k < n; k++)
		for (double &x : v)
			sum += x * k;
	sink = (unsigned long)(uintptr_t)v;
	return sum;
}

struct Problem : std::runtime_error {
	using std::runtime_error::runtime_error;
};

NOINLINE static int throws(int depth)
{
	std::string s(depth % 40, 'x');

	if (depth <= 0)
		throw Problem("deep");
	return throws(depth - 1) + (int)s.size();
}

NOINLINE static int catches(int n)
{
	int caught = 0;

	for (int i = 0; i < n; i++) {
		try {
			caught += throws(i);
		} catch (const Problem &p) {
			caught += (int)strlen(p.what());
		}
	}
	return caught;
}

static long one(long a, long b) { return a * 3 + b; }
static long two(long a, long b) { return b ? two(b, a % b) : a; }
static long three(long a, long b) { return a < 2 ? b : three(a - 1, b) + three(a - 2, b); }
static long four(long a, long b) { char t[64]; return snprintf(t, sizeof(t), "%ld:%.3f", a, (double)b) + (long)t[0]; }
static const struct {
	const char *name;
	long (*call)(long, long);
} table[] = {{"one", one}, {"two", two}, {"three", three}, {"four", four}};

NOINLINE static unsigned long containers(unsigned long seed)
{
	std::map<std::string, long> m;
	std::unordered_map<long, std::string> u;
	std::ostringstream out;
	std::vector<std::string> names;

	for (long i = 0; i < 60; i++) {
		std::string key = "k" + std::to_string((seed * (unsigned long)(i + 1)) % 97);

		m[key] += i;
		u[i % 17] += key;
		names.push_back(key);
	}
	std::sort(names.begin(), names.end(), [](const auto &a, const auto &b) { return a > b; });
	for (auto &p : m)
		out << p.first << '=' << p.second << ' ' << std::hex << p.second << std::dec;
	std::function<long(long)> f = [&](long x) { return x + (long)names.size(); };
	return out.str().size() + (unsigned long)f((long)u.size());
}

static int compare(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static unsigned long sorted(unsigned long seed)
{
	int v[200];

	for (int &x : v)
		x = (int)(seed = seed * 6364136223846793005ul + 1442695040888963407ul) >> 8;
	qsort(v, 200, sizeof(v[0]), compare);
	return (unsigned long)v[100];
}

int main(int argc, char **argv)
{
	static const int code[] = {DUP, PUSH, 3, MUL, PUSH, 7, ADD, XOR, DROP, PUSH, 200,
				   DUP, DUP, XOR, DROP, DEC, JNZ, 11, HALT};
	double seconds = argc > 1 ? atof(argv[1]) : 1, sum = 0;
	unsigned char text[512];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (unsigned char)(i * 37 % 251);
	for (unsigned long i = 0; clock() < seconds * CLOCKS_PER_SEC; i++) {
		sum += shapes(i) + (double)interpret(code, (long)i) + (double)by_switch(text, sizeof(text));
		sum += (double)variable(100 + i % 400) + aligned(8) + (double)containers(i) + (double)sorted(i);
		for (auto &t : table)
			sum += (double)t.call(12, (long)(i % 9));
		if (i % 16 == 0)
			sum += catches(6);
	}
	printf("%g\n", sum);
	return 0;
}
