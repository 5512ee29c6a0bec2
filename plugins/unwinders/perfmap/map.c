/* SPDX-License-Identifier: Apache-2.0 */
#include "map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/helpers.h>

struct map {
	struct fusee_codemap *codes;
	uint64_t faults[MAP_FAULTS];
	uint32_t line_len;
	bool overlong; /* the rest of the current line is ignored */
	char line[MAP_LINE];
};

struct map *map_new(uint64_t max_bytes)
{
	struct map *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->codes = fusee_codemap_new(0);
	if (!m->codes) {
		free(m);
		return NULL;
	}
	map_limit(m, max_bytes);
	return m;
}

void map_limit(struct map *m, uint64_t max_bytes)
{
	fusee_codemap_limit(m->codes, max_bytes > sizeof(*m) ? max_bytes - sizeof(*m) : 0);
}

void map_free(struct map *m)
{
	if (m)
		fusee_codemap_free(m->codes);
	free(m);
}

const uint64_t *map_faults(const struct map *m)
{
	return m->faults;
}

uint64_t map_bytes(const struct map *m)
{
	return sizeof(*m) + fusee_codemap_bytes(m->codes);
}

uint32_t map_entries(const struct map *m)
{
	return fusee_codemap_entries(m->codes);
}

uint32_t map_pending(const struct map *m)
{
	return fusee_codemap_pending(m->codes);
}

bool map_replaces(struct map *m)
{
	return fusee_codemap_replaces(m->codes);
}

void map_commit(struct map *m, uint32_t generation)
{
	m->faults[MAP_FULL] += fusee_codemap_commit(m->codes, generation);
}

/* ---- lines ---- */

/* A hexadecimal number of up to 64 bits, with or without 0x, and the spaces behind it. */
static bool take_number(const char **p, const char *end, uint64_t *value)
{
	const char *at = *p;
	int digits = 0;

	*value = 0;
	if (end - at > 2 && at[0] == '0' && (at[1] | 32) == 'x')
		at += 2;
	for (; at < end && fusee_hex_digit(*at) >= 0; at++) {
		if (*value >> 60)
			return false;
		*value = *value << 4 | (uint64_t)fusee_hex_digit(*at);
		digits++;
	}
	if (!digits || at == end || (*at != ' ' && *at != '\t'))
		return false;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	*p = at;
	return true;
}

static enum map_fault take_line(struct map *m, const char *p, const char *end)
{
	uint64_t lo, size;
	int r;

	while (end > p && (end[-1] == '\r' || end[-1] == ' '))
		end--;
	if (!take_number(&p, end, &lo) || !take_number(&p, end, &size) || p == end)
		return MAP_NO_NUMBERS;
	r = fusee_codemap_add(m->codes, lo, size, (struct fusee_str){p, (uint64_t)(end - p)});
	return r == -EINVAL ? MAP_BAD_RANGE : r ? MAP_FULL : MAP_FAULTS;
}

static void end_line(struct map *m, const char *p, size_t len)
{
	enum map_fault fault = len ? take_line(m, p, p + len) : MAP_FAULTS;

	if (fault != MAP_FAULTS)
		m->faults[fault]++;
	else
		m->faults[MAP_TRUNCATED] += m->overlong;
	m->overlong = false;
	m->line_len = 0;
}

void map_feed(struct map *m, const char *p, size_t len)
{
	const char *end = p + len, *newline;

	for (; p < end; p = newline + 1) {
		size_t here, room = MAP_LINE - m->line_len;

		newline = memchr(p, '\n', (size_t)(end - p));
		here = (size_t)((newline ? newline : end) - p);
		if (newline && !m->line_len && here <= MAP_LINE) {
			end_line(m, p, here);
			continue;
		}
		if (here > room) {
			m->overlong = true;
			here = room;
		}
		memcpy(m->line + m->line_len, p, here);
		m->line_len += (uint32_t)here;
		if (!newline)
			return;
		end_line(m, m->line, m->line_len);
	}
}

/* ---- looking up ---- */

bool map_lookup(const struct map *m, uint64_t addr, uint32_t generation, struct fusee_str *name)
{
	return fusee_codemap_lookup(m->codes, addr, generation, name);
}

/* Sets *arg, and ends at the first name that says so. */
static bool judge_kind(void *arg, struct fusee_str name)
{
	enum fusee_code_kind *kind = arg;

	*kind = fusee_codemap_kind(name);
	return *kind == FUSEE_CODE_PLAIN;
}

bool map_covers(const struct map *m, uint64_t lo, uint64_t hi, enum fusee_code_kind *kind)
{
	*kind = FUSEE_CODE_PLAIN;
	return fusee_codemap_covers(m->codes, lo, hi, 16, judge_kind, kind);
}
