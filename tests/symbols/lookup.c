/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup FILE [-d DEBUG] [-a ALT] [-n] [-s]: names of the addresses on stdin (hex, one a line). For
 * each one line with the address, then one a frame: name TAB system name TAB file TAB line TAB
 * column TAB start line TAB flags. -n: no DWARF. -s: only time and memory, on stderr. -v: the spans
 * of the answers too, and how many of the addresses in each span have another answer. At the end
 * "quality" and the notes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "symbols/symbols.h"

static bool silent;
static unsigned long frames;

static void print(void *arg, const struct symbols_frame *f)
{
	(void)arg;
	frames++;
	if (!silent)
		printf("%s\t%s\t%s\t%u\t%u\t%u\t%u\n", f->name, f->system_name, f->file, f->line,
		       f->column, f->start_line, f->flags);
}

/* What an answer says. */
struct said {
	char text[65536];
	size_t n;
};

static void say(void *arg, const struct symbols_frame *f)
{
	struct said *to = arg;
	int n = snprintf(to->text + to->n, sizeof(to->text) - to->n, "%s\t%s\t%s\t%u\t%u\t%u\t%u\n",
			 f->name, f->system_name, f->file, f->line, f->column, f->start_line,
			 f->flags);

	to->n += n > 0 && (size_t)n < sizeof(to->text) - to->n ? (size_t)n : 0;
}

/* Looks all addresses of [addr, end of its span) up. Returns the end. */
static uint64_t verify(struct symbols *s, uint64_t addr, unsigned long *spans, unsigned long *wrong)
{
	static struct said first, other;
	struct symbols_span span;

	first.n = 0;
	symbols_lookup_span(s, addr, say, &first, &span);
	++*spans;
	*wrong += addr < span.lo || addr >= span.hi;
	for (uint64_t a = span.lo; a < span.hi && span.hi - span.lo < 65536; a++) {
		other.n = 0;
		symbols_lookup(s, a, say, &other);
		*wrong += other.n != first.n || memcmp(other.text, first.text, first.n);
	}
	return span.hi;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Of this program alone: ru_maxrss would be that of who started it, if that was larger. */
static long peak_mib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib / 1024;
}

int main(int argc, char **argv)
{
	struct symbols_files files = {-1, -1, -1};
	struct symbols_quality q;
	struct symbols *s;
	uint64_t *addresses = NULL, n = 0, cap = 0;
	bool inlines = true, verified = false;
	unsigned long spans = 0, wrong = 0;
	uint64_t end = 0;
	double start;
	char line[64];
	int c, r;

	while ((c = getopt(argc, argv, "d:a:nsv")) != -1) {
		if (c == 'd')
			files.debug_fd = open(optarg, O_RDONLY);
		else if (c == 'a')
			files.alt_fd = open(optarg, O_RDONLY);
		else if (c == 'n')
			inlines = false;
		else if (c == 's')
			silent = true;
		else if (c == 'v')
			verified = true;
		else
			return 64;
	}
	if (optind >= argc)
		return 64;
	files.fd = open(argv[optind], O_RDONLY);
	while (fgets(line, sizeof(line), stdin)) {
		if (n == cap) {
			cap = cap ? cap * 2 : 1024;
			addresses = realloc(addresses, cap * sizeof(*addresses));
			if (!addresses)
				return 1;
		}
		addresses[n++] = strtoull(line, NULL, 16);
	}
	qsort(addresses, n, sizeof(*addresses), compare);
	start = now();
	r = symbols_open(&s, &files, inlines);
	if (r) {
		fprintf(stderr, "%s: %s\n", argv[optind], strerror(-r));
		return 1;
	}
	for (uint64_t i = 0; i < n; i++) {
		if (!silent)
			printf("@%llx\n", (unsigned long long)addresses[i]);
		symbols_lookup(s, addresses[i], print, NULL);
		if (verified && addresses[i] >= end)
			end = verify(s, addresses[i], &spans, &wrong);
	}
	if (verified)
		fprintf(stderr, "%lu spans, %lu addresses differ\n", spans, wrong);
	symbols_quality(s, &q);
	if (silent) {
		fprintf(stderr, "%llu addresses, %lu frames: %.3f s, %ld MiB\n",
			(unsigned long long)n, frames, now() - start, peak_mib());
	}
	printf("quality%s%s%s%s%s\n%s%s", q.symtab ? " symtab" : "", q.dynsym ? " dynsym" : "",
	       q.debugdata ? " debugdata" : "", q.dwarf ? " dwarf" : "",
	       q.gopclntab ? " gopclntab" : "", q.note, *q.note ? "\n" : "");
	symbols_close(s);
	free(addresses);
	return 0;
}
