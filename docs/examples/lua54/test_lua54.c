/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts call snap() from where it is interesting. It walks its own stack with libgcc's unwinder,
 * hands the frames of luaV_execute and lua_resume to the step, and compares what that pushes with
 * what Lua says of itself: each Lua function's source, line and name. Then again, with one of the
 * step's reads failing or lying.
 */
#define _GNU_SOURCE
#undef NDEBUG
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <fusee/plugin.h>
#include <fusee/unwinder.bpf.h>

#include "lua54.h"

extern const struct fusee_plugin fusee_plugin;
static const struct fusee_unwinder_ops *ops;
static void *ctx;

#define FRAMES 512
#define TEXT 512

/* ---- the file: liblua5.4, as it is loaded here ---- */

static char *image;
static int symbols = 1; /* 0: without those that only a debugger has */
static struct fusee_claim claims[4];
static uint32_t nclaims, slab[16], nslab;

struct dwarf_eh_bases {
	void *tbase, *dbase, *func;
};
const void *_Unwind_Find_FDE(void *pc, struct dwarf_eh_bases *); /* libgcc's */

static int file_info(uint64_t file, struct fusee_file_info *info)
{
	(void)file;
	info->machine = 62;
	return 0;
}

static int file_function(uint64_t file, uint64_t vaddr, struct fusee_range *at)
{
	struct dwarf_eh_bases bases;
	const char *fde = _Unwind_Find_FDE(image + vaddr, &bases);
	int32_t size;

	(void)file;
	if (!fde)
		return -ENOENT;
	memcpy(&size, fde + 12, 4); /* initial location and size are of 4 bytes in .eh_frame */
	at->lo = (uint64_t)((char *)bases.func - image);
	at->hi = at->lo + (uint64_t)size;
	return vaddr < at->hi ? 0 : -ENOENT;
}

static int file_symbol(uint64_t file, const char *name, struct fusee_range *at)
{
	char *p = symbols ? dlsym(RTLD_DEFAULT, name) : NULL;

	(void)file;
	at->lo = at->hi = (uint64_t)(p - image);
	return p ? 0 : -ENOENT;
}

static int file_read(uint64_t file, uint64_t vaddr, void *buf, uint32_t len)
{
	(void)file;
	memcpy(buf, image + vaddr, len);
	return 0;
}

static int file_slab(struct fusee_instance *in, uint64_t file, const uint32_t *words, uint64_t n)
{
	(void)in;
	(void)file;
	assert(n <= 16);
	memcpy(slab, words, n * sizeof(*words));
	nslab = (uint32_t)n;
	return 0;
}

static int file_claim(struct fusee_instance *in, uint64_t file, const struct fusee_claim *c)
{
	(void)in;
	(void)file;
	assert(nclaims < 4 && c->range.lo < c->range.hi);
	claims[nclaims++] = *c;
	return 0;
}

static char named[TEXT];

static int frame(struct fusee_frame_out *out, const struct fusee_source_frame *f)
{
	(void)out;
	snprintf(named, sizeof(named), "%.*s|%.*s|%u|%u", (int)f->function.len, f->function.p,
		 (int)f->file.len, f->file.p, f->start_line, f->line);
	return 0;
}

static int fail(struct fusee_instance *in, int err, const char *text)
{
	(void)in;
	fprintf(stderr, "# fails: %s\n", text);
	return err;
}

static const struct fusee_unwinder_host unwinder = {
	.size = sizeof(unwinder),
	.file_info = file_info,
	.file_function = file_function,
	.file_symbol = file_symbol,
	.file_read = file_read,
	.file_slab = file_slab,
	.file_claim = file_claim,
	.frame = frame,
};
static const struct fusee_host host = {
	.size = sizeof(host), .abi_minor = FUSEE_ABI_MINOR, .fail = fail, .unwinder = &unwinder};

/* ---- the stack ---- */

/* cfa: of this frame, which is sp of its caller */
struct machine_frame {
	uint64_t pc, sp, cfa, regs[16];
};

static const int kept[] = {FUSEE_X86_RBX, FUSEE_X86_RBP, FUSEE_X86_R12,
			   FUSEE_X86_R13, FUSEE_X86_R14, FUSEE_X86_R15};

struct walk {
	struct machine_frame frame[FRAMES];
	uint32_t n;
};

static _Unwind_Reason_Code one_frame(struct _Unwind_Context *c, void *arg)
{
	struct walk *w = arg;
	struct machine_frame *f;

	if (w->n == FRAMES)
		return _URC_END_OF_STACK;
	f = &w->frame[w->n];
	*f = (struct machine_frame){.pc = _Unwind_GetIP(c), .sp = _Unwind_GetCFA(c)};
	for (int i = 0; i < 6; i++)
		f->regs[kept[i]] = _Unwind_GetGR(c, kept[i]);
	if (w->n++)
		f[-1].cfa = f->sp;
	return _URC_NO_REASON;
}

/* ---- the step, over this process's memory ---- */

static long reads, fail_at, lie_at;
static uint64_t lie;

static int read_memory(struct fusee_native *n, void *dst, __u32 len, __u64 addr)
{
	struct iovec to = {dst, len}, from = {(void *)addr, len};

	(void)n;
	if (++reads == fail_at)
		return -1;
	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)len)
		return -1;
	if (reads == lie_at)
		for (__u32 i = 0; i < len; i++)
			((unsigned char *)dst)[i] ^= (unsigned char)(lie >> i % 8 * 8);
	return 0;
}

static int emit(struct fusee_native *n, __u32 kind, __u64 key, const void *bytes, __u32 len)
{
	struct fusee_emission e = {
		.size = sizeof(e), .kind = kind, .key = key, .bytes = {bytes, len}};
	int r = ops->record(ctx, n->u.process, &e);

	assert(r >= 0 || lie_at); /* the bytes that it keeps */
	return 0;
}

struct found {
	char text[FRAMES][TEXT];
	uint32_t n;
	int next; /* what the step answered last */
	uint32_t error;
};

static void push(struct fusee_unwind *u, struct found *found)
{
	struct fusee_raw_frame raw = {
		.size = sizeof(raw), .process = 1, .v = {u->pushed[0], u->pushed[1]}};

	assert(u->npushed == 1);
	u->npushed = 0;
	assert(found->n < FRAMES);
	*named = '\0';
	ops->symbolize(ctx, &raw, NULL);
	strcpy(found->text[found->n++], named);
}

/* The step at one frame, until it hands back. */
static void steps(struct fusee_unwind *u, struct found *found)
{
	int turns = 0;

	do {
		found->next = ops->native_step(u);
		if (u->npushed)
			push(u, found);
		assert(++turns < 1024);
	} while (found->next == FUSEE_AGAIN);
	found->error = u->error;
}

static void unwind(const struct walk *w, struct found *found)
{
	static struct fusee_native n; /* large */

	memset(&n, 0, sizeof(n));
	n.read = read_memory;
	n.emit = emit;
	n.slab = slab;
	n.u.slab_words = nslab;
	n.u.process = 1;
	n.u.first_sp = w->frame[0].sp;
	memset(found, 0, sizeof(*found));
	reads = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		uint64_t at = w->frame[i].pc - 1 - (uint64_t)image;

		n.u.pc = w->frame[i].pc;
		n.u.sp = w->frame[i].sp;
		n.u.fp = w->frame[i].regs[FUSEE_X86_RBP];
		n.u.cfa = w->frame[i].cfa;
		n.u.valid_regs = FUSEE_CALLEE_SAVED;
		memcpy(n.u.regs, w->frame[i].regs, sizeof(w->frame[i].regs));
		for (uint32_t k = 0; k < nclaims; k++) {
			if (at < claims[k].range.lo || at >= claims[k].range.hi)
				continue;
			n.u.claim_lo = claims[k].range.lo + (uint64_t)image;
			n.u.claim_arg = claims[k].arg;
			steps(&n.u, found);
			if (found->next == FUSEE_STOP)
				return;
		}
	}
}

/* ---- the truth ---- */

static lua_State *resumers[16];
static int nresumers, snaps, refusals;

static void truth_of(lua_State *L, struct found *t)
{
	lua_Debug ar;

	for (int level = 0; lua_getstack(L, level, &ar); level++) {
		const char *file;

		lua_getinfo(L, "nSl", &ar);
		if (*ar.what == 'C')
			continue;
		file = strchr("@=", *ar.source) ? ar.source + 1 : ar.short_src;
		if (ar.name && strcmp(ar.namewhat, "metamethod") &&
		    strcmp(ar.namewhat, "for iterator"))
			snprintf(t->text[t->n++], TEXT, "%s|%s|%d|%d", ar.name, file,
				 ar.linedefined, ar.currentline);
		else
			snprintf(t->text[t->n++], TEXT, "%s <%s%s%.0d>|%s|%d|%d",
				 ar.linedefined ? "function" : "main chunk", file,
				 ar.linedefined ? ":" : "", ar.linedefined, file, ar.linedefined,
				 ar.currentline);
	}
}

/* A function that its caller has no name for may have one from another caller. */
static int is_same(const char *truth, const char *found)
{
	return strncmp(truth, "function <", 10) ? !strcmp(truth, found)
						: !strcmp(strchr(truth, '|'), strchr(found, '|'));
}

static void compare(const struct found *t, const struct found *f)
{
	int same = t->n == f->n && f->next != FUSEE_STOP;

	for (uint32_t i = 0; same && i < t->n; i++)
		same = is_same(t->text[i], f->text[i]);
	if (same)
		return;
	for (uint32_t i = 0; i < t->n || i < f->n; i++)
		fprintf(stderr, "# %-40s %s\n", i < t->n ? t->text[i] : "",
			i < f->n ? f->text[i] : "");
	fprintf(stderr, "# the last answer: %d, error %u\n", f->next, f->error);
	abort();
}

/* Each read fails, or says something else, in turn: the step says so, or goes on; it pushes no more
 * than there is to push, and comes to an end. */
static void disturb(const struct walk *w, const struct found *t)
{
	static struct found f;
	long all = reads;

	for (fail_at = 1; fail_at <= all; fail_at++) {
		unwind(w, &f);
		assert(f.next != FUSEE_STOP || f.error);
		assert(f.n <= t->n);
		refusals += f.next == FUSEE_STOP;
	}
	fail_at = 0;
	for (lie_at = 1; lie_at <= all; lie_at++) {
		lie = (uint64_t)rand() << (rand() & 31) & (rand() & 1 ? -1ull : 0xff);
		unwind(w, &f);
	}
	lie_at = 0;
}

static int snap(lua_State *L)
{
	static struct walk w;
	static struct found found, truth;

	w.n = 0;
	_Unwind_Backtrace(one_frame, &w);
	truth.n = 0;
	truth_of(L, &truth);
	for (int i = nresumers; i-- > 0;)
		truth_of(resumers[i], &truth);
	unwind(&w, &found);
	compare(&truth, &found);
	disturb(&w, &truth);
	snaps++;
	return 0;
}

/* resume(co): coroutine.resume() that remembers who resumed whom */
static int resume(lua_State *L)
{
	lua_State *co = lua_tothread(L, 1);
	int results, r;

	assert(co && nresumers < 16);
	resumers[nresumers++] = L;
	r = lua_resume(co, L, 0, &results);
	nresumers--;
	if (r > LUA_YIELD)
		luaL_error(L, "%s", lua_tostring(co, -1));
	lua_pop(co, results);
	return 0;
}

static const char script[] =
	"local function leaf()\n"
	"  snap()\n"
	"end\n"
	"function direct(n) if n == 0 then leaf() else direct(n - 1) end return 1 end\n"
	"local t = {}\n"
	"function t.field() direct(2) return 1 end\n"
	"function t:method() t.field() return 1 end\n"
	"t:method()\n"
	"pcall(direct, 1)\n"
	"local function protected(n)\n"
	"  if n == 0 then leaf() else assert(pcall(protected, n - 1)) end\n"
	"end\n"
	"protected(10)\n"
	"table.sort({3, 1, 2}, function(a, b)\n"
	"  if not once then once = true; leaf() end\n"
	"  return a < b\n"
	"end)\n"
	"string.gsub('x', 'x', function() leaf() end)\n"
	"setmetatable(t, {__index = function(_, k)\n"
	"  leaf() return k\n"
	"end})\n"
	"local x = t.nothing\n"
	"for _ in (function() if not twice then twice = true; leaf() return 1 end end) do end\n"
	"local inner = coroutine.create(function() leaf(); coroutine.yield(); leaf() end)\n"
	"local outer = coroutine.create(function()\n"
	"  local function body() resume(inner); coroutine.yield(); resume(inner) end\n"
	"  body() leaf()\n"
	"end)\n"
	"resume(outer)\n"
	"pcall(function() resume(outer) end)\n"
	"local across = coroutine.create(function()\n"
	"  local function yields() coroutine.yield(); leaf() end\n"
	"  pcall(function() pcall(yields) leaf() end) leaf()\n"
	"end)\n"
	"resume(across) resume(across)\n"
	"local function tail(f) return f() end\n"
	"tail(leaf)\n"
	"local one, two = function() snap() end, function() snap() end one() two()\n"
	"load('\\n\\nsnap()', '=chunk')()\n"
	"load('local x = 1\\nsnap()')()\n"
	"collectgarbage() setmetatable({}, {__gc = function() leaf() end}) collectgarbage()\n";

static void long_function(lua_State *L)
{
	luaL_Buffer b;

	/* lines that differ by more than a byte, and more instructions than one base line is for */
	luaL_buffinit(L, &b);
	for (int i = 0; i < 700; i++)
		luaL_addstring(&b, i % 97 ? "x = (x or 0) + 1\n" : "snap()\n");
	for (int i = 0; i < 300; i++)
		luaL_addstring(&b, "\n");
	luaL_addstring(&b, "snap()\nlocal function named() snap() end\n");
	for (int i = 0; i < 200; i++)
		luaL_addstring(&b, "named(\n);");
	luaL_pushresult(&b);
}

static void run(lua_State *L, const char *text, const char *name)
{
	if (luaL_loadbuffer(L, text, strlen(text), name) || lua_pcall(L, 0, 0, 0)) {
		fprintf(stderr, "# %s\n", lua_tostring(L, -1));
		abort();
	}
}

/* With and without its hidden symbols the same interpreter is found. */
static void inspect(void)
{
	Dl_info lua;

	assert(dladdr((void *)lua_callk, &lua));
	image = lua.dli_fbase;
	symbols = 0;
	assert(ops->inspect(ctx, 1) == 0 && !nclaims); /* no Lua */
	symbols = 1;
	assert(ops->inspect(ctx, 1) == 1);
	assert(nclaims == 2 && nslab == LUA54_WORDS);
	assert(claims[0].range.hi - claims[0].range.lo >= 8192);
	assert(claims[1].range.lo == (uint64_t)((char *)lua_resume - image));
}

static void bad_records(void)
{
	struct lua54_place p = {.deltas = 1000};
	struct fusee_emission e = {.size = sizeof(e), .kind = 1, .bytes = {(char *)&p, 0}};
	struct fusee_raw_frame raw = {.size = sizeof(raw), .process = 77};

	for (uint64_t n = 0; n <= sizeof(p); n++) {
		e.bytes.len = n;
		assert(ops->record(ctx, 77, &e) == -EBADMSG);
	}
	assert(ops->symbolize(ctx, &raw, NULL) == 0);
	/* what one process can make the agent keep has a limit */
	p.deltas = 0;
	for (e.key = 0; e.key < 100000 && ops->record(ctx, 77, &e) > 0; e.key++)
		p.linedefined++;
	assert(e.key == 16384 && ops->record(ctx, 77, &e) == -ENOSPC);
	ops->detach(ctx, 77);
	ops->detach(ctx, 78);
}

int main(void)
{
	lua_State *L = luaL_newstate();

	ops = fusee_plugin.ops;
	ctx = calloc(1, fusee_plugin.ctx_size);
	assert(ctx && L && !fusee_plugin.init(ctx, NULL, &host));
	inspect();
	luaL_openlibs(L);
	lua_register(L, "snap", snap);
	lua_register(L, "resume", resume);
	run(L, script, "@script.lua");
	long_function(L);
	run(L, lua_tostring(L, -1), "@long.lua");
	bad_records();
	lua_close(L);
	ops->detach(ctx, 1);
	fusee_plugin.fini(ctx);
	free(ctx);
	assert(snaps > 200 && refusals > 1000);
	printf("lua54: passed (%d stacks, %d failed reads)\n", snaps, refusals);
	return 0;
}
