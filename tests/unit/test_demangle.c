/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/demangle
#include "test.h"

#include "base/buf.h"
#include "demangle/demangle.h"
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

/* Most of them are of libphobos, and what c++filt makes of them, without parameters. */
TEST(dlang)
{
	CHECK_STR(of("_Dmain"), "D main");
	CHECK_STR(of("_D1d__T4WorkTlZQi4burnMFNbNiiZv"), "d.Work!(long).Work.burn");
	CHECK_STR(of("_D4core4time13TimeException6__ctorMFNaNbNfAyaC6object9ThrowableQvmZ"
		     "CQCoQCmQCk"),
		  "core.time.TimeException.this");
	CHECK_STR(of("_D3std5array__T14arrayAllocImplVbi0TAaTmZQBaFNaNbmZQp"),
		  "std.array.arrayAllocImpl!(false, char[], ulong).arrayAllocImpl");
	CHECK_STR(of("_D3std6base64__T10Base64ImplVai45Vai95Vai0Z12decodeLengthFNaNbNfImZm"),
		  "std.base64.Base64Impl!('-', '_', '\\x00').decodeLength");
	CHECK_STR(of("_D3std8bitmanip8BitArray7bitsSetMxFNbNdZ9__lambda2MFNaNbNiNfmZb"),
		  "std.bitmanip.BitArray.bitsSet.__lambda2");
	CHECK_STR(of("_D3std6format8internal6floats__T11printFloatATDFNaNbNfAxaZvTeTaZQBgFNaNf"
		     "KQBbxeSQCzQCy4spec__T10FormatSpecTaZQpAyaimbZv"),
		  "std.format.internal.floats.printFloatA!(void delegate(const(char)[]), real, "
		  "char).printFloatA");
	CHECK_STR(of("_D3gcc8sections3elf12scanSegmentsFNbNiIKS4core3sys5linux4link12"
		     "dl_phdr_infoPSQCxQCwQCq3DSOZv"),
		  "gcc.sections.elf.scanSegments");
	CHECK_STR(of("_D3std7variant__T8VariantNVmi32ZQp6__dtorMFZv"),
		  "std.variant.VariantN!(32uL).VariantN.~this");
	CHECK_STR(of("_D1a1bHiAya@plt"), "a.b@plt");
	/* no names of D, or with more than is read */
	CHECK_STR(of("_D"), "_D");
	CHECK_STR(of("_Data"), "_Data");
	CHECK_STR(of("_D4burn"), "_D4burn");
	CHECK_STR(of("_D9burnFZv"), "_D9burnFZv");
	CHECK_STR(of("_D1dQaFZv"), "_D1dQaFZv");
	CHECK_STR(of("_D1dQZZZZZZZZZZZZaFZv"), "_D1dQZZZZZZZZZZZZaFZv");
}

/* Each beginning of a name, types in types, and types that refer to types that do. */
TEST_FOR(hostile_dlang, 20)
{
	static const char name[] =
		"_D3std6format8internal6floats__T11printFloatATDFNaNbNfAxaZvTeTaZ"
		"QBgFNaNfKQBbxeSQCzQCy4spec__T10FormatSpecTaZQpAyaimbZv";
	char text[8192] = "_D1a1bF", *end = text + 7;

	for (size_t n = 0; n < sizeof(name); n++) {
		char *copy = strndup(name, n);

		CHECK(*of(copy) || !n);
		free(copy);
	}
	memset(end, 'A', 8000);
	CHECK_STR(of(text), text);
	memset(end, 0, 8000);
	strcpy(end, "HiHii");
	for (end += 5; end < text + 4000; end += 6)
		strcpy(end, "HQfQgi");
	strcpy(end, "Zv");
	CHECK(*of(text));
	strcpy(text, "_D1a__T1bTHii");
	for (end = text + 13; end < text + 4000; end += 6)
		strcpy(end, "THQeQf");
	strcpy(end, "Z1cFZv");
	CHECK(*of(text));
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
