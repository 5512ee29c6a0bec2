/* SPDX-License-Identifier: Apache-2.0 */
/* An extension of Ruby: Deep.call(v) { |v| .. } calls ten functions, one below the other, and the
 * innermost the block. */
#include <ruby.h>

#define LEVEL(n, call)                                                   \
	static VALUE __attribute__((noinline, noipa)) level_##n(VALUE v) \
	{                                                                \
		VALUE r = call(v);                                       \
		__asm__ volatile("" : "+r"(r)); /* not a tail call */    \
		return r;                                                \
	}

LEVEL(0, rb_yield)
LEVEL(1, level_0)
LEVEL(2, level_1)
LEVEL(3, level_2)
LEVEL(4, level_3)
LEVEL(5, level_4)
LEVEL(6, level_5)
LEVEL(7, level_6)
LEVEL(8, level_7)
LEVEL(9, level_8)

static VALUE deep_call(VALUE self, VALUE v)
{
	(void)self;
	return level_9(v);
}

void Init_deep(void)
{
	rb_define_singleton_method(rb_define_module("Deep"), "call", deep_call, 1);
}
