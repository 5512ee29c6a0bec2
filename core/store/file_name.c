/* SPDX-License-Identifier: Apache-2.0 */
#include "store/internal/file_name.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIME "0000-00-00T00-00-00Z-"
#define TAIL "-xxxxxxxx-xxxxxxxxxxxxxxxx.pb.gz"

/* In `form`, '0' is a decimal digit, 'x' a hexadecimal digit, any other character itself. */
static bool has_form(const char *text, const char *form)
{
	for (; *form; form++, text++) {
		bool fits = *form == '0'   ? *text >= '0' && *text <= '9'
			    : *form == 'x' ? (*text >= '0' && *text <= '9') ||
						     (*text >= 'a' && *text <= 'f')
					   : *text == *form;

		if (!fits)
			return false;
	}
	return true;
}

bool file_name_parse(const char *name, struct file_name *f)
{
	size_t len = strlen(name), time = strlen(TIME), tail = strlen(TAIL);
	struct tm tm = {0};
	int64_t t;

	if (len <= time + tail || !has_form(name, TIME) || !has_form(name + len - tail, TAIL) ||
	    !strptime(name, "%Y-%m-%dT%H-%M-%SZ", &tm))
		return false;
	t = timegm(&tm);
	if (t < 0 || t > 9000000000)
		return false;
	f->start_ns = (uint64_t)t * 1000000000;
	f->target = (struct fusee_str){name + time, len - time - tail};
	f->hash = (uint32_t)strtoul(name + len - tail + 1, NULL, 16);
	return true;
}

/* FNV-1a; each text ends with a byte that does not occur in UTF-8. */
static uint32_t add_text(uint32_t h, struct fusee_str s)
{
	for (uint64_t i = 0; i < s.len; i++)
		h = (h ^ (uint8_t)s.p[i]) * 16777619u;
	return (h ^ 0xff) * 16777619u;
}

uint32_t file_name_hash(const struct fusee_label *labels, uint32_t n)
{
	uint32_t h = 2166136261u;

	for (uint32_t i = 0; i < n; i++)
		h = add_text(add_text(h, labels[i].key), labels[i].str);
	return h;
}
