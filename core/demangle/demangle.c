// SPDX-License-Identifier: Apache-2.0
/* Calls libiberty's demanglers and that of D, with limits and a cache. */
#include "demangle/demangle.h"

#include <ctype.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/dict.h"
#include "base/utf8.h"
#include "demangle/internal/dlang.h"

#define MAX_INPUT 8192   /* the demanglers use about 64 bytes of stack for each byte */
#define MAX_OUTPUT 16384 /* a short name can demangle to an unbounded text */
#define MAX_CACHE (16u << 20)

struct demangler {
	struct dict in, out; /* the text of name i of `in` is out[of[i]] */
	uint32_t *of, cap;
	struct dict old_in, old_out; /* the previous cache, whose texts may be in use */
	struct buf text;             /* scratch */
	jmp_buf full;
};

int demangler_new(struct demangler **ret)
{
	struct demangler *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	if (dict_init(&d->in) || dict_init(&d->out)) {
		demangler_free(d);
		return -ENOMEM;
	}
	*ret = d;
	return 0;
}

void demangler_free(struct demangler *d)
{
	if (!d)
		return;
	dict_fini(&d->in);
	dict_fini(&d->out);
	dict_fini(&d->old_in);
	dict_fini(&d->old_out);
	buf_fini(&d->text);
	free(d->of);
	free(d);
}

/* Replaces a full cache by an empty one and frees the cache before it. */
static int make_room(struct demangler *d)
{
	if (d->in.bytes + d->out.bytes < MAX_CACHE)
		return 0;
	dict_fini(&d->old_in);
	dict_fini(&d->old_out);
	d->old_in = d->in;
	d->old_out = d->out;
	d->in = d->out = (struct dict){0};
	if (d->cap)
		memset(d->of, 0, d->cap * sizeof(*d->of));
	return dict_init(&d->in) || dict_init(&d->out) ? -ENOMEM : 0;
}

static void take(const char *piece, size_t len, void *arg)
{
	struct demangler *d = arg;

	if (d->text.len + len > MAX_OUTPUT || buf_add(&d->text, piece, len))
		longjmp(d->full, 1);
}

/* _ZN..17h0123456789abcdefE, perhaps with an LLVM suffix */
static bool is_old_rust(const char *s, size_t len)
{
	const char *end = strstr(s, ".llvm.");
	size_t n = end ? (size_t)(end - s) : len;

	if (n < 24 || strncmp(s, "_ZN", 3) || s[n - 1] != 'E' || strncmp(s + n - 20, "17h", 3))
		return false;
	for (size_t i = n - 17; i < n - 1; i++)
		if (!isxdigit((unsigned char)s[i]))
			return false;
	return true;
}

/* Demangles to d->text. false: not a mangled name. The demanglers with a callback hold nothing but
 * stack, so longjmp() out of them leaks nothing. */
static bool run(struct demangler *d, const char *s, size_t len)
{
	buf_reset(&d->text);
	if (setjmp(d->full))
		return false;
	if (s[0] == '_' && s[1] == 'R')
		return rust_demangle_callback(s, 0, take, d);
	if (is_old_rust(s, len) && rust_demangle_callback(s, 0, take, d))
		return true;
	buf_reset(&d->text);
	if (s[0] == '_' && s[1] == 'D')
		return demangle_d(s, take, d);
	if ((s[0] == '_' && s[1] == 'Z') || !strncmp(s, "_GLOBAL_", 8))
		return cplus_demangle_v3_callback(s, DMGL_ANSI, take, d);
	return false;
}

/* The same for a PLT entry's name, "NAME@plt": demangles NAME and keeps the suffix. */
static bool run_plt(struct demangler *d, const char *s, size_t len)
{
	char name[MAX_INPUT];
	size_t n = len > 4 ? len - 4 : 0;

	if (!n || n >= sizeof(name) || strcmp(s + n, "@plt") != 0)
		return false;
	memcpy(name, s, n);
	name[n] = '\0';
	return run(d, name, n) && d->text.len && !buf_str(&d->text, "@plt");
}

/* Length without clone suffixes: .cold, .part.0, .isra.0, .constprop.0, .lto_priv.0, .llvm.123. */
static size_t without_clone(const char *s, size_t len)
{
	static const char *const suffixes[] = {"cold",        "part", "isra",       "constprop",
					       "lto_priv",    "llvm", "localalias", "__uniq",
					       "local_alias", "warm", "unlikely"};

	for (;;) {
		size_t n = len, word;
		bool known = false;

		while (n && isdigit((unsigned char)s[n - 1]))
			n--;
		if (n < len && n && s[n - 1] == '.')
			n--;
		else
			n = len;
		for (word = n; word && s[word - 1] != '.'; word--)
			;
		if (word < 2)
			return len;
		for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
			known |= strlen(suffixes[i]) == n - word &&
				 !memcmp(suffixes[i], s + word, n - word);
		if (!known)
			return len;
		len = word - 1;
	}
}

static const char *keep(struct demangler *d, uint32_t id, const char *fallback)
{
	uint32_t text;

	/* with the NUL, as it is returned as a string */
	if (buf_add(&d->text, "", 1) ||
	    (text = dict_add(&d->out, d->text.p, d->text.len)) == DICT_NONE)
		return fallback;
	if (id >= d->cap) {
		uint32_t cap = (id + 1) * 2;
		uint32_t *p = realloc(d->of, cap * sizeof(*p));

		if (!p)
			return fallback;
		memset(p + d->cap, 0, (cap - d->cap) * sizeof(*p));
		d->of = p;
		d->cap = cap;
	}
	d->of[id] = text;
	return d->out.entries[text].key;
}

static const char *make(struct demangler *d, const char *s, size_t len, bool clean_only)
{
	struct buf cleaned = {0};
	const char *from = s;
	size_t n = len;

	if (!clean_only && len <= MAX_INPUT &&
	    (run_plt(d, s, len) || (run(d, s, len) && d->text.len))) {
		from = d->text.p;
		n = d->text.len;
	} else if (!clean_only) {
		n = without_clone(s, len);
	}
	if (utf8_clean_printable(&cleaned, from, n)) {
		buf_fini(&cleaned);
		return "";
	}
	buf_fini(&d->text);
	d->text = cleaned;
	return NULL;
}

/* Looks s up in the cache or makes its text. */
static const char *cached(struct demangler *d, const char *s, size_t len, bool clean_only)
{
	uint32_t before, id;

	if (make_room(d))
		return "";
	before = d->in.n;
	/* the first byte of a key is the operation */
	buf_reset(&d->text);
	if (buf_add(&d->text, clean_only ? "c" : "d", 1) || buf_add(&d->text, s, len))
		return "";
	id = dict_add(&d->in, d->text.p, d->text.len);
	if (id == DICT_NONE)
		return "";
	if (id < before && id < d->cap && d->of[id])
		return d->out.entries[d->of[id]].key;
	return make(d, s, len, clean_only) ? "" : keep(d, id, "");
}

const char *demangle(struct demangler *d, const char *s)
{
	size_t len = strlen(s);

	/* most C names: not mangled, no suffix, printable */
	if (!(s[0] == '_' && s[1] && strchr("ZRGD", s[1])) && !memchr(s, '.', len) &&
	    utf8_printable(s, len))
		return s;
	return cached(d, s, len, false);
}

const char *demangle_clean(struct demangler *d, const char *s)
{
	size_t len = strlen(s);

	return utf8_printable(s, len) ? s : cached(d, s, len, true);
}
