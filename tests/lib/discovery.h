/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of discovery share: waiting for plugins, which work in rounds of the control thread,
 * and labels of their targets. */
#ifndef DISCOVERY_H
#define DISCOVERY_H

#include "lib/fakehost.h"

/* Rounds until it is so. The deadline only ends what never comes. */
#define ROUNDS_UNTIL(f, x)                                                                \
	do {                                                                              \
		unsigned long long deadline_ = test_deadline(TEST_WAIT);                  \
		while (!(x)) {                                                            \
			CHECK(fake_round(f, 10) >= 0);                                    \
			if (test_now_ns() > deadline_)                                    \
				test_fail(__FILE__, __LINE__, "never: %s; log: %.*s", #x, \
					  (int)(f)->logged.len, (f)->logged.p);           \
		}                                                                         \
	} while (0)

/* "": there is no such target, or no such label. */
FAKE const char *label_of(struct fake *f, const char *key, const char *name)
{
	const char *text = fake_label(fake_find(f, key), name);

	return text ? text : "";
}

/* The target has these: {name, text}, "": no such label. */
#define LABELS(f, key, ...)                                                    \
	do {                                                                   \
		static const char *const all_[][2] = {__VA_ARGS__};            \
		for (size_t i_ = 0; i_ < sizeof(all_) / sizeof(*all_); i_++)   \
			CHECK_STR(label_of(f, key, all_[i_][0]), all_[i_][1]); \
	} while (0)
#define LABEL_COMES(f, key, name, text) ROUNDS_UNTIL(f, !strcmp(label_of(f, key, name), text))
#define LOG_COMES(f, text) ROUNDS_UNTIL(f, fake_logged(f, text))

/* `before`, that many times `each_time`, `after`; the caller's. */
FAKE char *many(const char *before, const char *each_time, uint32_t n, const char *after)
{
	size_t len = strlen(each_time), head = strlen(before);
	char *text = malloc(head + n * len + strlen(after) + 1);

	CHECK(text);
	strcpy(text, before);
	for (uint32_t i = 0; i < n; i++)
		memcpy(text + head + i * len, each_time, len);
	strcpy(text + head + n * len, after);
	return text;
}
#endif
