/* SPDX-License-Identifier: Apache-2.0 */
/* unwinder "lua54": frames of PUC Lua 5.4, also of a stripped interpreter. x86-64. */
#define _GNU_SOURCE /* tdestroy */
#include <search.h>
#include <stdlib.h>

#include <fusee/helpers.h>
#include <fusee/unwinder.bpf.h>

#include "lua54.h"

int fusee_step_lua54(struct fusee_unwind *u);
FUSEE_EMBED(lua54_bpf, "lua54.bpf.o");

struct lua54 {
	struct fusee_self self;
	void *processes; /* tsearch() trees, here and below */
};

/* ---- in the worker: is there Lua in this file, and where ---- */

#define LARGE 8192 /* luaV_execute has 12 KiB and more, whatever the compiler's options */
#define QUEUE 96

struct search {
	const struct fusee_unwinder_host *host;
	uint64_t file;
	struct fusee_range found, queue[QUEUE];
	uint32_t n;
};

/* Adds a function to the search. 1: it is luaV_execute. */
static int met(struct search *s, struct fusee_range r)
{
	if (r.hi - r.lo >= LARGE) {
		s->found = r;
		return 1;
	}
	for (uint32_t i = 0; i < s->n; i++)
		if (s->queue[i].lo == r.lo)
			return 0;
	if (s->n < QUEUE)
		s->queue[s->n++] = r;
	return 0;
}

/* Finds the functions that it calls, by e8 (call) or e9 (jmp) with 32 bits. */
static int follow(struct search *s, struct fusee_range r)
{
	unsigned char code[LARGE];
	struct fusee_range to;
	int32_t by;

	if (s->host->file_read(s->file, r.lo, code, (uint32_t)(r.hi - r.lo)))
		return 0;
	for (uint64_t i = 0; i + 5 <= r.hi - r.lo; i++) {
		if ((code[i] & 0xfe) != 0xe8)
			continue;
		memcpy(&by, code + i + 1, 4);
		if (!s->host->file_function(s->file, r.lo + i + 5 + (uint64_t)by, &to) &&
		    to.lo == r.lo + i + 5 + (uint64_t)by && met(s, to))
			return 1;
	}
	return 0;
}

/* luaV_execute is no exported function: without its symbol it is the first large function that is
 * found from the functions that call Lua. 0 or -ENOENT. */
static int find_execute(struct search *s)
{
	static const char *const from[] = {"lua_callk", "lua_pcallk", "lua_resume"};
	struct fusee_range r;

	if (!s->host->file_symbol(s->file, "luaV_execute", &s->found))
		return 0;
	for (int i = 0; i < 3; i++)
		if (!s->host->file_symbol(s->file, from[i], &r) &&
		    !s->host->file_function(s->file, r.lo, &r) && met(s, r))
			return 0;
	for (uint32_t i = 0; i < s->n; i++)
		if (follow(s, s->queue[i]))
			return 0;
	return -ENOENT;
}

/* Words of the table, by release: lstate.h of each. */
static void words_of(int release, uint32_t w[LUA54_WORDS])
{
	w[LUA54_MAINTHREAD] = release == 0 ? 256 : 264;             /* 5.4.1: lastatomic */
	w[LUA54_ERRORJMP] = release == 1 || release == 2 ? 80 : 88; /* 5.4.3: tbclist */
	w[LUA54_FRESH] = release < 2 ? 0 : 1 << 2; /* before 5.4.2 C makes each call */
	w[LUA54_TAIL] = release < 2 ? 1 << 4 : 1 << 5;
}

static int claim(struct lua54 *l, uint64_t file, struct fusee_range at, uint64_t arg)
{
	struct fusee_claim c = FUSEE_SIZED(struct fusee_claim,
					   .flags = FUSEE_CLAIM_STEP | FUSEE_CLAIM_REGISTERS,
					   .range = at, .arg = arg);

	return l->self.host->unwinder->file_claim(l->self.in, file, &c);
}

static int lua54_inspect(void *ctx, uint64_t file)
{
	static const char version[] = "$LuaVersion: Lua 5.4.";
	struct lua54 *l = ctx;
	const struct fusee_unwinder_host *host = l->self.host->unwinder;
	struct fusee_file_info info = FUSEE_SIZED(struct fusee_file_info);
	struct search s = {.host = host, .file = file};
	struct fusee_range at;
	uint32_t words[LUA54_WORDS];
	char ident[sizeof(version) + 1];
	int r;

	if (host->file_info(file, &info) || info.machine != 62 ||
	    host->file_symbol(file, "lua_ident", &at) ||
	    host->file_read(file, at.lo, ident, sizeof(ident)) ||
	    memcmp(ident, version, sizeof(version) - 1))
		return 0;
	r = ident[sizeof(version) - 1] - '0';
	if (r < 0 || r > 8 || ident[sizeof(version)] != ' ')
		return fusee_fail(&l->self, -ENOTSUP, "only Lua 5.4.0 to 5.4.8 are known");
	if (find_execute(&s) || host->file_symbol(file, "lua_resume", &at) ||
	    host->file_function(file, at.lo, &at))
		return fusee_fail(&l->self, -ENOENT, "Lua's interpreter was not found in it");
	words_of(r, words);
	r = host->file_slab(l->self.in, file, words, LUA54_WORDS);
	if (!r)
		r = claim(l, file, s.found, LUA54_EXECUTE);
	if (!r)
		r = claim(l, file, at, LUA54_RESUME);
	return r ? r : 1;
}

/* ---- on the sampling thread: the names of frames ---- */

#define PLACES 16384 /* of one process, which may be hostile */

/* The first three members distinguish functions. */
struct function {
	uint64_t proto;
	uint32_t line;
	char source[sizeof(((struct lua54_place *)0)->source)];
	char name[sizeof(((struct lua54_place *)0)->name)];
};

struct place {
	uint64_t key;
	const struct function *function;
	uint32_t line;
};

struct process {
	uint64_t id;
	void *places, *functions;
	uint32_t n;
};

static int by_id(const void *a, const void *b) /* of processes and of places */
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int by_source(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->proto != y->proto)
		return x->proto > y->proto ? 1 : -1;
	return x->line != y->line ? (x->line > y->line) - (x->line < y->line)
				  : strcmp(x->source, y->source);
}

/* The element that is equal to *like, a copy of it if there was none. NULL: no memory. */
static void *element(void **tree, const void *like, size_t size,
		     int (*compare)(const void *, const void *))
{
	void **node = tsearch(like, tree, compare), *copy;

	if (!node || *node != like)
		return node ? *node : NULL;
	copy = malloc(size);
	if (copy)
		*node = memcpy(copy, like, size);
	else
		tdelete(like, tree, compare);
	return copy;
}

static int lua54_record(void *ctx, uint64_t process, const struct fusee_emission *e)
{
	struct lua54 *l = ctx;
	struct lua54_place p = {0};
	struct function like = {0}, *function;
	struct place at = {.key = e->key};
	struct process *of;
	int bytes = sizeof(at);

	if (e->bytes.len <= offsetof(struct lua54_place, source) || e->bytes.len > sizeof(p))
		return -EBADMSG;
	memcpy(&p, e->bytes.p, e->bytes.len);
	if (p.deltas > sizeof(p.delta))
		return -EBADMSG;
	of = element(&l->processes, &(struct process){.id = process}, sizeof(*of), by_id);
	if (!of)
		return -ENOMEM;
	if (of->n == PLACES)
		return -ENOSPC;
	like.proto = p.proto;
	like.line = p.linedefined;
	memcpy(like.source, p.source, sizeof(p.source) - 1);
	bytes += tfind(&like, &of->functions, by_source) ? 0 : (int)sizeof(like);
	function = element(&of->functions, &like, sizeof(like), by_source);
	if (!function)
		return -ENOMEM;
	if (e->kind == LUA54_CALLED && !function->name[0])
		memcpy(function->name, p.name, sizeof(p.name) - 1);
	for (uint32_t i = 0; i < p.deltas; i++)
		p.line += (uint32_t)p.delta[i];
	at.function = function;
	at.line = p.line;
	if (tfind(&at, &of->places, by_id))
		return 0;
	of->n++;
	return element(&of->places, &at, sizeof(at), by_id) ? bytes : -ENOMEM;
}

static int lua54_symbolize(void *ctx, const struct fusee_raw_frame *frame,
			   struct fusee_frame_out *out)
{
	struct lua54 *l = ctx;
	struct process **of = tfind(&frame->process, &l->processes, by_id);
	struct place **place = of ? tfind(&frame->v[0], &(*of)->places, by_id) : NULL;
	const struct function *f = place ? (*place)->function : NULL;
	struct fusee_source_frame named = FUSEE_SIZED(struct fusee_source_frame);
	char file[256], text[320];

	if (!f)
		return 0;
	if (*f->source == '@' || *f->source == '=')
		snprintf(file, sizeof(file), "%s", f->source + 1);
	else
		snprintf(file, sizeof(file), "[string \"%.*s%s\"]", (int)strcspn(f->source, "\n"),
			 f->source, strchr(f->source, '\n') ? "..." : "");
	if (*f->name)
		snprintf(text, sizeof(text), "%s", f->name);
	else if (f->line)
		snprintf(text, sizeof(text), "function <%s:%u>", file, f->line);
	else
		snprintf(text, sizeof(text), "main chunk <%s>", file);
	named.function = fusee_text(text);
	named.file = fusee_text(file);
	named.line = (*place)->line;
	named.start_line = f->line;
	return l->self.host->unwinder->frame(out, &named) ? -ENOMEM : 1;
}

static void free_process(void *element)
{
	struct process *p = element;

	tdestroy(p->places, free);
	tdestroy(p->functions, free);
	free(p);
}

static void lua54_detach(void *ctx, uint64_t process)
{
	struct lua54 *l = ctx;
	struct process **of = tfind(&process, &l->processes, by_id), *p = of ? *of : NULL;

	if (!p)
		return;
	tdelete(&process, &l->processes, by_id);
	free_process(p);
}

static void lua54_fini(void *ctx)
{
	struct lua54 *l = ctx;

	tdestroy(l->processes, free_process);
}

static const char *const reasons[] = LUA54_REASONS;

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.slab_version = 1,
	.frame_type = "lua",
	.reasons = reasons,
	.bpf = lua54_bpf,
	.bpf_end = lua54_bpf_end,
	.native_step = fusee_step_lua54,
	.inspect = lua54_inspect,
	.record = lua54_record,
	.symbolize = lua54_symbolize,
	.detach = lua54_detach,
};

FUSEE_PLUGIN(lua54, FUSEE_UNWINDER, .version = "0.1", .doc = "Frames of PUC Lua 5.4.",
	     .ctx_size = sizeof(struct lua54), .init = fusee_self_init, .fini = lua54_fini,
	     .ops = &ops);
