/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof_flags.h"

#include <string.h>

#include <fusee/profile.h>

static const struct word {
	const char *text;
	uint32_t flag;
} words[] = {
	{"async", FUSEE_FRAME_ASYNC},
	{"builtin", FUSEE_FRAME_BUILTIN},
	{"hidden", FUSEE_FRAME_HIDDEN},
};
#define WORDS (sizeof(words) / sizeof(words[0]))

void pprof_flags_write(struct buf *b, uint32_t flags)
{
	const char *before = " [";

	for (size_t i = 0; i < WORDS; i++) {
		if (!(flags & words[i].flag))
			continue;
		buf_str(b, before);
		buf_str(b, words[i].text);
		before = ",";
	}
	if (*before == ',')
		buf_str(b, "]");
}

/* The flag whose word is text[0..len). 0: it is no such word. */
static uint32_t flag_of(const char *text, size_t len)
{
	for (size_t i = 0; i < WORDS; i++)
		if (strlen(words[i].text) == len && !memcmp(text, words[i].text, len))
			return words[i].flag;
	return 0;
}

uint32_t pprof_flags_read(const char *name, size_t *len)
{
	size_t end = *len, at;
	uint32_t flags = 0, flag;

	if (!end || name[end - 1] != ']')
		return 0;
	do {
		end--;
		for (at = end; at && name[at - 1] != ',' && name[at - 1] != '[';)
			at--;
		flag = flag_of(name + at, end - at);
		flags |= flag;
		end = at;
	} while (flag && end && name[end - 1] == ',');
	if (!flag || end < 2 || name[end - 2] != ' ')
		return 0;
	*len = end - 2;
	return flags;
}
