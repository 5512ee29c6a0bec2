// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/inspection core/worker
/* Blocks from a worker that may have been taken over: whatever is in them, nothing outside is
 * handed out. */
#include "inspection/internal/block.h"

#include "base/utf8.h"
#include "symbols/symbols.h"
#include "test.h"
#include "worker/internal/symbolize_reply.h"

static const unsigned char values[] = {0, 1, 2, 7, 8, 0x20, 0x7f, 0x80, 0xff};

static void *copy_of(const void *p, size_t len)
{
	void *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(map != MAP_FAILED);
	memcpy(map, p, len);
	return map;
}

static void make(struct buf *b)
{
	static const struct fusee_segment segments[] = {{0, 0x1000, 0x500, 0x500, 5, 0},
							{0x1500, 0x3500, 0x200, 0x900, 6, 0}};
	static const uint32_t one[] = {1, 2, 3}, two[] = {4};
	static const struct inspection_claim claims[] = {{0x1000, 0x1100, 7, 1},
							 {0x1100, 0x1180, UINT64_MAX, 5}};
	static const struct inspection_slab slabs[] = {{"dwarf", 7, 0, one, 3, NULL},
						       {"other", 1, 2, two, 1, claims}};
	struct inspection i = {.machine = 62,
			       .type = 3,
			       .flags = INSPECTION_SYMTAB,
			       .entry = 0x1234,
			       .build_id_len = 20,
			       .nsegments = 2,
			       .nslabs = 2,
			       .segments = segments,
			       .slabs = slabs,
			       .debuglink = "abcd.debug",
			       .compiler = "GCC: (Debian) 12",
			       .notes = "dwarf: no\nother: neither",
			       .debuglink_crc = 0xabcdef};

	memset(i.key, 0x5a, sizeof(i.key));
	memset(i.build_id, 0xb1, 20);
	CHECK_INT(inspection_write(b, &i), 0);
}

TEST(there_and_back)
{
	struct inspection *i;
	struct buf b = {0};
	uint8_t key[32];
	uint64_t vaddr, len;

	make(&b);
	memset(key, 0x5a, sizeof(key));
	CHECK_INT(inspection_open(&i, copy_of(b.p, b.len), b.len, key), 0);
	CHECK(i->machine == 62 && i->entry == 0x1234 && i->build_id_len == 20 &&
	      i->build_id[19] == 0xb1);
	CHECK_STR(i->debuglink, "abcd.debug");
	CHECK_STR(i->compiler, "GCC: (Debian) 12");
	CHECK_STR(i->notes, "dwarf: no\nother: neither");
	CHECK(inspection_slab(i, "dwarf")->n == 3 && inspection_slab(i, "dwarf")->words[2] == 3);
	CHECK(inspection_slab(i, "other")->version == 1 && !inspection_slab(i, "othe"));
	CHECK(inspection_slab(i, "other")->nclaims == 2 && !inspection_slab(i, "dwarf")->nclaims);
	CHECK(inspection_slab(i, "other")->claims[1].hi == 0x1180 &&
	      inspection_slab(i, "other")->claims[1].arg == UINT64_MAX &&
	      inspection_slab(i, "other")->claims[1].flags == 5);
	CHECK(inspection_vaddr(i, 0x4ff, &vaddr) && vaddr == 0x14ff);
	/* The rest of its last page is mapped with it; the next segment is not for code. */
	CHECK(inspection_vaddr(i, 0x500, &vaddr) && vaddr == 0x1500);
	CHECK(!inspection_vaddr(i, 0x1500, &vaddr));
	CHECK(!memcmp(inspection_bytes(i, &len), b.p, b.len) && len == b.len);
	inspection_ref(i);
	inspection_unref(i);
	inspection_unref(i);
	key[0] ^= 1;
	CHECK_INT(inspection_open(&i, copy_of(b.p, b.len), b.len, key), -EBADMSG);
	buf_fini(&b);
}

static void all_inside(const struct inspection *i)
{
	const char *lo, *hi;
	uint64_t len;

	lo = inspection_bytes(i, &len);
	hi = lo + len;
	CHECK(i->build_id_len <= sizeof(i->build_id) && i->nslabs <= INSPECTION_MAX_SLABS);
	CHECK((const char *)i->segments >= lo && (const char *)(i->segments + i->nsegments) <= hi);
	for (uint32_t s = 0; s < i->nslabs; s++) {
		CHECK((const char *)i->slabs[s].words >= lo && i->slabs[s].n <= len / 4 &&
		      (const char *)(i->slabs[s].words + i->slabs[s].n) <= hi);
		CHECK((const char *)i->slabs[s].claims >= lo &&
		      (const char *)(i->slabs[s].claims + i->slabs[s].nclaims) <= hi);
		for (uint32_t c = 0; c < i->slabs[s].nclaims; c++)
			CHECK(i->slabs[s].claims[c].lo < i->slabs[s].claims[c].hi);
		CHECK(strnlen(i->slabs[s].unwinder, 32) < 32);
	}
	CHECK(i->debuglink >= lo && memchr(i->debuglink, 0, (size_t)(hi - i->debuglink)));
	CHECK(i->notes >= lo && memchr(i->notes, 0, (size_t)(hi - i->notes)));
	CHECK(i->compiler >= lo && memchr(i->compiler, 0, (size_t)(hi - i->compiler)));
	CHECK(strlen(i->compiler) < 256 && utf8_printable(i->compiler, strlen(i->compiler)));
	CHECK(!strchr(i->debuglink, '/') && utf8_printable(i->debuglink, strlen(i->debuglink)));
}

/* Each byte, to what hurts most: refused, or still inside. */
TEST(bent_blocks)
{
	unsigned int refused = 0, taken = 0;
	struct inspection *i;
	struct buf b = {0};

	make(&b);
	for (size_t at = 0; at < b.len; at++)
		for (size_t v = 0; v < sizeof(values); v++) {
			char was = b.p[at];

			b.p[at] = (char)values[v];
			if (inspection_open(&i, copy_of(b.p, b.len), b.len, NULL)) {
				refused++;
			} else {
				all_inside(i);
				inspection_unref(i);
				taken++;
			}
			b.p[at] = was;
		}
	printf("# %u refused, %u taken\n", refused, taken);
	CHECK(refused > 500 && taken > 500);
	buf_fini(&b);
}

TEST(truncated_blocks)
{
	struct inspection *i;
	struct buf b = {0};

	make(&b);
	for (size_t len = 1; len < b.len; len++)
		CHECK_INT(inspection_open(&i, copy_of(b.p, len), len, NULL), -EBADMSG);
	buf_fini(&b);
}

TEST(names_of_files_lead_nowhere_else)
{
	static const char *const names[] = {"../../etc/shadow", "/etc/shadow", "..", ".", "a\nb",
					    "\033[2J",          "\302\233"};
	struct inspection *i;
	struct buf b = {0};

	for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++) {
		struct inspection from = {.debuglink = names[n], .compiler = "", .notes = ""};

		buf_reset(&b);
		CHECK_INT(inspection_write(&b, &from), 0);
		CHECK_INT(inspection_open(&i, copy_of(b.p, b.len), b.len, NULL), -EBADMSG);
	}
	buf_fini(&b);
}

/* ---- names ---- */

struct names {
	struct symbolize_reply head;
	struct worker_span spans[2];
	uint32_t first[3];
	struct symbolize_reply_frame frames[4];
	char texts[20]; /* to the end of the struct */
};

static const struct names good = {
	.head = {SYMBOLIZE_REPLY_MAGIC, 2, 4, INSPECTION_DWARF, 20, 4, 3, {7, 8, 9}, 2, 0},
	.spans = {{0x1000, 0x1010, 3, 1}, {0x1010, 0x1020, 2, 2}},
	.first = {0, 2, 3},
	.frames = {{0, 2, 4, 10, 0, 1, 0},
		   {4, 4, 0, 1, 1, 1, SYMBOLS_INLINED},
		   {2, 0, 15, 0, 0, 0, 0},
		   {0, 0, 2, 7, 0, 0, 0}},
	.texts = "a\0b\0gr\303\274n",
};

TEST(names_there_and_back)
{
	struct worker_symbols s;
	struct names n = good;

	CHECK_INT(symbolize_reply_open(&s, &good, sizeof(good), 2), 0);
	CHECK(s.n == 2 && s.first[1] == 2 && s.quality == INSPECTION_DWARF);
	CHECK_STR(s.frames[0].name, "a");
	CHECK_STR(s.frames[0].file, "gr\303\274n");
	CHECK_INT(s.frames[1].flags, SYMBOLS_INLINED);
	CHECK_STR(s.frames[2].file, "");
	CHECK(s.nspans == 2 && s.spans[1].lo == 0x1010 && s.spans[0].n == 1);
	CHECK_STR(s.frames[s.spans[0].first].file, "b");
	CHECK_STR(s.alt_name, "gr\303\274n");
	CHECK(s.alt_build_id_len == 3 && !memcmp(s.alt_build_id, "\7\10\11", 3));
	free((void *)s.frames);
	n.head.alt_id_len = 0;
	CHECK_INT(symbolize_reply_open(&s, &n, sizeof(n), 2), 0);
	CHECK(!s.alt_name);
	free((void *)s.frames);
	n.spans[0].hi = 0x1011; /* they overlap */
	CHECK_INT(symbolize_reply_open(&s, &n, sizeof(n), 2), -EBADMSG);
	n.spans[0] = (struct worker_span){0x1000, 0x1000, 3, 1};
	CHECK_INT(symbolize_reply_open(&s, &n, sizeof(n), 2), -EBADMSG);
	n.spans[0] = (struct worker_span){0x1000, 0x1010, 3, 2};
	CHECK_INT(symbolize_reply_open(&s, &n, sizeof(n), 2), -EBADMSG);
	n.spans[0] = good.spans[0];
	n.head.alt_id_len = 65;
	CHECK_INT(symbolize_reply_open(&s, &n, sizeof(n), 2), -EBADMSG);
	n.head.alt_id_len = 64;
	n.head.alt_name = 5; /* in the middle of a text */
	CHECK_INT(symbolize_reply_open(&s, &n, sizeof(n), 2), -EBADMSG);
	CHECK_INT(symbolize_reply_open(&s, &good, sizeof(good), 3), -EBADMSG);
}

/* An answer to a request without addresses has no frames and no texts. */
TEST(names_of_no_address)
{
	struct {
		struct symbolize_reply head;
		uint32_t first[1];
	} none = {.head = {.magic = SYMBOLIZE_REPLY_MAGIC}};
	struct worker_symbols s;

	CHECK_INT(symbolize_reply_open(&s, &none, sizeof(none.head) + 4, 0), 0);
	CHECK(!s.n && !s.nspans && !s.alt_name);
	free((void *)s.frames);
}

static bool is_in(const struct names *n, const char *text)
{
	return text >= n->texts && text < n->texts + sizeof(n->texts) &&
	       utf8_printable(text, strnlen(text, (size_t)(n->texts + sizeof(n->texts) - text)));
}

TEST(bent_names)
{
	unsigned int refused = 0, taken = 0;
	struct worker_symbols s;
	struct names n = good;

	for (size_t at = 0; at < sizeof(n); at++)
		for (size_t v = 0; v < sizeof(values); v++) {
			unsigned char was = ((unsigned char *)&n)[at];

			((unsigned char *)&n)[at] = values[v];
			if (symbolize_reply_open(&s, &n, sizeof(n), 2)) {
				refused++;
			} else {
				CHECK(s.n == 2 && s.first[0] == 0 && s.first[2] <= 4 &&
				      s.first[1] <= s.first[2] && s.nspans == 2);
				for (uint32_t i = 0; i < 2; i++)
					CHECK(s.spans[i].hi > s.spans[i].lo && s.spans[i].n &&
					      s.spans[i].first + s.spans[i].n <= 4);
				for (int i = 0; i < 4; i++)
					CHECK(is_in(&n, s.frames[i].name) &&
					      is_in(&n, s.frames[i].system_name) &&
					      is_in(&n, s.frames[i].file));
				CHECK(!s.alt_name ||
				      (is_in(&n, s.alt_name) && s.alt_build_id_len <= 64));
				free((void *)s.frames);
				taken++;
			}
			((unsigned char *)&n)[at] = was;
		}
	printf("# %u refused, %u taken\n", refused, taken);
	CHECK(refused > 200 && taken > 200);
	for (size_t len = 0; len < sizeof(n); len++)
		CHECK_INT(symbolize_reply_open(&s, &n, len, 2), -EBADMSG);
}
