/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/internal/flags.h"

#include <string.h>

#include <fusee/profile.h>

static const struct word {
	const char *text;
	uint32_t flag;
} words[] = {
	{"async", FUSEE_FRAME_ASYNC},
	{"builtin", FUSEE_FRAME_BUILTIN},
	{"guessed", PPROF_FLAG_GUESSED},
	{"hidden", FUSEE_FRAME_HIDDEN},
};
#define WORDS (sizeof(words) / sizeof(words[0]))

#define LANGUAGE "language "
#define LANGUAGE_LEN (sizeof(LANGUAGE) - 1)

bool pprof_flags_takes(struct fusee_str language)
{
	for (uint64_t i = 0; i < language.len; i++) {
		char c = language.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '-' && c != '_' && c != '.')
			return false;
	}
	return language.len > 0 && language.len <= 24;
}

void pprof_flags_write(struct buf *b, uint32_t flags, struct fusee_str language)
{
	const char *before = " [";

	for (size_t i = 0; i < WORDS; i++) {
		if (!(flags & words[i].flag))
			continue;
		buf_str(b, before);
		buf_str(b, words[i].text);
		before = ",";
	}
	if (language.len) {
		buf_str(b, before);
		buf_str(b, LANGUAGE);
		buf_add(b, language.p, language.len);
		before = ",";
	}
	if (*before == ',')
		buf_str(b, "]");
}

/* Parses a flag or the language. False: the text is neither. */
static bool take(const char *text, size_t len, uint32_t *flags, struct fusee_str *language)
{
	struct fusee_str l = {"", 0};

	for (size_t i = 0; i < WORDS; i++)
		if (strlen(words[i].text) == len && !memcmp(text, words[i].text, len)) {
			*flags |= words[i].flag;
			return true;
		}
	if (len > LANGUAGE_LEN && !memcmp(text, LANGUAGE, LANGUAGE_LEN))
		l = (struct fusee_str){text + LANGUAGE_LEN, len - LANGUAGE_LEN};
	if (!pprof_flags_takes(l))
		return false;
	*language = l;
	return true;
}

uint32_t pprof_flags_read(const char *name, size_t *len, struct fusee_str *language)
{
	struct fusee_str l = {"", 0};
	size_t end = *len, at;
	uint32_t flags = 0;
	bool ok;

	*language = l;
	if (!end || name[end - 1] != ']')
		return 0;
	do {
		end--;
		for (at = end; at && name[at - 1] != ',' && name[at - 1] != '[';)
			at--;
		ok = take(name + at, end - at, &flags, &l);
		end = at;
	} while (ok && end && name[end - 1] == ',');
	if (!ok || end < 2 || name[end - 2] != ' ')
		return 0;
	*len = end - 2;
	*language = l;
	return flags;
}
