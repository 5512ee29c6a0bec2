/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of allocators that call others, or jump to them, for tests/run/alloc: `allocates_nested
 * N` writes for each site "site calls bytes". With WITH_NEW those of C++, too, by their names.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define KEEP(p) __asm__ volatile("" ::"r"(p) : "memory")

static void done(void *p)
{
	KEEP(p);
	free(p);
}

static size_t by_memalign(void)
{
	done(memalign(256, 2560));
	return 2560;
}

static size_t by_valloc(void)
{
	done(valloc(8192));
	return 8192;
}

static size_t by_posix(void)
{
	void *p = NULL;

	if (posix_memalign(&p, 64, 3200))
		exit(1);
	done(p);
	return 3200;
}

static size_t by_calloc(void)
{
	done(calloc(30, 100));
	return 3000;
}

/* 16 GiB, of which nothing is used. It may be refused, but is requested. */
static size_t many(void)
{
	done(calloc(1ull << 31, 8));
	return (size_t)8 << 31;
}

#ifdef WITH_NEW
void *_Znwm(size_t);
void *_Znam(size_t);
void *_ZnwmRKSt9nothrow_t(size_t, const void *);
void *_ZnamRKSt9nothrow_t(size_t, const void *);
void *_ZnwmSt11align_val_t(size_t, size_t);
void *_ZnamSt11align_val_t(size_t, size_t);
void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t, size_t, const void *);
void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t, size_t, const void *);

static size_t by_new(void)
{
	done(_Znwm(100));
	done(_Znam(200));
	done(_ZnwmRKSt9nothrow_t(300, ""));
	done(_ZnamRKSt9nothrow_t(400, ""));
	return 100 + 200 + 300 + 400;
}

static size_t by_aligned_new(void)
{
	done(_ZnwmSt11align_val_t(640, 64));
	done(_ZnamSt11align_val_t(1280, 64));
	done(_ZnwmSt11align_val_tRKSt9nothrow_t(1920, 64, ""));
	done(_ZnamSt11align_val_tRKSt9nothrow_t(2560, 64, ""));
	return 640 + 1280 + 1920 + 2560;
}
#endif

static const struct site {
	const char *name;
	size_t (*once)(void);
	unsigned int calls; /* of allocators, by one call of once() */
} sites[] = {
	{"by_memalign", by_memalign, 1},
	{"by_valloc", by_valloc, 1},
	{"by_posix", by_posix, 1},
	{"by_calloc", by_calloc, 1},
	{"many", many, 1},
#ifdef WITH_NEW
	{"by_new", by_new, 4},
	{"by_aligned_new", by_aligned_new, 4},
#endif
};

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 ? (unsigned int)atoi(argv[1]) : 1000;

	for (size_t i = 0; i < sizeof(sites) / sizeof(*sites); i++) {
		uint64_t bytes = 0;

		for (unsigned int k = 0; k < n; k++)
			bytes += sites[i].once();
		printf("%s %llu %llu\n", sites[i].name, (unsigned long long)n * sites[i].calls,
		       (unsigned long long)bytes);
	}
	return 0;
}
