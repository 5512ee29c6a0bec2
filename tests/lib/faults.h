/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of the core failed in turn: link the test with FAULTS (Makefile), include this
 * once, and
 *
 *	for (faults_from(0); faults_next();) { build(); tear_down(); }
 *
 * The n-th round fails the n-th allocation alone; the last round fails none. Library code that was
 * not linked in (libc's own, shared libraries') is not failed but where it calls back an allocator
 * of the core.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include "test.h"

static struct {
	unsigned long seen, fail_at; /* 0: none fails */
	unsigned long after;         /* all of the first n succeed */
	bool armed, begun;
} faults;

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
char *__real_strdup(const char *);
char *__real_strndup(const char *, size_t);
int __real_vasprintf(char **, const char *, va_list);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
char *__wrap_strdup(const char *);
char *__wrap_strndup(const char *, size_t);
int __wrap_vasprintf(char **, const char *, va_list);
int __wrap_asprintf(char **, const char *, ...);
int __wrap___vasprintf_chk(char **, int, const char *, va_list);
int __wrap___asprintf_chk(char **, int, const char *, ...);

static bool faults_hit(void)
{
	return faults.armed && ++faults.seen == faults.fail_at;
}

void *__wrap_malloc(size_t n)
{
	return faults_hit() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return faults_hit() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return faults_hit() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
	return faults_hit() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
	return faults_hit() ? NULL : __real_strndup(s, n);
}

int __wrap_vasprintf(char **ret, const char *format, va_list ap)
{
	if (!faults_hit())
		return __real_vasprintf(ret, format, ap);
	*ret = (char *)0x10; /* undefined, says the manual */
	errno = ENOMEM;
	return -1;
}

int __wrap_asprintf(char **ret, const char *format, ...)
{
	va_list ap;
	int r;

	va_start(ap, format);
	r = __wrap_vasprintf(ret, format, ap);
	va_end(ap);
	return r;
}

int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list ap)
{
	return __wrap_vasprintf(ret, format, ap);
}

int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
{
	va_list ap;
	int r;

	va_start(ap, format);
	r = __wrap_vasprintf(ret, format, ap);
	va_end(ap);
	return r;
}

/* Begins: the first `after` allocations of each round succeed. */
__attribute__((unused)) static void faults_from(unsigned long after)
{
	faults.after = faults.fail_at = after;
	faults.armed = faults.begun = false;
}

/* The next round; false once a round went by without a failure. */
__attribute__((unused)) static bool faults_next(void)
{
	bool complete = faults.begun && faults.seen < faults.fail_at;

	faults.armed = !complete;
	faults.begun = true;
	faults.seen = 0;
	faults.fail_at++;
	return !complete;
}

/* This round's failure has happened. */
__attribute__((unused)) static bool faults_happened(void)
{
	return faults.seen >= faults.fail_at;
}

__attribute__((unused)) static void faults_stop(void)
{
	faults.armed = false;
}
#endif
