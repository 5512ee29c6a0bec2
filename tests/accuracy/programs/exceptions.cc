// SPDX-License-Identifier: Apache-2.0
// Throws through several frames with destructors; the language's own unwinder burns most of the time.
#include "burn.h"

static long destroyed;

struct Guard {
	long *n;
	explicit Guard(long *at) : n(at) {}
	NOIPA ~Guard();
};

Guard::~Guard()
{
	BURN_LOOP(200);
	++*n;
}

struct Thrown {
	long value;
};

static NOIPA void thrower(long value)
{
	BURN_LOOP(500);
	throw Thrown{value};
}

static NOIPA long level(long depth)
{
	Guard guard(&destroyed);

	if (depth == 6) {
		thrower(depth);
		NO_TAIL();
		return 0;
	}
	long r = level(depth + 1);
	NO_TAIL();
	return r + 1;
}

static NOIPA void burn_caught(void)
{
	BURN_LOOP(1000);
}

static NOIPA long catcher()
{
	try {
		return level(1);
	} catch (const Thrown &t) {
		burn_caught();
		NO_TAIL();
		return t.value;
	}
}

int main(int argc, char **argv)
{
	long sum = 0;

	burn_ready(argc, argv);
	while (go_on())
		for (int i = 0; i < 300; i++)
			sum += catcher();
	return sum == 42;
}
