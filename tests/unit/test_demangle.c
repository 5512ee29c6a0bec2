/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/symbols
#include "test.h"

#include "base/buf.h"
#include "symbols/internal/demangle.h"
#include "base/utf8.h"

static struct demangler *d;

static const char *of(const char *name)
{
	if (!d)
		CHECK_INT(demangler_new(&d), 0);
	return demangle(d, name);
}

TEST(cplusplus)
{
	CHECK_STR(of("_Z3foov"), "foo");
	CHECK_STR(of("_ZL3foov"), "foo");
	CHECK_STR(of("_ZN5outer12_GLOBAL__N_16hiddenEi"), "outer::(anonymous namespace)::hidden");
	CHECK_STR(of("_ZNKSt6vectorIiSaIiEE4sizeEv"),
		  "std::vector<int, std::allocator<int> >::size");
	CHECK_STR(of("_ZNSt8functionIFiiEED4Ev"), "std::function<int (int)>::~function");
	CHECK_STR(of("_ZZ4mainENKUliE_clEi"), "main::{lambda(int)#1}::operator()");
	CHECK_STR(of("_Z5applyIiEiT_i"), "apply<int>");
	/* the pieces of one function are one function */
	CHECK_STR(of("_ZN5outer9cold_partEi.cold"), "outer::cold_part");
	CHECK_STR(of("_ZN5outer9cold_partEi.constprop.0"), "outer::cold_part");
}

TEST(rust)
{
	CHECK_STR(of("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"),
		  "core::fmt::Formatter::pad");
	CHECK_STR(of("_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$"
		     "3fmt17h0123456789abcdefE"),
		  "<alloc::string::String as core::fmt::Display>::fmt");
	CHECK_STR(of("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.1234"),
		  "core::fmt::Formatter::pad");
	CHECK_STR(of("_RNvC6_123foo3bar"), "123foo::bar");
	CHECK_STR(of("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
}

TEST(c_stays)
{
	CHECK_STR(of("main"), "main");
	CHECK_STR(of("_start"), "_start");
	CHECK_STR(of("a.b"), "a.b");
	CHECK_STR(of("work.isra.0"), "work");
	CHECK_STR(of("work.part.0.constprop.12"), "work");
	CHECK_STR(of("work.cold"), "work");
	CHECK_STR(of(".cold"), ".cold");
	CHECK_STR(of("main.(*T).work"), "main.(*T).work");
	CHECK_STR(of("_Zthis is no name"), "_Zthis is no name");
	CHECK_STR(of("_R"), "_R");
	CHECK_STR(of(""), "");
}

TEST(entries_of_a_plt)
{
	CHECK_STR(of("_ZN1a1bEv@plt"), "a::b@plt");
	CHECK_STR(of("strlen@plt"), "strlen@plt");
	CHECK_STR(of("@plt"), "@plt");
}

TEST(bad_bytes)
{
	CHECK_STR(of("a\xff"
		     "b"),
		  "a\xef\xbf\xbd"
		  "b");
	CHECK_STR(of("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
	CHECK_STR(of("\x1b[31m"), "\xef\xbf\xbd[31m");
	CHECK_STR(demangle_clean(d, "_Z3foov"), "_Z3foov");
	CHECK(!utf8_printable("\xc0\x80", 2));         /* overlong */
	CHECK(!utf8_printable("\xed\xa0\x80", 3));     /* a surrogate */
	CHECK(!utf8_printable("\xf4\x90\x80\x80", 4)); /* beyond the last one */
	CHECK(!utf8_printable("\xe2\x82", 2));         /* ends early */
	CHECK(utf8_printable("\xf0\x9f\x94\xa5", 4));
}

/* Names that would take for ever, or all memory, or all of the stack. */
TEST_FOR(hostile, 20)
{
	struct buf b = {0};
	const char *out;

	/* each S_ stands for twice as much as the previous */
	buf_str(&b, "_Z1fI1AE");
	for (int i = 0; i < 2000; i++)
		buf_str(&b, i & 1 ? "1XIS0_S_E" : "St4pairIS_S_E");
	buf_add(&b, "", 1);
	out = of(b.p);
	CHECK(strlen(out) < 64 << 10);
	buf_reset(&b);
	buf_str(&b, "_Z1f");
	for (int i = 0; i < 100; i++)
		buf_str(&b, "St4pairIS");
	for (int i = 0; i < 8000; i++)
		buf_str(&b, "P");
	buf_add(&b, "i", 2);
	CHECK(strlen(of(b.p)) < 64 << 10);
	buf_reset(&b);
	for (int i = 0; i < 1 << 20; i++)
		buf_str(&b, i ? "N" : "_Z");
	buf_add(&b, "", 1);
	CHECK_INT(strlen(of(b.p)), b.len - 1);
	/* Rust: arrays of arrays of one type named by its place */
	buf_reset(&b);
	buf_str(&b, "_RIC1a");
	for (int i = 0; i < 60; i++)
		buf_str(&b, "TB2_B2_E");
	buf_add(&b, "E", 2);
	CHECK(strlen(of(b.p)) < 64 << 10);
	buf_fini(&b);
}

TEST(cache_is_bounded)
{
	char name[1000];

	for (int i = 0; i < 60000; i++) {
		int n = snprintf(name, sizeof(name), "_Z900");

		memset(name + n, 'a' + i % 26, 900);
		snprintf(name + n, 12, "x%010d", i);
		name[n + 11] = 'y';
		snprintf(name + n + 900, 2, "v");
		CHECK_INT(strlen(of(name)), 900);
		CHECK(!strncmp(of(name), name + n, 900));
	}
}
