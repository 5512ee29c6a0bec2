// SPDX-License-Identifier: Apache-2.0
// check: fast, covers plugins/labelers/go include/fusee/labeler.bpf.h
/* The step over made-up memory: slices and maps of labels, and what a target forges. */
#include "test.h"

#include <fusee/labeler.bpf.h>

#include "words.h"

int fusee_step_go(struct fusee_unwind *u);

#define THREAD 0x7f0000001000ull /* the thread pointer */
#define MEMORY 0xc000000000ull
#define TEXT (MEMORY + 0x8000) /* texts are from here on */

enum { AT_G, AT_M = 0x100, AT_CURG = 0x200, AT_SET = 0x400, AT_LIST = 0x500, AT_BUCKETS = 0x600 };

struct world {
	uint64_t g; /* at the thread pointer - 8 */
	_Alignas(8) unsigned char memory[0x1000];
	uint32_t words[GO_WORDS];
	uint32_t n;                /* labels that were given */
	uint64_t key[24], len[24]; /* their names */
	uint64_t value[24];        /* lengths of their values */
};

static int read_world(struct fusee_native *n, void *dst, __u32 len, __u64 addr)
{
	const struct world *w = n->arg;

	if (addr == THREAD - 8 && len == 8)
		memcpy(dst, &w->g, 8);
	else if (addr - MEMORY < sizeof(w->memory) && len <= sizeof(w->memory) - (addr - MEMORY))
		memcpy(dst, w->memory + (addr - MEMORY), len);
	else
		return -1;
	return 0;
}

static int take_label(struct fusee_native *n, __u64 key, __u64 key_len, __u64 value,
		      __u64 value_len)
{
	struct world *w = n->arg;

	if (key < TEXT || value < TEXT || w->n == 24)
		return -1;
	w->key[w->n] = key - TEXT;
	w->len[w->n] = key_len;
	w->value[w->n++] = value_len;
	return 0;
}

static void put(struct world *w, uint64_t at, uint64_t v)
{
	memcpy(w->memory + at, &v, 8);
}

/* A thread whose goroutine has labels at AT_SET. */
static struct world *new_world(uint32_t form)
{
	struct world *w = calloc(1, sizeof(*w));

	w->g = MEMORY + AT_G;
	put(w, AT_G + 48, MEMORY + AT_M);
	put(w, AT_M + 0xb8, MEMORY + AT_CURG);
	put(w, AT_CURG + 0x160, MEMORY + AT_SET);
	memcpy(w->words, (uint32_t[]){(uint32_t)-8, 48, 0xb8, 0x160, form}, sizeof(w->words));
	return w;
}

static int step(struct world *w, __u64 tls)
{
	struct fusee_native n = {.u = {.tls = tls, .words = GO_WORDS},
				 .words = w->words,
				 .read = read_world,
				 .arg = w,
				 .label = take_label};

	w->n = 0;
	return fusee_step_go(&n.u);
}

static void put_string(struct world *w, uint64_t at, uint64_t text, uint64_t len)
{
	put(w, at, TEXT + text);
	put(w, at + 8, len);
}

/* A slice of n labels. */
static struct world *slice(uint64_t n)
{
	struct world *w = new_world(GO_SLICE);

	put(w, AT_SET, MEMORY + AT_LIST);
	put(w, AT_SET + 8, n);
	for (uint64_t i = 0; i < n && i < 16; i++) {
		put_string(w, AT_LIST + i * 32, i, 3 + i);
		put_string(w, AT_LIST + i * 32 + 16, 100 + i, 50 + i);
	}
	return w;
}

TEST(a_slice)
{
	struct world *w = slice(3);

	CHECK_INT(step(w, THREAD), FUSEE_LABEL_GIVEN);
	CHECK_INT(w->n, 3);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(w->key[i] == i && w->len[i] == 3 + i && w->value[i] == 50 + i);
	free(w);
	w = slice(UINT64_MAX);
	CHECK_INT(step(w, THREAD), FUSEE_LABEL_GIVEN);
	CHECK_INT(w->n, 9); /* one more than is kept, so that it is known that there are more */
	free(w);
}

TEST(a_map)
{
	struct world *w = new_world(GO_MAP);

	put(w, AT_SET, MEMORY + AT_LIST);
	put(w, AT_LIST, 3);
	w->memory[AT_LIST + 9] = 1;
	put(w, AT_LIST + 16, MEMORY + AT_BUCKETS);
	/* slots 0 and 7 of the first of two buckets, slot 2 of the other */
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t bucket = AT_BUCKETS + i / 2 * 272, slot = (uint64_t[]){0, 7, 2}[i];

		w->memory[bucket + slot] = (unsigned char)(5 + i);
		put_string(w, bucket + 8 + slot * 16, i, 3 + i);
		put_string(w, bucket + 136 + slot * 16, 100 + i, 50 + i);
	}
	w->memory[AT_BUCKETS + 1] = 4; /* it was moved away */
	CHECK_INT(step(w, THREAD), FUSEE_LABEL_GIVEN);
	CHECK_INT(w->n, 3);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(w->key[i] == i && w->len[i] == 3 + i && w->value[i] == 50 + i);
	put(w, AT_LIST, 4); /* one is in a bucket behind these */
	CHECK_INT(step(w, THREAD), FUSEE_LABEL_MORE);
	CHECK_INT(w->n, 3);
	put(w, AT_LIST, 2);
	w->memory[AT_LIST + 9] = 0; /* one bucket */
	CHECK_INT(step(w, THREAD), FUSEE_LABEL_GIVEN);
	CHECK_INT(w->n, 2);
	put(w, AT_LIST, 0);
	put(w, AT_LIST + 16, 0); /* none yet */
	CHECK_INT(step(w, THREAD), FUSEE_LABEL_NONE);
	put(w, AT_SET, 0);
	CHECK_INT(step(w, THREAD), FUSEE_LABEL_NONE);
	free(w);
}

TEST(no_labels)
{
	static const uint64_t zero[] = {AT_CURG + 0x160, AT_M + 0xb8, AT_G + 48};
	struct world *w = slice(2);

	CHECK_INT(step(w, 0), FUSEE_LABEL_NONE);
	for (size_t i = 0; i < 3; i++) {
		put(w, zero[i], 0);
		CHECK_INT(step(w, THREAD), FUSEE_LABEL_NONE);
	}
	w->g = 0;
	CHECK_INT(step(w, THREAD), FUSEE_LABEL_NONE);
	CHECK_INT(w->n, 0);
	free(w);
}

TEST(unreadable)
{
	static const uint64_t wrong[] = {AT_LIST + 16,    AT_LIST,     AT_SET,
					 AT_CURG + 0x160, AT_M + 0xb8, AT_G + 48};
	struct world *w = slice(2);

	CHECK_INT(step(w, THREAD + 64), FUSEE_LABEL_UNREADABLE);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		put(w, wrong[i], 0x123);
		CHECK_INT(step(w, THREAD), FUSEE_LABEL_UNREADABLE);
	}
	free(w);
	w = new_world(GO_MAP);
	put(w, AT_SET, 0x123);
	CHECK_INT(step(w, THREAD), FUSEE_LABEL_UNREADABLE);
	put(w, AT_SET, MEMORY + AT_LIST);
	put(w, AT_LIST + 16, 0x123);
	CHECK_INT(step(w, THREAD), FUSEE_LABEL_UNREADABLE);
	free(w);
}
