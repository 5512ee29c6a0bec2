/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <fusee/json.h>

static uint8_t lookup(const struct fusee_json_place *p, uint8_t from, const char *key, size_t n)
{
	for (uint32_t i = 0; i < p->nedges; i++) {
		const struct fusee_json_edge *e = &p->edges[i];

		if (e->from != from || !key != !e->key)
			continue;
		if (!key || !*e->key || (strlen(e->key) == n && !memcmp(e->key, key, n)))
			return e->to;
	}
	return FUSEE_JSON_IGNORED;
}

uint8_t fusee_json_state(const struct fusee_json_place *p)
{
	if (!p->depth)
		return FUSEE_JSON_TOP;
	return p->arrays[p->depth - 1] ? lookup(p, p->states[p->depth - 1], NULL, 0) : p->next;
}

bool fusee_json_enter(struct fusee_json_place *p, bool array)
{
	uint8_t state = fusee_json_state(p);

	if (p->depth == FUSEE_JSON_DEPTH)
		return false;
	p->arrays[p->depth] = array;
	p->states[p->depth++] = state;
	return true;
}

uint8_t fusee_json_leave(struct fusee_json_place *p)
{
	return p->states[--p->depth];
}

void fusee_json_key(struct fusee_json_place *p, const char *key, size_t n)
{
	p->next = lookup(p, p->states[p->depth - 1], key, n);
}
