/* SPDX-License-Identifier: Apache-2.0 */
#include "stack.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define LANGUAGES 8 /* of one stack */
#define TOO_LONG "[too long]"
#define NO_FRAMES "[unknown]" /* as fusee report has it */

struct fusee_str profile_text(const struct fusee_profile *p, uint32_t i)
{
	return *FUSEE_AT(struct fusee_str, p->strings, i);
}

static const struct fusee_location *location(const struct fusee_profile *p,
					     const struct fusee_stack *s, uint32_t k)
{
	return FUSEE_AT(struct fusee_location, p->locations,
			*FUSEE_AT(uint32_t, p->stack_locations, s->first + k));
}

/* ---- which frames are shown ---- */

/* Frame types of the languages that a stack has frames of. */
struct languages {
	uint32_t types[LANGUAGES], n;
	bool others; /* there are more, or frames of a language without a name */
};

static bool has(const struct languages *l, uint32_t type)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->types[i] == type)
			return true;
	return false;
}

static void find_languages(struct languages *found, const struct fusee_profile *p,
			   const struct fusee_stack *s)
{
	*found = (struct languages){0};
	for (uint32_t k = 0; k < s->n; k++) {
		const struct fusee_location *l = location(p, s, k);

		if (l->mapping || !l->nlines || l->flags & FUSEE_LOCATION_REASON ||
		    has(found, l->frame_type))
			continue;
		if (l->frame_type && found->n < LANGUAGES)
			found->types[found->n++] = l->frame_type;
		else
			found->others = true;
	}
}

static bool is_omitted(const struct languages *found, const struct fusee_location *l)
{
	if (!(l->flags & FUSEE_LOCATION_INTERPRETER))
		return false;
	return found->others || (l->language ? has(found, l->language) : found->n > 0);
}

/* ---- the text of a stack, from its leaf: each name is written backwards, then all of it turned
 * ---- */

static void put_backwards(struct fusee_bytes *t, struct fusee_str name)
{
	if (t->len)
		fusee_bytes_add(t, ";", 1);
	for (uint64_t i = name.len; i-- > 0;) {
		char c = name.p[i];

		/* ';' separates frames, and lines of other tools end with a newline */
		fusee_bytes_add(t, c == ';' ? ":" : (unsigned char)c < ' ' ? " " : &c, 1);
	}
}

static struct fusee_str module_of(const struct fusee_profile *p, const struct fusee_location *l)
{
	struct fusee_str path = profile_text(
		p, FUSEE_AT(struct fusee_mapping, p->mappings, l->mapping)->path);
	uint64_t at = path.len;

	while (at && path.p[at - 1] != '/')
		at--;
	return (struct fusee_str){path.p + at, path.len - at};
}

static void put_nameless(struct fusee_bytes *t, const struct fusee_profile *p,
			 const struct fusee_location *l)
{
	struct fusee_str module = module_of(p, l);
	char name[300];
	int n = snprintf(name, sizeof(name), module.len ? "[%.*s]" : "<unknown>",
			 module.len < 256 ? (int)module.len : 0, module.p);

	put_backwards(t, (struct fusee_str){name, (uint64_t)n});
}

/* all: with functions that their language hides. */
static void put_location(struct fusee_bytes *t, const struct fusee_profile *p,
			 const struct fusee_location *l, bool all)
{
	if (l == FUSEE_AT(struct fusee_location, p->locations, 0)) {
		put_backwards(t, fusee_text(NO_FRAMES));
		return;
	}
	for (uint32_t i = 0; i < l->nlines; i++) {
		const struct fusee_line *line = FUSEE_AT(struct fusee_line, p->lines,
							 l->first_line + i);
		const struct fusee_function *f = FUSEE_AT(struct fusee_function, p->functions,
							  line->function);
		struct fusee_str name = profile_text(p, f->name);

		if (all || !(f->flags & FUSEE_FRAME_HIDDEN))
			put_backwards(t, name.len ? name : fusee_text("<unknown>"));
	}
	if (!l->nlines)
		put_nameless(t, p, l);
}

static void turn(struct fusee_bytes *t)
{
	for (uint64_t i = 0, k = t->len; i + 1 < k; i++) {
		char c = t->p[i];

		t->p[i] = t->p[--k];
		t->p[k] = c;
	}
}

/* all: with what reports omit. */
static bool put_stack(struct fusee_bytes *t, const struct fusee_profile *p,
		      const struct fusee_stack *s, uint64_t most, bool all)
{
	struct languages found = {0};
	bool complete = true;

	if (!all)
		find_languages(&found, p, s);
	for (uint32_t k = 0; complete && !t->error && k < s->n; k++) {
		const struct fusee_location *l = location(p, s, k);
		uint64_t before = t->len;

		if (!is_omitted(&found, l))
			put_location(t, p, l, all);
		complete = t->len + sizeof(TOO_LONG) <= most || (k + 1 == s->n && t->len <= most);
		if (!complete) {
			t->len = before;
			put_backwards(t, fusee_text(TOO_LONG));
		}
	}
	return complete;
}

bool stack_fold(struct fusee_bytes *t, const struct fusee_profile *p, const struct fusee_stack *s,
		uint64_t most)
{
	bool complete;

	t->len = 0;
	complete = put_stack(t, p, s, most, false);
	if (!t->len) /* reports omit all of it */
		complete = put_stack(t, p, s, most, true);
	if (!t->len)
		put_backwards(t, fusee_text(NO_FRAMES));
	if (!t->error)
		turn(t);
	return complete;
}

/* ---- numbers ---- */

static uint64_t mix(uint64_t h, struct fusee_str s)
{
	return XXH3_64bits_withSeed(s.len ? s.p : "", s.len, h);
}

static uint64_t mix_numbers(uint64_t h, uint64_t a, uint64_t b)
{
	uint64_t v[2] = {a, b};

	return XXH3_64bits_withSeed(v, sizeof(v), h);
}

static uint64_t hash_location(const struct fusee_profile *p, const struct fusee_location *l)
{
	const struct fusee_mapping *m = FUSEE_AT(struct fusee_mapping, p->mappings, l->mapping);
	uint64_t h = mix_numbers(0, l->address, l->flags);

	h = mix(mix(h, profile_text(p, m->path)), profile_text(p, m->build_id));
	for (uint32_t i = 0; i < l->nlines; i++) {
		const struct fusee_line *line = FUSEE_AT(struct fusee_line, p->lines,
							 l->first_line + i);
		const struct fusee_function *f = FUSEE_AT(struct fusee_function, p->functions,
							  line->function);

		h = mix_numbers(h, (uint64_t)line->line << 32 | line->column, line->flags);
		h = mix(mix(h, profile_text(p, f->name)), profile_text(p, f->file));
	}
	return h;
}

void stack_hash_locations(const struct fusee_profile *p, uint64_t *hashes)
{
	for (uint32_t i = 0; i < p->locations.n; i++)
		hashes[i] = hash_location(p, FUSEE_AT(struct fusee_location, p->locations, i));
}

int64_t stack_id(const struct fusee_profile *p, const struct fusee_stack *s, const uint64_t *hashes,
		 uint64_t *ids)
{
	for (uint32_t k = 0; k < s->n; k++)
		ids[k] = hashes[*FUSEE_AT(uint32_t, p->stack_locations, s->first + k)];
	return s->n ? (int64_t)XXH3_64bits(ids, s->n * sizeof(*ids)) : 0;
}
