/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree from its roots, as lines: at the beginning of a line are the shares of the total
 * and of the function itself; in a comparison the share, its change and the change's significance.
 * The only call of a caller is not indented, so that deep stacks stay readable.
 */
#include "report/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "base/str.h"
#include "report/change.h"

#define FOLD_PERCENT 1
#define NAME_MIN 24
#define SHARES_WIDTH 19
#define CHANGE_WIDTH 28
#define NONE UINT32_MAX

#define DIM "\033[2m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

struct call {
	uint32_t function;
	uint32_t child, next; /* heaviest first once sorted */
	int64_t total, self, base;
	double noise, base_noise; /* of total and base */
};

struct tree {
	const struct render_model *m;
	const struct render_options *o;
	struct dict pairs; /* (caller, function): id is the call's index, 0 the root */
	struct buf calls, prefix;
	struct call **sorted;
};

static struct call *call(const struct tree *t, uint32_t i)
{
	return (struct call *)(void *)t->calls.p + i;
}

static int add_call(struct tree *t, uint32_t caller, uint32_t function, uint32_t *ret)
{
	const uint32_t key[2] = {caller, function};
	struct call *c;

	*ret = dict_add(&t->pairs, key, sizeof(key));
	if (*ret == DICT_NONE)
		return -ENOMEM;
	if (*ret < t->calls.len / sizeof(*c))
		return 0;
	c = buf_grow(&t->calls, sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = (struct call){.function = function, .child = NONE, .next = call(t, caller)->child};
	call(t, caller)->child = *ret;
	return 0;
}

static void add_stack(struct call *c, const struct render_stack *s)
{
	saturate_add(&c->total, s->value);
	saturate_add(&c->base, s->base);
	*(s->base ? &c->base_noise : &c->noise) += s->noise;
}

static int grow(struct tree *t)
{
	struct call root = {.function = NONE, .child = NONE, .next = NONE};

	if (dict_init(&t->pairs) || buf_add(&t->calls, &root, sizeof(root)))
		return -ENOMEM;
	for (uint32_t i = 0; i < t->m->nstacks; i++) {
		const struct render_stack *s = &t->m->stacks[i];
		uint32_t at = 0;

		add_stack(call(t, 0), s);
		for (uint32_t k = s->n; k-- > 0;) {
			if (add_call(t, at, render_frame_at(t->m, s, k)->function, &at))
				return -ENOMEM;
			add_stack(call(t, at), s);
		}
		saturate_add(&call(t, at)->self, s->value);
	}
	return 0;
}

/* ---- order ---- */

static double share(int64_t value, int64_t all)
{
	return all ? (double)value / (double)all : 0;
}

/* In a comparison the larger of both shares, so that calls that vanished are sorted by what they
 * had. */
static double size(const struct tree *t, const struct call *c)
{
	double now = share(c->total, t->m->total), before = share(c->base, t->m->base_total);

	return now > before ? now : before;
}

static int compare(const void *a, const void *b, void *tree)
{
	const struct call *x = *(struct call *const *)a, *y = *(struct call *const *)b;
	const struct render_model *m = ((struct tree *)tree)->m;

	if (size(tree, x) != size(tree, y))
		return size(tree, x) > size(tree, y) ? -1 : 1;
	return str_order(m->functions[x->function].shown, m->functions[y->function].shown);
}

/* Sorts the calls below a call by weight: the list through `next`. */
static void sort(struct tree *t, uint32_t parent)
{
	uint32_t n = 0, base = 0, *link = &call(t, parent)->child;

	for (uint32_t i = *link; i != NONE; i = call(t, i)->next)
		t->sorted[n++] = call(t, i);
	qsort_r(t->sorted, n, sizeof(*t->sorted), compare, t);
	for (; base < n; base++) {
		*link = (uint32_t)(t->sorted[base] - call(t, 0));
		link = &t->sorted[base]->next;
	}
	*link = NONE;
}

/* ---- lines ---- */

static bool is_small(const struct tree *t, const struct call *c)
{
	return size(t, c) * 100 < size(t, call(t, 0)) * FOLD_PERCENT;
}

static void parts_of(const struct tree *t, const struct call *c, struct render_part to[2])
{
	const struct render_model *m = t->m;

	to[0] = (struct render_part){c->total, m->total, c->noise, m->noise};
	to[1] = (struct render_part){c->base, m->base_total, c->base_noise, m->base_noise};
}

static double z_of(const struct tree *t, const struct call *c)
{
	struct render_part parts[2];

	parts_of(t, c, parts);
	return t->m->base ? render_z(&parts[0], &parts[1]) : 0;
}

static bool is_noise(const struct tree *t, const struct call *c)
{
	struct render_part parts[2];

	parts_of(t, c, parts);
	return t->m->base && render_is_chance(t->m, &parts[0], &parts[1]);
}

/* "~" marks what is within its noise. */
static void put_shares(const struct tree *t, const struct call *c, struct buf *out)
{
	double now = share(c->total, t->m->total) * 100;

	buf_printf(out, "%6.1f %% ", now);
	if (t->m->base) {
		buf_printf(out, "%+7.2f %% ", now - share(c->base, t->m->base_total) * 100);
		buf_printf(out, "%s%+6.1f ", is_noise(t, c) ? "~" : " ", z_of(t, c));
	} else if (c->self) {
		buf_printf(out, "%6.1f %%", share(c->self, t->m->total) * 100);
	} else {
		buf_str(out, "        ");
	}
}

static void put_prefix(const struct tree *t, const char *last, struct buf *out)
{
	if (!t->prefix.len && !*last)
		return;
	buf_str(out, t->o->color ? DIM : "");
	buf_add(out, t->prefix.p, t->prefix.len);
	buf_str(out, last);
	buf_str(out, t->o->color ? PLAIN : "");
}

/* The library, printed once, where the stack enters it; or file and line of a language's function.
 */
static struct fusee_str place_of(const struct tree *t, const struct call *c, uint32_t caller,
				 char text[RENDER_PLACE])
{
	const struct render_function *f = &t->m->functions[c->function], *g;
	struct fusee_str none = {0};

	if (f->code == RENDER_LANGUAGE && f->start_line)
		return render_place(f, text);
	if (f->code == RENDER_REASON || !f->library.len || *f->name.p == '[')
		return none;
	g = caller ? &t->m->functions[call(t, caller)->function] : NULL;
	return g && str_equal(g->library, f->library) ? none : str_base_name(f->library);
}

/* Whether only one of the profiles has the path. */
static const char *presence(const struct tree *t, const struct call *c)
{
	return !t->m->base || !c->total == !c->base ? "" : c->base ? " (vanished)" : " (new)";
}

static void put_call(const struct tree *t, const struct call *c, uint32_t caller, const char *last,
		     struct buf *out)
{
	char text[RENDER_PLACE];
	struct fusee_str prefix = {t->prefix.p, t->prefix.len}, branch = {last, strlen(last)};
	const struct render_function *f = &t->m->functions[c->function];
	struct fusee_str name = f->code == RENDER_LANGUAGE && f->start_line
					? render_name_beside_place(t->m, f)
					: f->shown,
			 place = place_of(t, c, caller, text);
	uint32_t used = (t->m->base ? CHANGE_WIDTH : SHARES_WIDTH) + render_columns(prefix) +
			render_columns(branch);
	uint32_t width = !t->o->width                    ? 0
			 : t->o->width > used + NAME_MIN ? t->o->width - used
							 : NAME_MIN;
	bool hot = (double)c->self * 20 >= (double)call(t, 0)->total && c->self > 0;
	const char *style = !t->o->color ? "" : is_noise(t, c) ? DIM : hot ? BOLD : "";

	put_shares(t, c, out);
	buf_str(out, "  ");
	put_prefix(t, last, out);
	buf_str(out, style);
	render_name(out, name, width);
	buf_str(out, presence(t, c));
	buf_str(out, *style ? PLAIN : "");
	if (place.len && (!width || render_columns(name) + 2 + render_columns(place) <= width)) {
		buf_str(out, t->o->color ? "  " DIM : "  ");
		render_plain(out, place);
		buf_str(out, t->o->color ? PLAIN : "");
	}
	buf_str(out, "\n");
}

static void put_rest(const struct tree *t, uint32_t first, const char *last, struct buf *out)
{
	struct call rest = {0};
	uint32_t n = 0;

	for (uint32_t i = first; i != NONE; i = call(t, i)->next, n++) {
		saturate_add(&rest.total, call(t, i)->total);
		saturate_add(&rest.base, call(t, i)->base);
		rest.noise += call(t, i)->noise;
		rest.base_noise += call(t, i)->base_noise;
	}
	put_shares(t, &rest, out);
	buf_str(out, "  ");
	put_prefix(t, last, out);
	buf_printf(out, "%s%u more%s%s\n", t->o->color ? DIM : "", n,
		   n > 1 ? ", each under 1 %" : ", under 1 %", t->o->color ? PLAIN : "");
}

/* The position of the walk: the next call among its siblings, and the length of their prefix. */
struct place {
	uint32_t next, caller;
	size_t prefix;
	bool single;
};

static int enter(struct tree *t, struct buf *places, uint32_t parent)
{
	struct place p = {.prefix = t->prefix.len};

	sort(t, parent);
	p.next = call(t, parent)->child;
	p.caller = parent;
	p.single = p.next != NONE && call(t, p.next)->next == NONE;
	return buf_add(places, &p, sizeof(p));
}

/* Without recursion: a stack in a foreign file may have any depth. */
static int walk(struct tree *t, struct buf *out)
{
	struct buf places = {0};
	int ret = enter(t, &places, 0);

	while (!ret && places.len) {
		struct place *p = (struct place *)(void *)(places.p + places.len) - 1;
		uint32_t i = p->next;
		const struct call *c = i == NONE ? NULL : call(t, i);

		t->prefix.len = p->prefix;
		if (!c || is_small(t, c)) {
			if (c)
				put_rest(t, i, p->single ? "" : "└─ ", out);
			places.len -= sizeof(*p);
			continue;
		}
		put_call(t, c, p->caller, p->single ? "" : c->next == NONE ? "└─ " : "├─ ", out);
		p->next = c->next;
		if (!p->single)
			buf_str(&t->prefix, c->next == NONE ? "   " : "│  ");
		ret = t->prefix.error ? t->prefix.error : enter(t, &places, i);
	}
	buf_fini(&places);
	return ret;
}

static void put_head(const struct tree *t, struct buf *out)
{
	char value[RENDER_NUMBER];

	render_value(value, call(t, 0)->total, t->m->unit, "auto");
	buf_str(out, t->m->base ? "   total    change       z  " : "   total     self  ");
	render_plain(out, t->m->type);
	if (t->m->base) {
		char before[RENDER_NUMBER];

		render_value(before, call(t, 0)->base, t->m->unit, "auto");
		buf_printf(out, ": %s before", before);
	}
	buf_printf(out, t->m->base ? ", %s now" : ": %s", value);
	if (t->m->total != call(t, 0)->total && t->m->total > 0) {
		char all[RENDER_NUMBER], percent[RENDER_NUMBER];

		render_value(all, t->m->total, t->m->unit, "auto");
		render_percent(percent, call(t, 0)->total, t->m->total);
		buf_printf(out, ", %s of %s", percent + strspn(percent, " "), all);
	}
	buf_str(out, "\n");
}

int render_tree(const struct fusee_profile *p, const struct fusee_profile *base,
		const struct render_options *o, struct buf *out)
{
	struct render_model m;
	struct tree t = {.m = &m, .o = o};
	int ret = render_model_make(&m, p, base, o, out);

	if (ret)
		return ret;
	ret = grow(&t);
	t.sorted = calloc(t.calls.len / sizeof(struct call) + 1, sizeof(struct call *));
	if (!ret && !t.sorted)
		ret = -ENOMEM;
	if (!ret) {
		put_head(&t, out);
		ret = walk(&t, out);
	}
	dict_fini(&t.pairs);
	buf_fini(&t.calls);
	buf_fini(&t.prefix);
	free(t.sorted);
	render_model_free(&m);
	return ret ? ret : out->error;
}
