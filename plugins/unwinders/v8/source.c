/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

#include <stdlib.h>

#include <fusee/bytes.h>

#define MOST_HOPS 4
#define MOST_TEXT (32u << 20) /* bytes of a script's text */
#define MOST_TRIES 8u
#define MOST_NS 50000000u  /* how long a call reads */
#define PAUSE_NS 50000000u /* between two calls that read */
#define MOST_LINES (1u << 20)
#define BLOCK 65536u
#define TAG 1u
#define TAG_MASK 3u
#define UNCACHED 16u

struct reader {
	const struct fusee_unwinder_host *host;
	uint64_t process;
	const uint32_t *words;
	struct v8_source *s;
	int err;
};

/* Reads memory of the process, unless an earlier read failed. 0, or the first error, which r->err
 * keeps. */
static int get(struct reader *r, uint64_t at, void *to, uint32_t len)
{
	if (!r->err)
		r->err = r->host->process_read(r->process, at, to, len);
	return r->err;
}

bool v8_may_pass(int err)
{
	return err == -EAGAIN || err == -ETIMEDOUT || err == -ENOBUFS || err == -EMFILE ||
	       err == -ENFILE || err == -EINTR;
}

/* Follows a string to its characters, and sets at, wide and length. false: it is no string, its
 * characters are not in one piece, or it cannot be read. */
static bool resolve(struct reader *r, uint64_t text)
{
	const uint32_t *w = r->words;
	uint64_t map, offset = 0;
	uint16_t type;

	for (int hop = 0; hop < MOST_HOPS; hop++) {
		uint64_t fields[4]; /* map, hash and length, two that depend on the shape */
		uint64_t *second = &fields[w[V8_CONS_SECOND] >> 3 & 3];
		uint32_t length, shape;

		if ((text & TAG_MASK) != TAG || get(r, text - TAG, fields, sizeof(fields)))
			return false;
		map = fields[0];
		if (!(map & TAG_MASK)) { /* the garbage collector has moved the string there */
			text = map + TAG;
			continue;
		}
		if (get(r, map - TAG + w[V8_MAP_TYPE], &type, sizeof(type)) ||
		    type >= w[V8_FIRST_NONSTRING])
			return false;
		length = (uint32_t)(fields[1] >> 8 * (w[V8_STRING_LENGTH] & 4));
		shape = type & w[V8_SHAPE_MASK];
		r->s->wide = !(type & w[V8_ONE_BYTE]);
		if (!r->s->length)
			r->s->length = length;
		if (!shape || (shape == w[V8_EXTERNAL] && !(type & UNCACHED))) {
			r->s->at = offset + (shape ? fields[3] : text - TAG + w[V8_STRING_CHARS]);
			return true;
		}
		if (shape == w[V8_SLICED])
			offset = (fields[w[V8_SLICED_OFFSET] >> 3 & 3] >> 32) << r->s->wide;
		else if (shape == w[V8_CONS] ? get(r, *second - TAG + w[V8_STRING_LENGTH], &length,
						   sizeof(length)) ||
						       length
					     : shape != w[V8_THIN])
			return false;
		text = fields[2]; /* the parent of a slice, the first part, or the actual string */
	}
	return false;
}

/* Reads which string the script's text is now. false: it cannot be read. */
static bool text_now(struct reader *r, uint64_t *text)
{
	return !get(r, r->s->script - TAG + r->words[V8_SCRIPT_SOURCE], text, sizeof(*text));
}

/* Finds the characters of the script's text. false: the text is not there, or it has not as many
 * characters as when the step saw it. */
static bool find_text(struct reader *r)
{
	struct v8_source *s = r->s;
	uint64_t text;

	s->length = s->expected;
	if (!s->tries &&
	    s->at) /* where the step found them; is_there() notices if they have moved */
		return (uint64_t)s->length << s->wide <= MOST_TEXT;
	s->length = 0;
	if (!text_now(r, &text) || !resolve(r, text))
		return false;
	/* the step could not read the text: it is that which the script had, if it did not move */
	if (!s->expected && text == s->text)
		s->expected = s->length;
	if (s->length != s->expected)
		return false;
	s->text = text;
	return (uint64_t)s->length << s->wide <= MOST_TEXT;
}

/* ---- lines ---- */

static bool begin_line(struct v8_source *s, uint32_t position)
{
	if (s->nlines == MOST_LINES)
		return false;
	if (!fusee_grow(&s->lines, &s->cap, s->nlines + 1ull, sizeof(*s->lines)))
		return false;
	s->lines[s->nlines++] = position;
	return true;
}

/* ---- loops ---- */

/* What may be a part of a name: any character above 127 is taken for one. */
static bool in_name(uint32_t c)
{
	return (c | 32) - 'a' < 26 || c - '0' < 10 || c == '_' || c == '$' || c == '#' ||
	       c == '\\' || c > 127;
}

/* The length of the word that begins a loop and ends the characters before; 0: there is none. The
 * name of a property, as in Symbol.for(), is none. */
static uint32_t loop_word(uint64_t last)
{
	static const char *const words[] = {"for", "while", "do"};

	if ((last & 255) != 'r' && (last & 255) != 'e' && (last & 255) != 'o')
		return 0;
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t word = 0;
		uint32_t n = 0, before;

		for (; words[i][n]; n++)
			word = word << 8 | (unsigned char)words[i][n];
		before = (uint32_t)(last >> 8 * n & 255);
		if ((last & ((1ull << 8 * n) - 1)) == word && before != '.' && !in_name(before))
			return n;
	}
	return 0;
}

/* Notes whether a loop's word has ended before this character. */
static bool take_word(struct v8_source *s, uint32_t c)
{
	uint32_t n = in_name(c) ? 0 : loop_word(s->last);

	s->last = s->last << 8 | (c < 128 ? c : 255);
	if (!n)
		return true;
	if (s->nloops == MOST_LINES ||
	    !fusee_grow(&s->loops, &s->loops_cap, s->nloops + 1, sizeof(*s->loops)))
		return false;
	s->loops[s->nloops++] = s->done - n;
	return true;
}

/* Notes whether a line begins at or behind the next character. */
static bool take(struct v8_source *s, uint32_t c)
{
	bool ok = take_word(s, c);

	if (s->after_return && c != '\n')
		ok = ok && begin_line(s, s->done);
	s->after_return = c == '\r';
	s->done++;
	if (c == '\n' || c == 0x2028 || c == 0x2029)
		ok = ok && begin_line(s, s->done);
	return ok;
}

static bool take_block(struct v8_source *s, const unsigned char *p, uint32_t n)
{
	bool ok = true;

	for (uint32_t i = 0; i < n && ok; i += 1u + s->wide)
		ok = take(s, s->wide ? p[i] | (uint32_t)p[i + 1] << 8 : p[i]);
	return ok;
}

static void restart(struct v8_source *s)
{
	s->length = s->done = 0;
	s->nlines = s->nloops = s->last = 0;
	s->after_return = false;
	s->state = ++s->tries < MOST_TRIES ? V8_SOURCE_NEW : V8_SOURCE_FAILED;
}

/* Is the text still where it was read? The garbage collector may have moved it meanwhile. */
static bool is_there(struct reader *r)
{
	uint64_t text = 0;

	return text_now(r, &text) && text == r->s->text;
}

static void read_on(struct reader *r, uint64_t until)
{
	struct v8_source *s = r->s;
	unsigned char *block = malloc(BLOCK);
	bool ok = block != NULL;

	while (ok && s->done < s->length && fusee_now(CLOCK_MONOTONIC) < until) {
		uint64_t rest = (uint64_t)(s->length - s->done) << s->wide;
		uint32_t n = rest < BLOCK ? (uint32_t)rest : BLOCK;

		ok = !get(r, s->at + ((uint64_t)s->done << s->wide), block, n) &&
		     take_block(s, block, n);
	}
	free(block);
	if (ok && s->done < s->length)
		return;
	if (ok)
		s->state = is_there(r) ? V8_SOURCE_READ : s->state;
	if (s->state != V8_SOURCE_READ && !v8_may_pass(r->err))
		restart(s);
}

static void try_once(struct reader *r, uint64_t until)
{
	struct v8_source *s = r->s;

	if (s->state == V8_SOURCE_NEW) {
		if (find_text(r) && begin_line(s, 0))
			s->state = V8_SOURCE_READING;
		else if (!v8_may_pass(r->err))
			restart(s);
	}
	if (s->state == V8_SOURCE_READING)
		read_on(r, until);
}

bool v8_source_read(const struct fusee_unwinder_host *host, uint64_t process, const uint32_t *words,
		    struct v8_source *s)
{
	struct reader r = {host, process, words, s, 0};
	uint64_t now = fusee_now(CLOCK_MONOTONIC);

	if (s->state < V8_SOURCE_READ && now < s->next_ns)
		return false;
	try_once(&r, now + MOST_NS);
	/* The text was moved since the step saw it. Its worker may have ended before the next call.
	 */
	if (s->state == V8_SOURCE_NEW && s->tries == 1 && !r.err)
		try_once(&r, now + MOST_NS);
	s->next_ns = now + PAUSE_NS;
	return s->state >= V8_SOURCE_READ;
}

/* How many of these are not behind the position. */
static uint64_t up_to(const uint32_t *sorted, uint64_t n, uint32_t position)
{
	uint64_t lo = 0, hi = n;

	while (lo < hi) {
		uint64_t middle = lo + (hi - lo) / 2;

		if (sorted[middle] <= position)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

uint32_t v8_source_line(const struct v8_source *s, uint32_t position)
{
	uint64_t line;

	if (s->state != V8_SOURCE_READ || position > s->length)
		return 0;
	line = up_to(s->lines, s->nlines, position);
	return line ? s->line_offset + (uint32_t)line : 0;
}

bool v8_source_is_loop(const struct v8_source *s, uint32_t position)
{
	uint64_t n = up_to(s->loops, s->nloops, position);

	return n && s->loops[n - 1] == position;
}
