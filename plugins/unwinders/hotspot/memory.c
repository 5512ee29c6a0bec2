/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <stdlib.h>

#define BLOCK 65536u /* bytes of a read; where they are not all mapped, a page is read */
#define PAGE 4096u
#define BLOCKS 24u

struct block {
	uint64_t lo;
	uint32_t len;
	char bytes[BLOCK];
};

struct hotspot_memory {
	const struct fusee_unwinder_host *host;
	uint64_t process;
	uint32_t reads; /* how many may still be made */
	int err;
	struct block *blocks[BLOCKS]; /* a cache, filled from its first element on */
	uint32_t next;                /* the element that is replaced next */
};

struct hotspot_memory *hotspot_memory_new(const struct fusee_unwinder_host *host, uint64_t process,
					  uint32_t most)
{
	struct hotspot_memory *m = calloc(1, sizeof(*m));

	if (m)
		*m = (struct hotspot_memory){.host = host, .process = process, .reads = most};
	return m;
}

void hotspot_memory_free(struct hotspot_memory *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < BLOCKS; i++)
		free(m->blocks[i]);
	free(m);
}

bool hotspot_memory_may_pass(int err)
{
	return err == -EAGAIN || err == -ETIMEDOUT || err == -ENOBUFS || err == -EMFILE;
}

int hotspot_memory_error(struct hotspot_memory *m)
{
	int err = m->err;

	m->err = 0;
	return err;
}

static int read_block(struct hotspot_memory *m, struct block *b, uint64_t at, uint32_t len)
{
	if (!m->reads)
		return -E2BIG;
	m->reads--;
	b->lo = at & ~(uint64_t)(len - 1);
	b->len = len;
	return m->host->process_read(m->process, b->lo, b->bytes, len);
}

/* Returns the block that contains the address, NULL if it cannot be read. */
static const struct block *block_of(struct hotspot_memory *m, uint64_t at)
{
	uint32_t i = m->next;
	int err;

	for (uint32_t k = 0; k < BLOCKS && m->blocks[k]; k++)
		if (at - m->blocks[k]->lo < m->blocks[k]->len)
			return m->blocks[k];
	if (hotspot_memory_may_pass(m->err))
		return NULL;
	if (!m->blocks[i])
		m->blocks[i] = calloc(1, sizeof(*m->blocks[i]));
	if (!m->blocks[i])
		return NULL;
	err = read_block(m, m->blocks[i], at, BLOCK);
	if (err && !hotspot_memory_may_pass(err))
		err = read_block(m, m->blocks[i], at, PAGE);
	if (err) {
		m->blocks[i]->len = 0;
		m->err = m->err ? m->err : err;
		return NULL;
	}
	m->next = (i + 1) % BLOCKS;
	return m->blocks[i];
}

bool hotspot_memory_read(struct hotspot_memory *m, uint64_t at, void *to, uint32_t len)
{
	char *p = to;

	memset(to, 0, len);
	while (len) {
		const struct block *b = block_of(m, at);
		uint32_t offset, n;

		if (!b)
			return false;
		offset = (uint32_t)(at - b->lo);
		n = b->len - offset < len ? b->len - offset : len;
		memcpy(p, b->bytes + offset, n);
		p += n;
		at += n;
		len -= n;
	}
	return true;
}

void hotspot_memory_text(struct hotspot_memory *m, uint64_t at, char *to, uint32_t cap)
{
	uint32_t n = 0;

	while (n < cap && hotspot_memory_read(m, at + n, to + n, 1) && to[n])
		n++;
	if (n == cap || to[n])
		n = 0;
	to[n] = '\0';
}
