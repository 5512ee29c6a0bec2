/* SPDX-License-Identifier: Apache-2.0 */
#include "process/seen_frames.h"

#include <stdlib.h>

#define CONFIRMED 3u /* samples of a place */
#define SETTLED 64u
#define WAYS 4u
#define PLACES 4096u
#define MAPPINGS 64u
#define CALLERS 16u
#define TRUSTED 4u /* samples of a mapping that have a word */
#define SHARE 256u /* .. and of how many one must have it */

struct place {
	uint64_t process, pc;
	uint64_t time; /* of the newest sample; 0: unused */
	uint32_t samples;
	uint32_t n;
	uint16_t offsets[SEEN_OFFSETS]; /* that all samples have */
};

/* What was found at those of its places that are confirmed. */
struct mapping {
	uint64_t process, lo;
	uint64_t samples;
	uint32_t n, ncallers;
	uint16_t offsets[SEEN_OFFSETS];
	struct {
		uint64_t word, samples;
	} callers[CALLERS];
};

struct seen_frames {
	struct place places[PLACES];
	struct mapping mappings[MAPPINGS];
};

struct seen_frames *seen_frames_new(void)
{
	return calloc(1, sizeof(struct seen_frames));
}

void seen_frames_free(struct seen_frames *s)
{
	free(s);
}

static uint64_t hash(uint64_t process, uint64_t address)
{
	return (address ^ process << 40) * 0x9e3779b97f4a7c15u >> 32;
}

static struct place *place_of(struct seen_frames *s, uint64_t process, uint64_t pc)
{
	struct place *set = &s->places[hash(process, pc) % (PLACES / WAYS) * WAYS], *p = set;

	for (uint32_t i = 0; i < WAYS; i++) {
		if (set[i].process == process && set[i].pc == pc && set[i].time)
			return &set[i];
		if (set[i].time < p->time)
			p = &set[i];
	}
	*p = (struct place){.process = process, .pc = pc};
	return p;
}

static struct mapping *mapping_of(struct seen_frames *s, uint64_t process, uint64_t lo)
{
	struct mapping *m = &s->mappings[hash(process, lo) % MAPPINGS];

	if (m->process != process || m->lo != lo)
		*m = (struct mapping){.process = process, .lo = lo};
	return m;
}

static bool has(const uint16_t *offsets, uint32_t n, uint16_t offset)
{
	for (uint32_t i = 0; i < n; i++)
		if (offsets[i] == offset)
			return true;
	return false;
}

bool seen_frames_settled(struct seen_frames *s, uint64_t process, uint64_t pc, uint16_t *offset)
{
	const struct place *p = place_of(s, process, pc);

	*offset = p->offsets[0];
	return p->samples >= SETTLED;
}

uint16_t seen_frames_add(struct seen_frames *s, const struct seen_sample *sample)
{
	struct place *p = place_of(s, sample->process, sample->pc);
	uint32_t n = 0;

	if (sample->time <= p->time)
		return p->offsets[0];
	for (uint32_t i = 0; i < p->n; i++)
		if (has(sample->offsets, sample->n, p->offsets[i]))
			p->offsets[n++] = p->offsets[i];
	p->n = n;
	if (!n) { /* it is new, or has other code now */
		p->samples = 0;
		p->n = sample->n;
		for (uint32_t i = 0; i < sample->n; i++)
			p->offsets[i] = sample->offsets[i];
	}
	p->time = sample->time;
	p->samples++;
	return p->offsets[0];
}

/* One more sample has this word, which may replace that of the fewest samples. */
static void count(struct mapping *m, uint64_t word)
{
	uint32_t i = 0, least = 0;

	while (i < m->ncallers && m->callers[i].word != word) {
		if (m->callers[i].samples < m->callers[least].samples)
			least = i;
		i++;
	}
	if (i == m->ncallers) {
		i = i < CALLERS ? m->ncallers++ : least;
		m->callers[i].word = word;
		m->callers[i].samples = 0;
	}
	m->callers[i].samples++;
}

bool seen_frames_confirm(struct seen_frames *s, const struct seen_sample *sample, uint16_t offset,
			 uint64_t word)
{
	const struct place *p = place_of(s, sample->process, sample->pc);
	struct mapping *m = mapping_of(s, sample->process, sample->map_lo);

	if (p->samples < CONFIRMED)
		return has(m->offsets, m->n, offset);
	m->samples++;
	if (!has(m->offsets, m->n, offset)) {
		if (m->n == SEEN_OFFSETS)
			m->n = 0;
		m->offsets[m->n++] = offset;
	}
	count(m, word);
	return true;
}

bool seen_frames_trusted(struct seen_frames *s, uint64_t process, uint64_t map_lo, uint64_t word)
{
	const struct mapping *m = mapping_of(s, process, map_lo);

	for (uint32_t i = 0; i < m->ncallers; i++)
		if (m->callers[i].word == word)
			return m->callers[i].samples >= TRUSTED &&
			       m->callers[i].samples * SHARE >= m->samples;
	return false;
}

void seen_frames_forget(struct seen_frames *s, uint64_t process, uint64_t pc)
{
	place_of(s, process, pc)->samples = 0;
}
