/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables FILE [REPEATS]: what making a file's unwind table costs, and copying it to where the
 * kernel reads it (a mapped array of BPF; where that is not allowed, shared memory), beside a plain
 * read of its .eh_frame and one sort of as many rows. Each repeat runs all of them, so that they
 * see the same machine; medians, and the ratio's median with its 10th and 90th percentile.
 */
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../plugins/unwinders/dwarf/rows.h"
#include "../accuracy/host.h"

extern const struct fusee_plugin fusee_plugin;

enum { BUILD, LOAD, READ, SORT_IN_ORDER, SORT_SHUFFLED, SORT_RADIX, N };
static const char *const names[] = {
	"table made",
	"table copied to the kernel",
	"plain read of .eh_frame",
	"qsort of its rows in order",
	"qsort of its rows shuffled",
	"radix sort of its rows shuffled",
};
#define MAX_REPEATS 101
#define ELEMENT (1u << 20) /* bytes */
/* the budgets of a large file */
#define LARGE 500000
#define MOST_BYTES 5.0
#define MOST_RATIO 3.0

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare_rows(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_times(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void radix(uint64_t *p, uint64_t *other, size_t n)
{
	for (int shift = 16; shift < 48; shift += 8) {
		size_t at[257] = {0};
		uint64_t *q = other;

		for (size_t i = 0; i < n; i++)
			at[(p[i] >> shift & 255) + 1]++;
		for (int i = 1; i < 257; i++)
			at[i] += at[i - 1];
		for (size_t i = 0; i < n; i++)
			other[at[p[i] >> shift & 255]++] = p[i];
		other = p;
		p = q;
	}
}

/* The table's rows as vaddr << 16 | rule, sorted; then shuffled the same way each time. */
static void fill(const struct host_file *f, uint64_t *rows, int shuffled)
{
	const uint32_t *w = f->words;
	uint64_t seed = 1;
	size_t n = 0;

	for (uint32_t b = 0; b < w[DWARF_BLOCKS]; b++) {
		uint32_t entry = w[w[DWARF_INDEX_AT] + b];

		for (uint32_t i = 0; i < (entry & 0xff); i++) {
			uint32_t row = w[w[DWARF_ROWS_AT] + (entry >> 8) + i];

			rows[n++] = ((uint64_t)b * 256 & ~0xffffull) << 16 |
				    (uint64_t)(row & 0xffff) << 16 | row >> 16;
		}
	}
	for (size_t i = n - 1; shuffled && i; i--) {
		uint64_t t = rows[i];
		size_t k;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		k = (seed >> 20) % (i + 1);
		rows[i] = rows[k];
		rows[k] = t;
	}
}

static int build(const char *path, struct host_file *f)
{
	int err, fd = open(path, O_RDONLY | O_CLOEXEC);

	memset(f, 0, sizeof(*f));
	err = fd < 0 ? -errno : elf_open(&f->elf, fd);
	if (!err)
		err = host_inspect(&fusee_plugin, f);
	if (f->elf)
		elf_close(f->elf);
	if (fd >= 0)
		close(fd);
	return err == 1 ? 0 : -1;
}

static void plain_read(const char *path, uint64_t offset, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *p = malloc(len);

	if (!p || pread(fd, p, len, (off_t)offset) != (ssize_t)len)
		exit(1);
	free(p);
	close(fd);
}

/* As many elements as hold so many bytes, as the sampler maps them. *size is how many there are. */
static void *kernel_memory(size_t len, size_t *size)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = 4,
		.value_size = ELEMENT,
		.max_entries = (uint32_t)(len / ELEMENT + 1),
		.map_flags = BPF_F_MMAPABLE,
	};
	int fd = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	void *p;

	*size = len = (size_t)attr.max_entries * ELEMENT;
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd,
		 0);
	if (p == MAP_FAILED)
		exit(1);
	if (fd >= 0)
		close(fd);
	else
		memset(p, 1, len); /* the kernel's is there already */
	return p;
}

static void eh_frame_of(const char *path, struct fusee_section *s)
{
	struct host_file f = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	s->size = sizeof(*s);
	if (fd < 0 || elf_open(&f.elf, fd) || elf_section(f.elf, ".eh_frame", s)) {
		fprintf(stderr, "tables: '%s' has no .eh_frame\n", path);
		exit(1);
	}
	elf_close(f.elf);
	close(fd);
}

static double median(double *t, int n, double part)
{
	qsort(t, (size_t)n, sizeof(*t), compare_times);
	return t[(int)(part * (n - 1) + 0.5)];
}

static void print_ratio(double t[N][MAX_REPEATS], int n, int sort, bool judged)
{
	double ratio[MAX_REPEATS], mid;

	for (int i = 0; i < n; i++)
		ratio[i] = (t[BUILD][i] + t[LOAD][i]) / (t[READ][i] + t[sort][i]);
	mid = median(ratio, n, 0.5);
	printf("(made + copied) / (read + %s): %.2f [%.2f .. %.2f]", names[sort], mid,
	       ratio[(n - 1) / 10], ratio[(n - 1) * 9 / 10]);
	if (judged)
		printf(", at most %g: %s", MOST_RATIO,
		       mid <= MOST_RATIO ? "reached" : "not reached");
	putchar('\n');
}

static void print(double t[N][MAX_REPEATS], int n, size_t rows, double bytes)
{
	printf("%.2f bytes a row, index and specials included, at most %g: %s\n", bytes, MOST_BYTES,
	       bytes <= MOST_BYTES ? "reached" : "not reached");
	for (int sort = SORT_IN_ORDER; sort < N; sort++)
		/* the budget's sort: what any program would call, where it has least to do */
		print_ratio(t, n, sort, sort == SORT_IN_ORDER && rows >= LARGE);
	for (int i = 0; i < N; i++)
		printf("%-34s %8.2f ms\n", names[i], median(t[i], n, 0.5));
}

static void measure(const char *path, int repeats)
{
	static double t[N][MAX_REPEATS];
	struct fusee_section s = {0};
	struct host_file f;
	uint64_t *rows, *other;
	size_t n, size;
	void *kernel;

	eh_frame_of(path, &s);
	if (build(path, &f))
		exit(1);
	n = f.words[DWARF_ROWS];
	rows = malloc(n * 8);
	other = malloc(n * 8);
	kernel = kernel_memory(f.n * 4, &size);
	for (int i = 0; i < repeats; i++) {
		struct host_file g;
		double at = now();

		if (!rows || !other || build(path, &g))
			exit(1);
		t[BUILD][i] = now() - at;
		if (g.n * 4 > size) { /* reading code has a limit of time, so it may find more */
			munmap(kernel, size);
			kernel = kernel_memory(g.n * 4, &size);
		}
		at = now();
		memcpy(kernel, g.words, g.n * 4);
		t[LOAD][i] = now() - at;
		free(g.words);
		at = now();
		plain_read(path, s.offset, s.bytes.len);
		t[READ][i] = now() - at;
		for (int sort = SORT_IN_ORDER; sort < N; sort++) {
			fill(&f, rows, sort != SORT_IN_ORDER);
			at = now();
			if (sort == SORT_RADIX)
				radix(rows, other, n);
			else
				qsort(rows, n, 8, compare_rows);
			t[sort][i] = now() - at;
		}
	}
	printf("%s: .eh_frame %lu bytes, %zu rows\n", path, (unsigned long)s.bytes.len, n);
	print(t, repeats, n, 4.0 * (double)f.n / (double)n);
}

int main(int argc, char **argv)
{
	int repeats = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 21;

	if (argc < 2 || repeats < 1 || repeats > MAX_REPEATS)
		return 64;
	measure(argv[1], repeats);
	return 0;
}
