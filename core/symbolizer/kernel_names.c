/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/internal/kernel_names.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "programs/programs.h"
#include "symbolizer/internal/kallsyms.h"

/* When kallsyms is read again after a failure: it was hidden; there was no memory. */
#define HIDDEN_NS 600000000000ull
#define FAILED_NS 10000000000ull
/* How long symbols are used if the loaded modules or programs cannot be read. */
#define BLIND_NS 60000000000ull
#define MAX_MODULES (1u << 20) /* bytes of /proc/modules */
#define MAX_PROGRAMS 100000u   /* BPF programs loaded between two looks */

/* Which modules and BPF programs are loaded. */
struct state {
	uint8_t modules[32]; /* hash */
	uint32_t program;    /* id of the newest */
	bool blind;          /* one of them could not be read */
};

struct kernel_names {
	struct kernel_names_from from;
	struct kallsyms *now;    /* NULL: hidden, or no memory */
	struct kallsyms *before; /* as of the read before, without the kernel's own text; or NULL */
	struct state state;      /* just before `now` was read */
	uint64_t read;           /* when `now` was read; all times: CLOCK_MONOTONIC ns */
	uint64_t changed[2];     /* when `now` replaced `before`; the previous such time */
	uint64_t modules;        /* when a change of modules was last seen; 0: never */
	uint64_t again;          /* `now` is NULL: not read again before this time */
	uint64_t since;          /* as of kernel_names_begin() */
	bool checked;            /* `state` was compared since kernel_names_begin() */
	bool programs_changed;   /* and was of other BPF programs, but of the same modules */
};

int kernel_names_new(struct kernel_names **ret, const struct kernel_names_from *from)
{
	struct kernel_names *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	if (from)
		k->from = *from;
	if (!k->from.modules)
		k->from.modules = "/proc/modules";
	if (!k->from.next_program)
		k->from.next_program = programs_next_id;
	*ret = k;
	return 0;
}

void kernel_names_free(struct kernel_names *k)
{
	if (!k)
		return;
	kallsyms_free(k->now);
	kallsyms_free(k->before);
	free(k);
}

/* ---- modules and programs ---- */

/* The inode of a module's folder: it changes when the module is loaded again, even at the same
 * address. */
static void add_inode(SHA256_CTX *h, const char *name, size_t len)
{
	char path[128];
	struct stat st = {0};

	snprintf(path, sizeof(path), "/sys/module/%.*s", (int)(len < 100 ? len : 100), name);
	if (stat(path, &st))
		st.st_ino = 0;
	SHA256_Update(h, &st.st_ino, sizeof(st.st_ino));
}

/* "name size users dependents state address", without users and dependents, which change while the
 * module stays loaded. */
static void add_module(SHA256_CTX *h, const char *line, size_t len)
{
	const char *end = line + len;

	for (int field = 0; line < end; field++) {
		const char *space = memchr(line, ' ', (size_t)(end - line));
		size_t n = (size_t)((space ? space : end) - line);

		if (!field)
			add_inode(h, line, n);
		if (field != 2 && field != 3)
			SHA256_Update(h, line, n);
		SHA256_Update(h, " ", 1);
		line += n + 1;
	}
	SHA256_Update(h, "\n", 1);
}

/* Hashes /proc/modules, which a kernel without modules does not have. 0 or -errno. */
static int read_modules(const struct kernel_names *k, uint8_t hash[32])
{
	struct buf b = {0};
	SHA256_CTX h;
	int fd = open(k->from.modules, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? (errno == ENOENT ? 0 : -errno) : buf_read_fd(&b, fd, MAX_MODULES);

	if (fd >= 0)
		close(fd);
	SHA256_Init(&h);
	for (size_t at = 0, n; at < b.len; at += n + 1) {
		const char *line = memchr(b.p + at, '\n', b.len - at);

		n = line ? (size_t)(line - b.p) - at : b.len - at;
		add_module(&h, b.p + at, n);
	}
	SHA256_Final(hash, &h);
	buf_fini(&b);
	return r;
}

/* Raises *id to the id of the newest program: ids only grow. 0 or -errno. */
static int newest_program(const struct kernel_names *k, uint32_t *id)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < MAX_PROGRAMS; i++)
		r = k->from.next_program(*id, id);
	return r == -ENOENT ? 0 : r ? r : -E2BIG;
}

/* from: id of a program from which the newest is searched. */
static void read_state(const struct kernel_names *k, struct state *s, uint32_t from)
{
	*s = (struct state){.program = from};
	s->blind = read_modules(k, s->modules) || newest_program(k, &s->program);
}

/* ---- reading ---- */

static void load(struct kernel_names *k)
{
	int r;

	read_state(k, &k->state, 0); /* first: what is loaded during the read counts as new */
	k->read = clock_now();
	r = kallsyms_load(&k->now, k->from.kallsyms);
	if (r) {
		k->now = NULL;
		k->again = k->read + (r == -ENOMEM ? FAILED_NS : HIDDEN_NS);
		log_debug("no symbols of the kernel: %s", strerror(-r));
	}
}

/* Reads the symbols anew. */
static void replace(struct kernel_names *k)
{
	k->programs_changed = false;
	kallsyms_free(k->before);
	k->before = k->now;
	k->now = NULL;
	k->changed[1] = k->changed[0];
	k->changed[0] = clock_now();
	if (kallsyms_drop_text(k->before)) {
		kallsyms_free(k->before);
		k->before = NULL;
	}
	load(k);
}

/* Reads the symbols anew if modules were loaded or unloaded since the last read; notes whether BPF
 * programs were. */
static void check(struct kernel_names *k)
{
	struct state s;
	bool modules;

	k->checked = true;
	read_state(k, &s, k->state.program);
	if (s.blind || k->state.blind)
		modules = clock_now() - k->read >= BLIND_NS;
	else
		modules = memcmp(s.modules, k->state.modules, sizeof(s.modules)) != 0;
	k->programs_changed = !s.blind && !k->state.blind && s.program != k->state.program;
	if (!modules)
		return;
	k->modules = clock_now();
	replace(k);
}

/* Whether the address is of a function of a module that was loaded during all of the profile, so
 * that BPF programs which came and went do not matter: some services load one every few seconds. */
static bool is_settled(const struct kernel_names *k, uint64_t addr)
{
	return k->now && !k->state.blind && k->since > k->modules &&
	       kallsyms_is_inside_module(k->now, addr);
}

bool kernel_names_begin(struct kernel_names *k, uint64_t since)
{
	k->since = since;
	k->checked = k->programs_changed = false;
	if (!k->now && clock_now() >= k->again)
		load(k);
	return k->now;
}

const char *kernel_names_at(struct kernel_names *k, uint64_t addr, const char **module)
{
	const char *name, *old, *old_module;
	uint64_t start;

	*module = "";
	if (!k->now)
		return NULL;
	if (kallsyms_is_text(k->now, addr))
		return kallsyms_lookup(k->now, addr, &start, module);
	if (!k->checked)
		check(k);
	if (is_settled(k, addr))
		return kallsyms_lookup(k->now, addr, &start, module);
	if (k->programs_changed)
		replace(k);
	name = k->now ? kallsyms_lookup(k->now, addr, &start, module) : NULL;
	if (k->since > k->changed[0])
		return name;
	if (k->since <= k->changed[1] || !k->before) {
		*module = "";
		return NULL; /* several changes since: earlier symbols are not known any more */
	}
	/* One change since: the sample may be from before it. */
	old = kallsyms_lookup(k->before, addr, &start, &old_module);
	if (!old)
		return name;
	if (name && (strcmp(name, old) || strcmp(*module, old_module))) {
		*module = "";
		return NULL;
	}
	*module = old_module;
	return old;
}
