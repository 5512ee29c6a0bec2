// SPDX-License-Identifier: Apache-2.0
#include "lua/internal/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"

#define HOOK_EVERY 1000
#define COLLECT_NS 1000000u      /* of CPU time: a call of script_collect() */
#define COLLECT_FROM (64u << 10) /* bytes that may be garbage, in addition to a quarter */

struct script *script_of(lua_State *L)
{
	return *(struct script **)lua_getextraspace(L);
}

/* ---- memory ---- */

/* The lua_Alloc of a script. */
static void *allocate(void *arg, void *old, size_t was, size_t size)
{
	struct script *s = arg;
	void *p;

	if (!old)
		was = 0; /* Lua passes the kind of object instead of a size */
	fusee_assert(was <= s->used);
	if (!size) {
		free(old);
		s->used -= was;
		return NULL;
	}
	if (size > was && s->used - was + size > s->limit) {
		s->refused_memory = true;
		if (s->L && !*s->near) /* the hook was not called yet */
			script_where(s->L, s->near);
		return NULL;
	}
	p = realloc(old, size);
	if (!p && size <= was) /* Lua requires that this succeeds */
		return old;
	if (p)
		s->used = s->used - was + size;
	return p;
}

/* ---- time ---- */

/* After the deadline the hook is called at every instruction and raises an error each time, so that
 * a pcall that catches one error is followed by the next. A coroutine inherits the hook of its
 * creator. */
static void on_count(lua_State *L, lua_Debug *ar)
{
	struct script *s = script_of(L);

	/* the first error is in the loop that ran too long; later errors are in code that caught
	 * it */
	if (!s->expired && lua_getinfo(L, "Sl", ar) && ar->currentline > 0)
		snprintf(s->near, sizeof(s->near), "%s:%d", ar->short_src, ar->currentline);
	if (!s->expired && clock_ns(CLOCK_THREAD_CPUTIME_ID) <= s->deadline_ns) {
		if (lua_gethookcount(L) != HOOK_EVERY)
			lua_sethook(L, on_count, LUA_MASKCOUNT, HOOK_EVERY);
		return;
	}
	s->expired = true;
	lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
	lua_pushfstring(L, "%s: runs longer than %d ms", s->near, (int)(s->allowed_ns / 1000000));
	lua_error(L);
}

/* ---- places and errors ---- */

void script_where(lua_State *L, char where[SCRIPT_WHERE])
{
	lua_Debug ar;

	for (int level = 0; lua_getstack(L, level, &ar); level++)
		if (lua_getinfo(L, "Sl", &ar) && ar.currentline > 0) {
			snprintf(where, SCRIPT_WHERE, "%s:%d", ar.short_src, ar.currentline);
			return;
		}
	snprintf(where, SCRIPT_WHERE, "%s", script_of(L)->name);
}

int script_error(lua_State *L, const char *format, ...)
{
	char where[SCRIPT_WHERE], text[1024];
	va_list ap;

	script_where(L, where);
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	lua_pushfstring(L, "%s: %s", where, text);
	return lua_error(L);
}

static int to_text(lua_State *L)
{
	if (!luaL_callmeta(L, 1, "__tostring") || lua_type(L, -1) != LUA_TSTRING)
		lua_pushfstring(L, "%s: the error is a table, not a text", script_of(L)->name);
	return 1;
}

/* The script's memory was refused: Lua's own error, or that of a luaL_Buffer. */
static bool is_memory_error(const struct script *s, int status)
{
	const char *text = lua_tostring(s->L, -1);

	return s->refused_memory &&
	       (status == LUA_ERRMEM || (text && strstr(text, "not enough memory")));
}

/* The sentence about the error on top of the stack, malloc'ed. */
static char *error_text(struct script *s, int status)
{
	char *text = NULL;
	int r;

	if (s->expired)
		r = asprintf(&text, "%s: runs longer than %u ms of CPU time",
			     *s->near ? s->near : s->name, (unsigned int)(s->allowed_ns / 1000000));
	else if (is_memory_error(s, status))
		r = asprintf(&text, "%s: needs more than %zu MiB (near %s)", s->name,
			     s->limit >> 20, *s->near ? s->near : s->name);
	else if (lua_type(s->L, -1) == LUA_TSTRING)
		r = asprintf(&text, "%s", lua_tostring(s->L, -1));
	else
		r = asprintf(&text, "%s: the error is a %s, not a text", s->name,
			     luaL_typename(s->L, -1));
	return r < 0 ? NULL : text;
}

static int start(struct script *s, lua_CFunction fn, void *ud, uint64_t ns)
{
	s->allowed_ns = ns;
	s->deadline_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
	s->expired = s->refused_memory = false;
	*s->near = '\0';
	lua_sethook(s->L, on_count, LUA_MASKCOUNT, HOOK_EVERY);
	lua_settop(s->L, 0);
	lua_pushcfunction(s->L, fn);
	lua_pushlightuserdata(s->L, ud);
	return lua_pcall(s->L, 1, LUA_MULTRET, 0);
}

int script_enter(struct script *s, lua_CFunction fn, void *ud, uint64_t ns, int *n, char **text)
{
	int status = start(s, fn, ud, ns);

	*text = NULL;
	/* an error object is converted by its __tostring, which is code of the script as well */
	if (status == LUA_ERRRUN && !s->expired && lua_istable(s->L, -1)) {
		lua_pushcfunction(s->L, to_text);
		lua_insert(s->L, -2);
		status = lua_pcall(s->L, 1, 1, 0);
		status = status ? status : LUA_ERRRUN;
	}
	/* the deadline counts even if the script caught the error */
	if (status || s->expired) {
		*text = error_text(s, status);
		lua_settop(s->L, 0);
		return *text && (status != LUA_ERRMEM || s->refused_memory) ? -EINVAL : -ENOMEM;
	}
	*n = lua_gettop(s->L);
	return 0;
}

void script_collect(struct script *s)
{
	uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + COLLECT_NS;

	if (!s->cycles && s->used < s->kept + s->kept / 4 + COLLECT_FROM)
		return;
	if (!s->cycles)
		s->cycles = 2; /* the first cycle may have marked objects that are garbage by now */
	while (s->cycles && clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		s->cycles -= lua_gc(s->L, LUA_GCSTEP, 0) != 0; /* runs no code of the script */
	if (!s->cycles)
		s->kept = s->used;
}

char *script_sentence(const char *where, const char *what, const char *text)
{
	const char *colon = strchr(text, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
	char *ret;
	int r;

	if (digits && !strncmp(colon + 1 + digits, ": ", 2)) {
		const char *rest = colon + 3 + digits;

		r = asprintf(&ret, "%.*s%s: %s", (int)(rest - text), text, what, rest);
	} else {
		r = asprintf(&ret, "%s: %s: %s", where, what, text);
	}
	return r < 0 ? NULL : ret;
}

/* ---- files ---- */

/* Reads up to size bytes. The number of bytes or -errno. */
static int read_all(int fd, char *at, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t r = read(fd, at + done, size - done);

		if (r < 0 && errno != EINTR)
			return -errno;
		if (!r)
			break;
		done += r > 0 ? (size_t)r : 0;
	}
	return (int)done;
}

/* A descriptor and *size of a regular file of at most SCRIPT_MAX_FILE bytes, or -errno. */
static int open_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		r = -errno;
	else if (S_ISDIR(st.st_mode))
		r = -EISDIR;
	else if (!S_ISREG(st.st_mode))
		r = -EINVAL;
	else if (st.st_size > SCRIPT_MAX_FILE)
		r = -EFBIG;
	if (r) {
		close(fd);
		return r;
	}
	*size = (size_t)st.st_size;
	return fd;
}

void script_push_file(lua_State *L, const char *path)
{
	size_t size = 0;
	int fd, n;
	char *at;

	/* allocated before the file is opened, because this may raise */
	at = lua_newuserdatauv(L, SCRIPT_MAX_FILE, 0);
	fd = open_file(path, &size);
	n = fd < 0 ? fd : read_all(fd, at, size);
	if (fd >= 0)
		close(fd);
	if (n == -EFBIG)
		script_error(L, "cannot read '%s': it has more than 1 MiB", path);
	else if (n == -EINVAL)
		script_error(L, "cannot read '%s': it is not a regular file", path);
	else if (n < 0)
		script_error(L, "cannot read '%s': %s", path, strerror(-n));
	lua_pushlstring(L, at, (size_t)(n < 0 ? 0 : n));
	lua_remove(L, -2);
}

void script_load_file(lua_State *L, const char *path, const char *name)
{
	const char *bytes;
	size_t len;

	script_push_file(L, path);
	bytes = lua_tolstring(L, -1, &len);
	if (len && *bytes == '#') { /* "#!/usr/bin/env .." */
		const char *line = memchr(bytes, '\n', len);

		len = line ? len - (size_t)(line - bytes) : 0;
		bytes = line ? line : "";
	}
	lua_pushfstring(L, "@%s", name);
	if (len && *bytes == *LUA_SIGNATURE)
		script_error(L, "'%s' is compiled Lua: only text is read", name);
	if (luaL_loadbufferx(L, bytes, len, lua_tostring(L, -1), "t"))
		lua_error(L);
	lua_insert(L, -3);
	lua_pop(L, 2);
}

/* ---- init and fini ---- */

static int panic(lua_State *L)
{
	log_error("%s: Lua raised an error outside of script_enter()", script_of(L)->name);
	return 0;
}

int script_init(struct script *s, const char *path)
{
	const char *slash = strrchr(path, '/');

	*s = (struct script){.limit = SCRIPT_MEMORY};
	/* Lua itself would shorten a longer name from its beginning */
	if (strlen(path) >= LUA_IDSIZE - 1 && slash)
		snprintf(s->name, LUA_IDSIZE, "%s", slash + 1);
	else
		snprintf(s->name, LUA_IDSIZE, "%s", path);
	s->path = strdup(path);
	s->dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	if (s->path && s->dir && !dict_init(&s->texts))
		s->L = lua_newstate(allocate, s);
	if (!s->L) {
		script_fini(s);
		return -ENOMEM;
	}
	*(struct script **)lua_getextraspace(s->L) = s;
	lua_atpanic(s->L, panic);
	return 0;
}

void script_fini(struct script *s)
{
	if (s->L)
		lua_close(s->L);
	dict_fini(&s->texts);
	free(s->path);
	free(s->dir);
	*s = (struct script){0};
}
