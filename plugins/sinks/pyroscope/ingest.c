/* SPDX-License-Identifier: Apache-2.0 */
/* "name=service{key=value,key=value}&from=..&until=..": there is no quoting in the name. */
#include <stdlib.h>

#include "push.h"

/* Writes a name or value with the characters that /ingest allows, encoded for a query. */
static void put(FILE *f, struct fusee_str s, bool name)
{
	for (uint64_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';

		if (plain)
			fputc(c, f);
		else if (name || c == ',' || c == '}' || c < ' ' || c == 0x7f)
			fputc('_', f);
		else
			fprintf(f, "%%%02X", c);
	}
}

int ingest_query(struct fusee_table labels, const struct fusee_profile *p, char **ret)
{
	size_t n;
	FILE *f = open_memstream(ret, &n);
	bool first = true;

	if (!f)
		return -ENOMEM;
	fputs("name=", f);
	FUSEE_FOR_EACH (struct fusee_label, l, labels) {
		if (fusee_text_is(l->key, "service_name"))
			put(f, l->str, true);
	}
	fputs("%7B", f);
	FUSEE_FOR_EACH (struct fusee_label, l, labels) {
		if (fusee_text_is(l->key, "service_name"))
			continue;
		fputs(first ? "" : "%2C", f);
		put(f, l->key, true);
		fputs("%3D", f);
		put(f, l->str, false);
		first = false;
	}
	/* nanoseconds, of 19 digits */
	fprintf(f, "%%7D&from=%llu&until=%llu&format=pprof&spyName=fusee",
		(unsigned long long)p->start_ns,
		(unsigned long long)(p->start_ns + p->duration_ns));
	return fclose(f) ? -ENOMEM : 0;
}
