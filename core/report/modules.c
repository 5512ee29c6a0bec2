/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, and names that tell equally named functions of different modules apart. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/str.h"
#include "report/internal/samples.h"

#define NONE UINT32_MAX
#define ID_DIGITS 8u /* of a build ID in a name */

static struct render_module *modules(struct render_model *m)
{
	return (struct render_module *)(void *)m->tables->module_buf.p;
}

/* ---- modules ---- */

static int make_key(struct render_model *m, char kind, struct fusee_str path,
		    struct fusee_str build_id)
{
	struct buf *key = &m->tables->scratch;

	buf_reset(key);
	buf_add(key, &kind, 1);
	buf_add(key, path.p, path.len);
	buf_add(key, "", 1);
	return buf_add(key, build_id.p, build_id.len);
}

/* The module with this key, made if there is none. */
static uint32_t add_module(struct render_model *m, char kind, struct fusee_str path,
			   struct fusee_str build_id)
{
	struct render_tables *t = m->tables;
	struct render_module *to;
	uint32_t id;

	if (make_key(m, kind, path, build_id))
		return NONE;
	id = dict_add(&t->modules, t->scratch.p, t->scratch.len);
	if (id == DICT_NONE || id < m->nmodules)
		return id;
	to = buf_grow(&t->module_buf, sizeof(*to));
	if (!to)
		return NONE;
	*to = (struct render_module){.path = path, .build_id = build_id, .is_source = kind == 's'};
	m->nmodules++;
	return id;
}

uint32_t render_source_module(struct render_model *m, struct fusee_str path)
{
	return path.len ? add_module(m, 's', path, (struct fusee_str){0}) : 0;
}

/* Code without a file has no module: the content of such a mapping differs by process and time. */
static bool has_file(const struct fusee_profile *p, const struct fusee_mapping *map)
{
	return !(map->flags & FUSEE_MAPPING_JIT) &&
	       (str_at(p, map->path).len || str_at(p, map->build_id).len);
}

static uint32_t mapping_module(struct render_model *m, const struct fusee_profile *p, uint32_t i)
{
	const struct fusee_mapping *map = FUSEE_AT(struct fusee_mapping, p->mappings, i);

	return has_file(p, map) ? add_module(m, 'm', str_at(p, map->path), str_at(p, map->build_id))
				: 0;
}

/* ---- modules of the base ---- */

/* The modules of the profile that a mapping of the base may match: the module with its path, or the
 * program if each profile has one program. */
struct candidates {
	struct dict paths;
	uint32_t *module_of; /* by path */
	uint32_t program;
};

/* The only program of the profile, if the base has only one too. 0: there is none, or several. */
static uint32_t only_program(struct render_model *m)
{
	uint32_t n = 0, nbase = 0, program = 0;

	for (uint32_t i = 1; i < m->nmodules; i++) {
		if (!modules(m)[i].is_main)
			continue;
		n++;
		program = i;
	}
	for (uint32_t i = 1; i < m->base->mappings.n; i++)
		nbase += !!(FUSEE_AT(struct fusee_mapping, m->base->mappings, i)->flags &
			    FUSEE_MAPPING_MAIN);
	return n == 1 && nbase == 1 ? program : 0;
}

static int list_candidates(struct render_model *m, struct candidates *c)
{
	c->program = only_program(m);
	c->module_of = calloc(m->nmodules + (size_t)2, sizeof(*c->module_of));
	if (!c->module_of || dict_init(&c->paths))
		return -ENOMEM;
	for (uint32_t i = 1; i < m->nmodules; i++) {
		const struct render_module *to = &modules(m)[i];
		uint32_t path;

		if (to->in_base || to->is_source)
			continue;
		path = dict_add(&c->paths, to->path.p, to->path.len);
		if (path == DICT_NONE)
			return -ENOMEM;
		if (!c->module_of[path])
			c->module_of[path] = i;
	}
	return 0;
}

/* A new build of a program or library is compared with the build of the base. */
static uint32_t match(struct render_model *m, struct candidates *c, const struct fusee_mapping *map)
{
	struct fusee_str path = str_at(m->base, map->path);
	uint32_t id = path.len ? dict_find(&c->paths, path.p, path.len) : DICT_NONE, i;

	i = id == DICT_NONE ? 0 : c->module_of[id];
	if (!i && map->flags & FUSEE_MAPPING_MAIN)
		i = c->program;
	if (!i || modules(m)[i].in_base)
		return NONE;
	modules(m)[i].in_base = true;
	return i;
}

/* Mappings of the base with a module of the profile, by path and build ID. */
static int match_equal(struct render_model *m, const struct fusee_profile *p, uint32_t *module_of)
{
	for (uint32_t i = 1; i < p->mappings.n; i++) {
		const struct fusee_mapping *map = FUSEE_AT(struct fusee_mapping, p->mappings, i);

		module_of[i] = 0;
		if (!has_file(p, map))
			continue;
		if (make_key(m, 'm', str_at(p, map->path), str_at(p, map->build_id)))
			return -ENOMEM;
		module_of[i] = dict_find(&m->tables->modules, m->tables->scratch.p,
					 m->tables->scratch.len);
		if (module_of[i] != NONE)
			modules(m)[module_of[i]].in_base = true;
	}
	return 0;
}

static int read_base(struct render_model *m, uint32_t *module_of)
{
	const struct fusee_profile *p = m->base;
	struct candidates c = {0};
	int r = match_equal(m, p, module_of);

	if (!r)
		r = list_candidates(m, &c);
	for (uint32_t i = 1; !r && i < p->mappings.n; i++) {
		if (module_of[i] != NONE)
			continue;
		module_of[i] = match(m, &c, FUSEE_AT(struct fusee_mapping, p->mappings, i));
		if (module_of[i] == NONE)
			module_of[i] = mapping_module(m, p, i);
		if (module_of[i] == NONE)
			r = -ENOMEM;
	}
	dict_fini(&c.paths);
	free(c.module_of);
	return r;
}

int render_modules(struct render_model *m, bool is_base, uint32_t *module_of)
{
	const struct fusee_profile *p = is_base ? m->base : m->profile;

	module_of[0] = 0;
	if (is_base)
		return read_base(m, module_of);
	for (uint32_t i = 1; i < p->mappings.n; i++) {
		module_of[i] = mapping_module(m, p, i);
		if (module_of[i] == NONE)
			return -ENOMEM;
		if (module_of[i] &&
		    FUSEE_AT(struct fusee_mapping, p->mappings, i)->flags & FUSEE_MAPPING_MAIN)
			modules(m)[module_of[i]].is_main = true;
	}
	return 0;
}

/* ---- names ---- */

static struct fusee_str base_name(const struct render_module *module)
{
	struct fusee_str base = str_base_name(module->path);

	if (base.len > 2 && base.p[0] == '[' && base.p[base.len - 1] == ']')
		return (struct fusee_str){base.p + 1, base.len - 2};
	return base;
}

/* Marks modules whose base name, or path, another module has too. */
static int find_shared(struct render_model *m)
{
	uint32_t *first = calloc(2 * (m->nmodules + (size_t)1), sizeof(*first));
	struct dict names = {0};
	int r = first && !dict_init(&names) ? 0 : -ENOMEM;

	for (uint32_t i = 1; !r && i < m->nmodules; i++) {
		struct fusee_str base = base_name(&m->modules[i]), path = m->modules[i].path;
		uint32_t by_base = dict_add(&names, base.p, base.len), by_path;

		/* a path without a folder is its own base name */
		by_path = str_equal(base, path) ? by_base : dict_add(&names, path.p, path.len);
		if (by_base == DICT_NONE || by_path == DICT_NONE) {
			r = -ENOMEM;
			break;
		}
		if (first[by_base] && first[by_base] != i)
			m->modules[i].shares_name = m->modules[first[by_base]].shares_name = true;
		if (first[by_path] && str_equal(path, m->modules[first[by_path]].path))
			m->modules[i].shares_path = m->modules[first[by_path]].shares_path = true;
		first[by_base] = first[by_base] ? first[by_base] : i;
		first[by_path] = first[by_path] ? first[by_path] : i;
	}
	dict_fini(&names);
	free(first);
	return r;
}

/* "libc.so.6"; "/opt/lib/libc.so.6" if there are several; "libc.so.6 1a2b3c4d" if they have one
 * path. */
static void put_module(struct buf *b, const struct render_module *module)
{
	struct fusee_str base = base_name(module), id = module->build_id;

	if (module->shares_name && !module->shares_path)
		base = module->path;
	buf_add(b, base.p, base.len);
	if (module->shares_path && id.len) {
		buf_str(b, base.len ? " " : "");
		buf_add(b, id.p, id.len < ID_DIGITS ? id.len : ID_DIGITS);
	}
}

static int qualify(struct render_model *m, struct render_function *f)
{
	struct buf *b = &m->tables->scratch;
	uint32_t id;

	if (!f->module)
		return 0;
	buf_reset(b);
	if (!f->is_nameless) {
		buf_add(b, f->name.p, f->name.len);
		buf_str(b, " ");
	}
	buf_str(b, "[");
	put_module(b, &m->modules[f->module]);
	if (buf_str(b, "]"))
		return -ENOMEM;
	id = dict_add(&m->tables->texts, b->p, b->len);
	if (id == DICT_NONE)
		return -ENOMEM;
	f->shown = (struct fusee_str){m->tables->texts.entries[id].key, b->len};
	return 0;
}

static int by_name(const void *a, const void *b, void *arg)
{
	const struct render_model *m = arg;

	return str_order(m->functions[*(const uint32_t *)a].name,
			 m->functions[*(const uint32_t *)b].name);
}

/* Functions order[from] to order[to - 1] have one name. */
static int qualify_equal(struct render_model *m, const uint32_t *order, uint32_t from, uint32_t to)
{
	bool several = false;
	int r = 0;

	for (uint32_t i = from + 1; i < to && !several; i++)
		several = m->functions[order[i]].module != m->functions[order[from]].module;
	for (uint32_t i = from; several && !r && i < to; i++)
		r = qualify(m, &m->functions[order[i]]);
	return r;
}

int render_show_names(struct render_model *m)
{
	uint32_t *order = malloc((m->nfunctions + (size_t)1) * sizeof(*order));
	int r = order ? find_shared(m) : -ENOMEM;

	for (uint32_t i = 0; !r && i < m->nfunctions; i++) {
		order[i] = i;
		m->functions[i].shown = m->functions[i].name;
	}
	if (!r && m->nfunctions)
		qsort_r(order, m->nfunctions, sizeof(*order), by_name, m);
	for (uint32_t i = 0, next; !r && i < m->nfunctions; i = next) {
		next = i + 1;
		while (next < m->nfunctions && !by_name(&order[i], &order[next], m))
			next++;
		r = qualify_equal(m, order, i, next);
	}
	free(order);
	return r;
}

/* ---- a name that was shown among other samples ---- */

static bool takes(struct fusee_str *s, struct fusee_str begin)
{
	if (s->len < begin.len || (begin.len && memcmp(s->p, begin.p, begin.len)))
		return false;
	s->p += begin.len;
	s->len -= begin.len;
	return true;
}

/* Whether the rest of a name, "libc.so.6]" or "libc.so.6 1a2b3c4d]", is this module. */
static bool is_module(const struct render_module *module, struct fusee_str rest,
		      struct fusee_str text)
{
	struct fusee_str id = module->build_id;

	if (!text.len || !takes(&rest, text))
		return false;
	if (id.len > ID_DIGITS)
		id.len = ID_DIGITS;
	if (id.len && rest.len > 1 && *rest.p == ' ')
		return takes(&rest, fusee_text(" ")) && takes(&rest, id) &&
		       fusee_text_is(rest, "]");
	return fusee_text_is(rest, "]");
}

static bool is_qualified(const struct render_model *m, const struct render_function *f,
			 const char *name)
{
	const struct render_module *module = &m->modules[f->module];
	struct fusee_str rest = fusee_text(name);

	if (!f->module || f->code == RENDER_LABEL)
		return false;
	if (!f->is_nameless && !(takes(&rest, f->name) && takes(&rest, fusee_text(" "))))
		return false;
	return takes(&rest, fusee_text("[")) && (is_module(module, rest, base_name(module)) ||
						 is_module(module, rest, module->path));
}

int render_show_as(struct render_model *m, const char *name)
{
	struct render_function *found = NULL;
	uint32_t id;

	for (uint32_t i = 0; i < m->nfunctions; i++) {
		struct render_function *f = &m->functions[i];

		if (f->code != RENDER_LABEL && fusee_text_is(f->shown, name))
			return 0;
		if (!found && is_qualified(m, f, name))
			found = f;
	}
	if (!found)
		return 0;
	id = dict_add(&m->tables->texts, name, strlen(name));
	if (id == DICT_NONE)
		return -ENOMEM;
	found->shown = (struct fusee_str){m->tables->texts.entries[id].key, strlen(name)};
	return 0;
}
