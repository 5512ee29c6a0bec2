/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/internal/made_image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "opener/opener.h"

#define BEHIND 2u /* pieces behind that of a start that are read: the way out leads there */

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The pieces that are to be read, in order of address. Returns how many. */
static uint32_t choose(const struct made_view *v, uint64_t pieces[MADE_MAX_PIECES])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < v->n; i++) {
		uint64_t at = (v->starts[i] >> 1) / MADE_PIECE_BYTES;

		for (uint64_t k = at ? at - 1 : 0; k <= at + BEHIND && n < MADE_MAX_PIECES; k++)
			if ((!n || k > pieces[n - 1]) && (k + 1) * MADE_PIECE_BYTES > v->lo &&
			    k * MADE_PIECE_BYTES < v->hi)
				pieces[n++] = k;
	}
	return n;
}

/* Reads the code of `n` pieces in a row, which `code` has room for. Returns its bytes; 0: it is not
 * there; -errno. */
static int read_pieces(struct opener *o, const struct made_view *v, uint64_t first, uint32_t n,
		       char *code, uint64_t *vaddr)
{
	uint64_t lo = first * MADE_PIECE_BYTES, hi = lo + (uint64_t)n * MADE_PIECE_BYTES;
	struct opener_query q = {.kind = OPENER_MEMORY, .pid = v->pid, .buf = code};
	struct opener_answer a;
	int err;

	lo = lo < v->lo ? v->lo : lo;
	hi = hi > v->hi ? v->hi : hi;
	q.address = lo;
	q.len = (uint32_t)(hi - lo);
	err = opener_call(o, &q, &a);
	if (err)
		return err == -EFAULT ? 0 : err;
	*vaddr = lo - v->bias;
	return (int)q.len;
}

/* How many of the pieces follow each other, as far as one call reads them. */
static uint32_t in_a_row(const uint64_t *pieces, uint32_t n)
{
	uint32_t i = 1;

	while (i < n && i < OPENER_MAX_BYTES / MADE_PIECE_BYTES && pieces[i] == pieces[0] + i)
		i++;
	return i;
}

/* What was read: ranges of addresses and bytes, and the bytes of all of them. */
struct made_ranges {
	uint64_t at[2 * MADE_MAX_PIECES];
	uint32_t n;
	size_t bytes;
};

/* Reads the pieces into `code`, one behind the other. 0 or -errno. */
static int read_all(struct opener *o, const struct made_view *v, const uint64_t *pieces, uint32_t n,
		    char *code, struct made_ranges *got)
{
	int r = 0;

	for (uint32_t i = 0, row; i < n && r >= 0; i += row) {
		uint64_t vaddr = 0, len, *last = got->n ? &got->at[2 * got->n - 2] : NULL;

		row = in_a_row(pieces + i, n - i);
		r = read_pieces(o, v, pieces[i], row, code + got->bytes, &vaddr);
		if (!r && row > 1) { /* a page is missing: in another piece perhaps */
			row = 1;
			r = read_pieces(o, v, pieces[i], row, code + got->bytes, &vaddr);
		}
		len = r > 0 ? (uint64_t)r : 0;
		got->bytes += len;
		if (last && len && last[0] + last[1] == vaddr) {
			last[1] += len;
		} else if (len) {
			got->at[2 * got->n] = vaddr;
			got->at[2 * got->n++ + 1] = len;
		}
	}
	return r < 0 ? r : 0;
}

static char *put_words(char *to, const uint64_t *words, size_t n)
{
	memcpy(to, words, n * sizeof(*words));
	return to + n * sizeof(*words);
}

/* The code is read into its place behind the largest head, and moved if that is smaller, so that it
 * is in memory once. */
int made_image_read(struct opener *o, struct made_view *v, struct buf *out)
{
	uint64_t pieces[MADE_MAX_PIECES];
	struct made_ranges got = {.n = 0};
	size_t from = out->len, head;
	char *p, *code, *to;
	uint32_t n;
	int r;

	qsort(v->starts, v->n, sizeof(*v->starts), by_number);
	n = choose(v, pieces);
	head = 16 + 16ull * n + 8ull * v->n;
	p = buf_grow(out, head + (size_t)n * MADE_PIECE_BYTES);
	if (!p)
		return out->error;
	code = p + head;
	r = read_all(o, v, pieces, n, code, &got);
	out->len = from;
	if (r || !got.n)
		return r ? r : -EFAULT;
	to = put_words(p, (const uint64_t[]){got.n, v->n}, 2);
	to = put_words(to, got.at, 2ull * got.n);
	for (uint32_t i = 0; i < v->n; i++)
		to = put_words(to, &(uint64_t){v->starts[i] - (v->bias << 1)}, 1);
	memmove(to, code, got.bytes);
	out->len += (size_t)(to - p) + got.bytes;
	return 0;
}

static const char names[] = "\0.shstrtab\0.fusee.made";

enum { SECTIONS = 3 };

struct head {
	Elf64_Ehdr file;
	Elf64_Shdr sections[SECTIONS];
	char names[sizeof(names)];
	char pad[-sizeof(names) & 7];
};

static int write_all(int fd, const void *p, size_t len)
{
	return write(fd, p, len) == (ssize_t)len ? 0 : -EIO;
}

int made_image_file(const struct buf *section)
{
	struct head h = {
		.file = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT},
			 .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_ehsize = sizeof(Elf64_Ehdr),
			 .e_shoff = offsetof(struct head, sections),
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = SECTIONS,
			 .e_shstrndx = 1},
		.sections = {{0},
			     {.sh_name = 1,
			      .sh_type = SHT_STRTAB,
			      .sh_offset = offsetof(struct head, names),
			      .sh_size = sizeof(names)},
			     {.sh_name = 11,
			      .sh_type = SHT_PROGBITS,
			      .sh_offset = sizeof(struct head),
			      .sh_size = section->len}},
	};
	int fd = memfd_create("made", MFD_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	memcpy(h.names, names, sizeof(names));
	err = write_all(fd, &h, sizeof(h));
	if (!err)
		err = write_all(fd, section->p, section->len);
	if (!err)
		return fd;
	close(fd);
	return err;
}
