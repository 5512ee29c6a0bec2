/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/internal/word_texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/dict.h"

#define STEP 16     /* texts for each entry of starts */
#define MORE 0x80   /* of a byte of a number: another follows; see put_number() */
#define DIGITS 0x7f /* its other bits */

/* A text is the numbers of its words, each in up to 5 bytes, and a byte 0. Frequent words have low
 * numbers, from 1 on. No other byte is 0, so that texts can be counted without reading numbers. */
struct word_texts {
	char *bytes;       /* of all words, by number */
	uint32_t *word_at; /* by number - 1: where the word begins; one more: the end of the last */
	uint32_t nwords;
	char *codes; /* all texts */
	size_t len;
	uint32_t *starts; /* where texts 0, STEP, 2 * STEP, .. begin in codes */
	uint32_t n;
};

/* What is known while texts are read. */
struct making {
	struct dict words; /* by id; 0, the empty word, ends a text */
	uint32_t *uses;    /* by id */
	size_t uses_cap;
	uint32_t *ids; /* of the words of all texts */
	uint32_t nids;
	size_t ids_cap;
	uint32_t *order;  /* ids, the most frequent first */
	uint32_t *number; /* by id */
};

static size_t word_length(const char *text)
{
	size_t n = 0;

	while (text[n] && text[n] != '_')
		n++;
	while (text[n] == '_')
		n++;
	return n;
}

static int add_id(struct making *m, uint32_t id)
{
	uint32_t *to = ARRAY_ADD(m->ids, m->nids, m->ids_cap);

	if (!to)
		return -ENOMEM;
	*to = id;
	return 0;
}

static int add_text(struct making *m, const char *text)
{
	while (*text) {
		size_t len = word_length(text);
		uint32_t before = m->words.n, id = dict_add(&m->words, text, len);

		if (id == DICT_NONE || !ARRAY_ROOM(m->uses, id, m->uses_cap) || add_id(m, id))
			return -ENOMEM;
		m->uses[id] = id < before ? m->uses[id] + 1 : 1;
		text += len;
	}
	return add_id(m, 0);
}

static int by_uses(const void *a, const void *b, void *arg)
{
	const struct making *m = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (m->uses[x] != m->uses[y])
		return m->uses[x] > m->uses[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int number_words(struct making *m)
{
	uint32_t n = m->words.n - 1; /* without the empty word */

	m->order = calloc(n + 1, sizeof(*m->order));
	m->number = calloc(n + 1, sizeof(*m->number));
	if (!m->order || !m->number)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		m->order[i] = i + 1;
	if (n)
		qsort_r(m->order, n, sizeof(*m->order), by_uses, m);
	for (uint32_t i = 0; i < n; i++)
		m->number[m->order[i]] = i + 1;
	return 0;
}

/* Copies the words in the order of their numbers. */
static int keep_words(struct word_texts *t, const struct making *m)
{
	uint32_t at = 0;

	t->nwords = m->words.n - 1;
	t->bytes = malloc(m->words.bytes + 1);
	t->word_at = calloc((size_t)t->nwords + 1, sizeof(*t->word_at));
	if (!t->bytes || !t->word_at || m->words.bytes > UINT32_MAX)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->nwords; i++) {
		const struct dict_entry *word = &m->words.entries[m->order[i]];

		t->word_at[i] = at;
		memcpy(t->bytes + at, word->key, word->len);
		at += word->len;
	}
	t->word_at[t->nwords] = at;
	return 0;
}

static uint32_t number_length(uint32_t n)
{
	uint32_t len = 1;

	for (; n > DIGITS; n >>= 7)
		len++;
	return len;
}

/* The lowest bits first. The last byte of a number above 0 is not 0. Returns where it ends. */
static char *put_number(char *to, uint32_t n)
{
	for (; n > DIGITS; n >>= 7)
		*to++ = (char)(n | MORE);
	*to++ = (char)n;
	return to;
}

/* Bytes of all texts as numbers. */
static uint64_t codes_length(const struct word_texts *t, const struct making *m)
{
	uint64_t len = t->n;

	for (uint32_t i = 0; i < t->nwords; i++)
		len += (uint64_t)m->uses[m->order[i]] * number_length(i + 1);
	return len;
}

static int keep_texts(struct word_texts *t, const struct making *m)
{
	uint64_t len = codes_length(t, m);
	uint32_t text = 0;
	char *to;

	t->starts = calloc((size_t)t->n / STEP + 1, sizeof(*t->starts));
	t->codes = len <= UINT32_MAX ? malloc(len + 1) : NULL;
	if (!t->starts || !t->codes)
		return -ENOMEM;
	t->len = len;
	to = t->codes;
	for (uint32_t i = 0; i < m->nids; i++) {
		to = put_number(to, m->number[m->ids[i]]);
		if (!m->ids[i] && ++text % STEP == 0)
			t->starts[text / STEP] = (uint32_t)(to - t->codes);
	}
	return 0;
}

int word_texts_new(struct word_texts **ret, const char *(*text)(void *arg, uint32_t i), void *arg,
		   uint32_t n)
{
	struct word_texts *t = calloc(1, sizeof(*t));
	struct making m = {0};
	int r = t ? dict_init(&m.words) : -ENOMEM;

	for (uint32_t i = 0; i < n && !r; i++)
		r = add_text(&m, text(arg, i));
	if (!r)
		t->n = n;
	if (!r)
		r = number_words(&m);
	if (!r)
		r = keep_words(t, &m);
	if (!r)
		r = keep_texts(t, &m);
	dict_fini(&m.words);
	free(m.uses);
	free(m.ids);
	free(m.order);
	free(m.number);
	if (r)
		word_texts_free(t);
	else
		*ret = t;
	return r;
}

void word_texts_free(struct word_texts *t)
{
	if (!t)
		return;
	free(t->bytes);
	free(t->word_at);
	free(t->codes);
	free(t->starts);
	free(t);
}

static const char *find_text(const struct word_texts *t, uint32_t i)
{
	const char *at = t->codes + t->starts[i / STEP], *end = t->codes + t->len;

	for (uint32_t k = i % STEP; k && at; k--) {
		at = memchr(at, 0, (size_t)(end - at));
		at += !!at;
	}
	return at;
}

static uint32_t take_number(const char **at)
{
	uint32_t n = 0, shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t) * (*at)++;
		n |= (uint32_t)(byte & DIGITS) << shift;
		shift += 7;
	} while (byte & MORE);
	return n;
}

size_t word_texts_get(const struct word_texts *t, uint32_t i, char *to, size_t size)
{
	const char *at = i < t->n ? find_text(t, i) : NULL;
	size_t len = 0;

	for (uint32_t word; at && (word = take_number(&at)) && len + 1 < size;) {
		uint32_t from = t->word_at[word - 1];
		size_t n = t->word_at[word] - from;

		if (n > size - 1 - len)
			n = size - 1 - len;
		memcpy(to + len, t->bytes + from, n);
		len += n;
	}
	to[len] = 0;
	return len;
}
