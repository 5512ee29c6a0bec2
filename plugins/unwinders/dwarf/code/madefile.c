/* SPDX-License-Identifier: Apache-2.0 */
#include "madefile.h"

#include <errno.h>
#include <stdlib.h>

#include "forward.h"
#include "../cursor.h"

struct made {
	const uint8_t *head; /* words */
	uint64_t pieces, starts;
	struct forward_start *from; /* owned */
};

static uint64_t word(const struct made *m, uint64_t i)
{
	return load_u64(m->head + 8 * i);
}

static int add_piece(const struct made *m, struct table_build *build, const uint8_t *code,
		     uint64_t vaddr, uint64_t len, struct rows *rows)
{
	const struct forward_code piece = {.bytes = code, .len = len, .vaddr = vaddr};
	struct forward *f;
	int err = forward_new(&f, &piece, m->from, m->starts);

	if (err)
		return err;
	err = forward_rows(f, build, rows);
	forward_free(f);
	return err;
}

static int add_pieces(const struct made *m, struct table_build *build, uint64_t len,
		      struct rows *rows)
{
	uint64_t at = 8 * (2 + 2 * m->pieces + m->starts), first = word(m, 2), end = first;
	int err = 0;

	for (uint64_t i = 0; !err && i < m->pieces; i++) {
		uint64_t vaddr = word(m, 2 + 2 * i), n = word(m, 3 + 2 * i);

		if (vaddr < end || n > len - at || vaddr >= TABLE_MAX_ADDRESS - n)
			return -EBADMSG;
		end = vaddr + n;
		if (end - first <= MADEFILE_MAX_SPAN)
			err = add_piece(m, build, m->head + at, vaddr, n, rows);
		at += n;
	}
	return err;
}

int madefile_add(struct table_build *build, const struct fusee_unwinder_host *host, uint64_t file,
		 struct rows *rows)
{
	struct fusee_section s;
	struct made m;
	uint64_t most;
	int err;

	if (fusee_file_section(host, file, MADEFILE_SECTION, &s))
		return -ENOENT;
	most = s.bytes.len / 8;
	m.head = (const uint8_t *)s.bytes.p;
	if (most < 4)
		return -EBADMSG;
	m.pieces = word(&m, 0);
	m.starts = word(&m, 1);
	if (!m.pieces || m.pieces > most || m.starts > most || 2 + 2 * m.pieces + m.starts > most)
		return -EBADMSG;
	m.from = calloc(m.starts + 1, sizeof(*m.from));
	if (!m.from)
		return -ENOMEM;
	for (uint64_t i = 0; i < m.starts; i++) {
		uint64_t w = word(&m, 2 + 2 * m.pieces + i);

		m.from[i] = (struct forward_start){w >> 1, w & 1};
	}
	err = add_pieces(&m, build, s.bytes.len, rows);
	free(m.from);
	return err;
}
