/* SPDX-License-Identifier: Apache-2.0 */
#include "stop/thread_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define PAGE 4096u
#define PAGES 128u
#define AHEAD 8u               /* pages of the stack that are read at once */
#define COPY 32u               /* pages of thread_memory_copy() */
#define STACK_SPAN (64u << 20) /* above sp is the stack, or memory that is not there */

struct memory_page {
	uint64_t number; /* address / PAGE, + 1; 0: empty */
	unsigned char bytes[PAGE];
};

static struct memory_page *page_of(const struct thread_memory *m, uint64_t number)
{
	return &m->pages[number % PAGES];
}

static bool is_stack(const struct thread_memory *m, uint64_t number)
{
	return number - m->sp / PAGE < STACK_SPAN / PAGE;
}

/* Reads n pages from this number on. false: the first is not readable. */
static bool fetch(struct thread_memory *m, uint64_t number, uint32_t n)
{
	struct iovec to[COPY], from[COPY];
	ssize_t got;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = (number + i) * PAGE;

		to[i] = (struct iovec){page_of(m, number + i)->bytes, PAGE};
		from[i] = (struct iovec){(void *)(uintptr_t)at, PAGE};
		page_of(m, number + i)->number = 0;
	}
	got = process_vm_readv(m->tid, to, n, from, n, 0);
	for (uint32_t i = 0; i < n && got >= (ssize_t)((i + 1) * PAGE); i++)
		page_of(m, number + i)->number = number + i + 1;
	return got >= (ssize_t)PAGE;
}

/* The page with this number. NULL: it is not readable. */
static const struct memory_page *get(struct thread_memory *m, uint64_t number)
{
	const struct memory_page *p = page_of(m, number);
	bool stack = is_stack(m, number);

	if (p->number == number + 1)
		return p;
	if (stack && m->copied) {
		m->missed = true;
		return NULL;
	}
	return fetch(m, number, stack ? AHEAD : 1) ? p : NULL;
}

void thread_memory_copy(struct thread_memory *m)
{
	fetch(m, m->sp / PAGE, COPY);
	m->copied = true;
}

static int read_memory(void *arg, void *dst, uint32_t len, uint64_t addr)
{
	struct thread_memory *m = arg;
	unsigned char *to = dst;

	while (len) {
		uint32_t in = (uint32_t)(addr % PAGE), n = PAGE - in < len ? PAGE - in : len;
		const struct memory_page *p = get(m, addr / PAGE);

		if (!p)
			return -1;
		memcpy(to, p->bytes + in, n);
		to += n;
		addr += n;
		len -= n;
	}
	return 0;
}

struct thread_memory *thread_memory_new(void)
{
	struct thread_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->pages = malloc(PAGES * sizeof(*m->pages));
	if (!m->pages) {
		free(m);
		return NULL;
	}
	memset(m->pages, 0,
	       PAGES * sizeof(*m->pages)); /* no page fault while a thread is stopped */
	return m;
}

void thread_memory_free(struct thread_memory *m)
{
	if (!m)
		return;
	free(m->pages);
	free(m);
}

void thread_memory_begin(struct thread_memory *m, pid_t tid, uint64_t sp)
{
	m->reader = (struct sample_memory){read_memory, m};
	m->tid = tid;
	m->sp = sp;
	m->copied = m->missed = false;
	for (uint32_t i = 0; i < PAGES; i++)
		m->pages[i].number = 0;
}
