/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names_table N SEED [-n] [-x]: for each file on stdin, makes its table of names, as a worker does,
 * and compares N answers of it with those of a worker: of random addresses of its code, and of the
 * edges of rows. -n: no DWARF. -x: looks one address further up, so that the comparison must fail.
 * The debug file is that of the build ID in /usr/lib/debug. A line for each file: what, addresses,
 * those that the table lacks, bytes of the table, seconds to make it, path. what: "equal", "no"
 * (no table: the reason is behind the path), "differ"; then the first difference follows.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "names/make.h"
#include "names/names.h"
#include "symbols/internal/source.h"
#include "worker/internal/protocol.h"
#include "worker/internal/symbolize_reply.h"

#define MAX_RANGES 64

static bool inlines = true, shifted;
static uint64_t state;

static uint64_t next(uint64_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return below ? (state >> 20) % below : 0;
}

static uint32_t quality(const struct symbols *s)
{
	struct symbols_quality q;

	symbols_quality(s, &q);
	return q.dwarf ? INSPECTION_DWARF : 0;
}

/* fd or -1. */
static int open_debug(int fd)
{
	char hex[129], path[200];
	struct source *s;
	uint8_t id[64];
	size_t n;

	if (source_open(&s, fd))
		return -1;
	n = source_build_id(s, id);
	source_close(s);
	if (n < 2)
		return -1;
	text_hex(hex, id, n);
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Addresses of code, and a little behind it. */
static uint64_t *choose(const struct symbols *s, uint32_t n)
{
	uint64_t *all = calloc(n, sizeof(*all)), total = 0;
	struct symbols_span code[MAX_RANGES];
	uint32_t ranges = 0;

	while (ranges < MAX_RANGES && symbols_code(s, ranges, &code[ranges])) {
		code[ranges].hi += 2;
		total += code[ranges].hi - code[ranges].lo;
		ranges++;
	}
	for (uint32_t i = 0; all && i < n; i++) {
		uint64_t at = next(total ? total : 1 << 20);

		for (uint32_t r = 0; r < ranges; at -= code[r].hi - code[r].lo, r++)
			if (at < code[r].hi - code[r].lo) {
				at += code[r].lo;
				break;
			}
		all[i] = at;
	}
	return all;
}

static bool equal(const struct symbols_frame *w, const struct symbols_frame *t)
{
	return !strcmp(w->name, t->name) && !strcmp(w->system_name, t->system_name) &&
	       !strcmp(w->file, t->file) && w->line == t->line && w->column == t->column &&
	       w->start_line == t->start_line && w->flags == t->flags;
}

/* 1: equal; 0: not; -ENOENT: the table lacks it; -errno. */
static int compare(struct names_table *t, uint64_t address, const struct worker_symbols *s,
		   uint32_t at)
{
	const struct symbols_frame *w = s->frames + s->first[at];
	uint32_t n, wn = s->first[at + 1] - s->first[at];
	const struct symbols_frame *f;
	int err = names_find(t, address + shifted, &f, &n);
	bool same = !err && n == wn;

	for (uint32_t i = 0; same && i < n; i++)
		same = equal(&w[i], &f[i]);
	if (err || same)
		return err ? err : 1;
	printf("differ\t0\t0\t0\t0\t0x%llx: %s (%s) %s:%u:%u, %u frames; table: %s (%s) %s:%u:%u, "
	       "%u\n",
	       (unsigned long long)address, w->name, w->system_name, w->file, w->line, w->column,
	       wn, f->name, f->system_name, f->file, f->line, f->column, n);
	return 0;
}

/* The number of addresses that are equal; -1: one differs. */
static long compare_all(struct names_table *t, const struct symbols_files *files, uint32_t n,
			long *lacks)
{
	struct worker_symbols answer;
	struct symbols *s;
	struct buf b = {0};
	uint64_t *addresses;
	long same = 0;
	int r = symbols_open(&s, files, inlines);

	if (r)
		return 0;
	addresses = choose(s, n);
	if (!addresses || symbolize_reply_write(&b, s, addresses, n) ||
	    symbolize_reply_open(&answer, b.p, b.len, n))
		abort();
	for (uint32_t i = 0; same >= 0 && i < n; i++) {
		r = compare(t, addresses[i], &answer, i);
		*lacks += r == -ENOENT;
		if (r < 0 && r != -ENOENT)
			printf("differ\t0\t0\t0\t0\terror %d\n", r);
		same = r == 1 ? same + 1 : r == -ENOENT ? same : -1;
	}
	free((void *)answer.frames);
	free(addresses);
	buf_fini(&b);
	symbols_close(s);
	return same;
}

static void file(const char *path, uint32_t n)
{
	struct symbols_files files = {open(path, O_RDONLY | O_CLOEXEC), -1, -1};
	clock_t begin = clock();
	long same = 0, lacks = 0;
	struct buf b = {0};
	struct names_table *t;
	struct symbols *s;
	double seconds;
	int r = files.fd < 0 ? -errno : 0, memfd;

	if (!r) {
		files.debug_fd = open_debug(files.fd);
		r = symbols_open(&s, &files, inlines);
	}
	if (!r) {
		r = names_make(&b, s, quality);
		symbols_close(s);
	}
	seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
	if (!r) {
		memfd = protocol_seal(b.p, b.len);
		r = memfd < 0 ? memfd : names_open(&t, memfd, 0, b.len);
	}
	if (!r) {
		same = compare_all(t, &files, n, &lacks);
		names_close(t);
	}
	printf("%s\t%ld\t%ld\t%zu\t%.3f\t%s\t%s\n",
	       r          ? "no"
	       : same < 0 ? "differ"
			  : "equal",
	       same, lacks, b.len, seconds, path, r ? strerror(-r) : "");
	buf_fini(&b);
	close(files.fd);
	if (files.debug_fd >= 0)
		close(files.debug_fd);
}

int main(int argc, char **argv)
{
	char line[4096];

	if (argc < 3)
		return 64;
	for (int i = 3; i < argc; i++) {
		inlines &= !!strcmp(argv[i], "-n");
		shifted |= !strcmp(argv[i], "-x");
	}
	state = strtoull(argv[2], NULL, 10);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		file(line, (uint32_t)strtoul(argv[1], NULL, 10));
		fflush(stdout);
	}
	return 0;
}
