/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/probes
/* Filters of probes, as users write them. */
#include "test.h"

#include "probes/filter.h"

#define FILTER(subject, how, size, sign, number)      \
	((struct probe_filter){.argument = (subject), \
			       .operator=(how),       \
			       .bits = (size),        \
			       .is_signed = (sign),   \
			       .value = (number)})

static const struct filter_terms timed = {FILTER_ARGUMENTS, true, false};
static const struct filter_terms at_begin = {FILTER_ARGUMENTS, false, false};

static void reads(const char *text, struct probe_filter want)
{
	struct probe_filter f;
	char *why;

	CHECK_INT(filter_parse(text, &timed, &f, &why), 0);
	CHECK(!why);
	CHECK_INT(f.argument, want.argument);
	CHECK_INT(f.operator, want.operator);
	CHECK_INT(f.bits, want.bits);
	CHECK_INT(f.is_signed, want.is_signed);
	CHECK(f.value == want.value);
}

static void refuses(const char *text, const char *because)
{
	struct probe_filter f;
	char *why;

	CHECK_INT(filter_parse(text, &timed, &f, &why), -EINVAL);
	CHECK(why && strstr(why, because));
	free(why);
}

TEST(filters_are_read)
{
	reads("arg0 > 4096", FILTER(0, FILTER_MORE, 64, 0, 4096));
	reads(" arg5<=0x10 ", FILTER(5, FILTER_AT_MOST, 64, 0, 16));
	reads("arg1 < 1", FILTER(1, FILTER_LESS, 64, 0, 1));
	reads("arg1 >= 1", FILTER(1, FILTER_AT_LEAST, 64, 0, 1));
	reads("arg1 != 1", FILTER(1, FILTER_NOT_EQUAL, 64, 0, 1));
	reads("arg2 & 0x40", FILTER(2, FILTER_ANY_BIT, 64, 0, 64));
	reads("(int32)arg1 == -1", FILTER(1, FILTER_EQUAL, 32, 1, UINT64_MAX));
	reads("(int8) arg1 == -128", FILTER(1, FILTER_EQUAL, 8, 1, 0 - 128ull));
	reads("(uint16)arg4==65535", FILTER(4, FILTER_EQUAL, 16, 0, 65535));
	reads("arg0 == 18446744073709551615", FILTER(0, FILTER_EQUAL, 64, 0, UINT64_MAX));
	reads("(int64)arg0 == -9223372036854775808", FILTER(0, FILTER_EQUAL, 64, 1, 1ull << 63));
	reads("(int64)retval < 0", FILTER(FILTER_RETVAL, FILTER_LESS, 64, 1, 0));
	reads("retval==0x10", FILTER(FILTER_RETVAL, FILTER_EQUAL, 64, 0, 16));
	reads(" ns > 1000000 ", FILTER(FILTER_NS, FILTER_MORE, 64, 0, 1000000));
}

TEST(others_are_refused)
{
	static const char *const no_filters[] = {"",
						 " ",
						 "arg0",
						 "arg6 > 1",
						 "arg00 > 1",
						 "arg > 1",
						 "arg0 = 1",
						 "arg0 <> 1",
						 "retval2 > 1",
						 "1 > arg0",
						 "(int)arg0 > 1",
						 "(int32 arg0 > 1",
						 "arg0x > 1",
						 "arg10 > 1",
						 "nsec > 1",
						 "ret > 1"};

	for (size_t i = 0; i < sizeof(no_filters) / sizeof(*no_filters); i++) {
		struct probe_filter f;
		char *why;

		CHECK_INT(filter_parse(no_filters[i], &at_begin, &f, &why), -EINVAL);
		CHECK(why && *why);
		free(why);
	}
	refuses("arg9 > 1", "argN OPERATOR NUMBER");
	refuses("(uint8)ns > 1", "has no type");
	refuses("ns > -1", "signed type");
	refuses("arg0 > ", "compares with a number");
	refuses("arg0 > x", "'x' is none");
	refuses("arg0 > --1", "compares with a number");
	refuses("arg0 > 1 && arg1 > 2", "behind the number");
	refuses("arg0 > 1x", "behind the number");
	refuses("arg0 > -1", "signed type");
	refuses("(uint8)arg0 == 256", "8 bits has no value 256");
	refuses("(int8)arg0 == 128", "8 bits has no value 128");
	refuses("(int8)arg0 == -129", "8 bits has no value -129");
	refuses("arg0 == 18446744073709551616", "64 bits has no value");
}

TEST(a_begin_does_not_know_the_return)
{
	static const char *const returned[] = {"retval == 0", "(int32)retval < 0", "ns > 5"};

	for (size_t i = 0; i < sizeof(returned) / sizeof(*returned); i++) {
		struct probe_filter f;
		char *why;

		CHECK_INT(filter_parse(returned[i], &at_begin, &f, &why), -EINVAL);
		CHECK(why && strstr(why, "known with uretprobe"));
		free(why);
	}
}

/* A type that is known later. */
static int describes(const char *text, uint32_t bits, uint32_t is_signed, struct probe_filter *f,
		     char **why)
{
	static const struct filter_terms terms = {FILTER_DESCRIBED, false, true};
	const struct probe_operand o = {
		.kind = OPERAND_REGISTER, .bits = bits, .is_signed = is_signed, .base = 3};

	CHECK_INT(filter_parse(text, &terms, f, why), 0);
	return filter_describe(f, &o, why);
}

TEST(types_of_notes)
{
	static const struct {
		const char *text;
		uint32_t bits, is_signed; /* of the note */
		uint32_t want_bits, want_signed;
		uint64_t value;
		const char *why;
	} cases[] = {
		{"arg11 == 200", 8, 0, 8, 0, 200, NULL},
		{"arg1 == -1", 32, 1, 32, 1, UINT64_MAX, NULL},
		{"(uint8)arg1 == 255", 32, 1, 8, 0, 255, NULL},
		{"(int64)arg1 == -1", 32, 0, 64, 1, UINT64_MAX, NULL},
		{"arg0 == 18446744073709551615", 64, 0, 64, 0, UINT64_MAX, NULL},
		{"arg0 == -9223372036854775808", 64, 1, 64, 1, 1ull << 63, NULL},
		{"arg1 == -1", 32, 0, 0, 0, 0, "signed type"},
		{"arg1 == 256", 8, 0, 0, 0, 0, "8 bits has no value 256"},
		{"arg1 == -129", 8, 1, 0, 0, 0, "8 bits has no value -129"},
		{"arg1 == 9223372036854775808", 64, 1, 0, 0, 0, "64 bits has no value"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct probe_filter f;
		char *why;
		int r = describes(cases[i].text, cases[i].bits, cases[i].is_signed, &f, &why);

		CHECK_INT(r, cases[i].why ? -EINVAL : 0);
		CHECK(cases[i].why ? why && strstr(why, cases[i].why) : !why);
		if (!r) {
			CHECK_INT(f.bits, cases[i].want_bits);
			CHECK_INT(f.is_signed, cases[i].want_signed);
			CHECK(f.value == cases[i].value);
			CHECK_INT(f.operand.base, 3);
		}
		free(why);
	}
}
