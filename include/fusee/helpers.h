/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/helpers.h - shorthands for the sources of plugins. Optional: nothing here is part of the
 * ABI, everything is compiled into the plugin, and a plugin may do all of it by hand.
 *
 * The header needs libc and <fusee/plugin.h>, and compiles as C11 and as C++17 with the extensions
 * of gcc and clang. Functions may be called from any thread unless they say otherwise.
 */
#ifndef FUSEE_HELPERS_H
#define FUSEE_HELPERS_H

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <fusee/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the instance ---- */

/*
 * An instance and the host that it calls. Make it the first member of ctx, and fusee_self_init()
 * can be the plugin's init(), or the first call of it:
 *
 *	struct lines {
 *		struct fusee_self self;
 *		const char *path;
 *	};
 */
struct fusee_self {
	struct fusee_instance *in;
	const struct fusee_host *host;
};

/* An init() that keeps its arguments in the struct fusee_self at the start of ctx. Returns 0. */
static inline int fusee_self_init(void *ctx, struct fusee_instance *in,
				  const struct fusee_host *host)
{
	struct fusee_self *self = (struct fusee_self *)ctx;

	self->in = in;
	self->host = host;
	return 0;
}

#define FUSEE_SENTENCE                                                             \
	4608 /* bytes of a formatted sentence with its NUL; longer text is dropped \
	      */

/*
 * Formats a sentence, hands it to host->fail() and returns err, which is a -errno:
 *
 *	return fusee_fail(&s->self, -errno, "cannot open '%s': %s", s->path, strerror(errno));
 *
 * Only within a callback, as host->fail() itself.
 */
__attribute__((format(printf, 3, 4))) static inline int fusee_fail(const struct fusee_self *self,
								   int err, const char *format, ...)
{
	char text[FUSEE_SENTENCE];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return self->host->fail(self->in, err, text);
}

/* Formats a line and hands it to host->log(). level: enum fusee_level. */
__attribute__((format(printf, 3, 4))) static inline void
fusee_log(const struct fusee_self *self, int level, const char *format, ...)
{
	char text[FUSEE_SENTENCE];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	self->host->log(self->in, level, text);
}

/* ---- text and labels ---- */

/* Initializers: a string literal as struct fusee_str, an array as struct fusee_table. */
#define FUSEE_TEXT(literal)                     \
	{                                       \
		literal "", sizeof(literal) - 1 \
	}
#define FUSEE_TABLE(array)                                                                \
	{                                                                                 \
		array, (uint32_t)(sizeof(array) / sizeof((array)[0])), sizeof((array)[0]) \
	}

/* A terminated string as struct fusee_str; the bytes stay the caller's. */
static inline struct fusee_str fusee_text(const char *text)
{
	struct fusee_str s = {text, strlen(text)};

	return s;
}

/* The length of a path that was read from /proc/PID/exe, without the " (deleted)" that the kernel
 * appends to the path of an unlinked file. */
static inline size_t fusee_path_length(const char *path, size_t n)
{
	static const char deleted[] = " (deleted)";
	const size_t len = sizeof(deleted) - 1;

	return n > len && !memcmp(path + n - len, deleted, len) ? n - len : n;
}

/* 1 if the bytes of s are those of the terminated `text`, else 0. */
static inline int fusee_text_is(struct fusee_str s, const char *text)
{
	return s.len == strlen(text) && (!s.len || !memcmp(s.p, text, s.len));
}

/* 1 if both have the same bytes, else 0. */
static inline int fusee_text_same(struct fusee_str a, struct fusee_str b)
{
	return a.len == b.len && (!a.len || !memcmp(a.p, b.p, a.len));
}

/* Copies as much of the text as there is room for, terminated. */
static inline void fusee_text_copy(char *to, size_t size, struct fusee_str text)
{
	size_t n = text.len < size ? text.len : size - 1;

	if (n)
		memcpy(to, text.p, n);
	to[n] = '\0';
}

/* The value of a hexadecimal digit, -1: it is none. */
static inline int fusee_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Copies as much of the text as there is room for, terminated; two hexadecimal digits behind `mark`
 * ("%", "\\x") become the byte that they name. The length. */
static inline size_t fusee_unescape(char *to, size_t size, struct fusee_str from, const char *mark)
{
	size_t n = 0, before = strlen(mark);

	for (uint64_t i = 0; i < from.len && n + 1 < size; i++) {
		const char *digits = from.p + i + before;

		if (from.len - i >= before + 2 && !memcmp(from.p + i, mark, before) &&
		    fusee_hex_digit(digits[0]) >= 0 && fusee_hex_digit(digits[1]) >= 0) {
			to[n++] = (char)(fusee_hex_digit(digits[0]) << 4 |
					 fusee_hex_digit(digits[1]));
			i += before + 1;
		} else {
			to[n++] = from.p[i];
		}
	}
	to[n] = '\0';
	return n;
}

/* The bytes of the UTF-8 character at p, of len bytes at least 1; 0: it is none (RFC 3629). *point:
 * its number. */
static inline unsigned int fusee_character(const char *p, uint64_t len, uint32_t *point)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const uint8_t *s = (const uint8_t *)p;
	unsigned int n = !(*s & 0x80)    ? 1
			 : *s >> 5 == 6  ? 2
			 : *s >> 4 == 14 ? 3
			 : *s >> 3 == 30 ? 4
					 : 0;

	if (!n || n > len)
		return 0;
	*point = n == 1 ? *s : *s & (0x7fu >> n);
	for (unsigned int i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*point = *point << 6 | (s[i] & 0x3f);
	}
	return *point < least[n] || *point > 0x10ffff || *point >> 11 == 0x1b ? 0 : n;
}

/* The beginning of a text of UTF-8, of so many bytes at most: it ends before a character, not
 * within one. */
static inline struct fusee_str fusee_text_shortened(struct fusee_str s, uint64_t most)
{
	if (s.len <= most)
		return s;
	s.len = most;
	while (s.len && ((uint8_t)s.p[s.len] & 0xc0) == 0x80)
		s.len--;
	return s;
}

/* A hash of a terminated string: FNV-1a. */
static inline uint32_t fusee_text_hash(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 16777619u;
	return h;
}

/* 1 if one of these globs (struct fusee_str, as an option's list) matches the text, else 0. */
static inline int fusee_text_matches(struct fusee_table globs, const char *text)
{
	for (uint32_t i = 0; i < globs.n; i++)
		if (!fnmatch(FUSEE_AT(struct fusee_str, globs, i)->p, text, 0))
			return 1;
	return 0;
}

#define FUSEE_LABEL_NAME 129 /* bytes of a label's name with its NUL */

/* A label's name made of any key: what is not a letter, a digit or '_' becomes '_'. */
static inline void fusee_label_name(char name[FUSEE_LABEL_NAME], const char *key)
{
	size_t n = 0;

	if (*key >= '0' && *key <= '9')
		name[n++] = '_';
	for (; *key && n < FUSEE_LABEL_NAME - 1; key++)
		name[n++] = (*key >= '0' && *key <= '9') || (*key >= 'A' && *key <= 'Z') ||
					    (*key >= 'a' && *key <= 'z')
				    ? *key
				    : '_';
	name[n] = '\0';
}

/* A text label of two terminated strings; the bytes stay the caller's. */
static inline struct fusee_label fusee_text_label(const char *key, const char *text)
{
	struct fusee_label l = {fusee_text(key), fusee_text(text), {NULL, 0}, 0};

	return l;
}

#define FUSEE_UUID 37 /* bytes of an UUID's text with its NUL */

/* A profile's id as an UUID. */
static inline void fusee_uuid(char text[FUSEE_UUID], const uint8_t id[16])
{
	int n = 0;

	for (int i = 0; i < 16; i++)
		n += snprintf(text + n, (size_t)(FUSEE_UUID - n),
			      i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", id[i]);
}

/* Adds a text label to a table of an array, unless the text is NULL or empty or the array has no
 * room for more than `most`. The bytes stay the caller's. */
static inline void fusee_add_label(struct fusee_table *labels, uint32_t most, const char *key,
				   const char *text)
{
	if (text && *text && labels->n < most)
		((struct fusee_label *)(uintptr_t)labels->at)[labels->n++] = fusee_text_label(key,
											      text);
}

/* Adds n to a counter of this instance: without labels, or with a text label. n == 0 does not make
 * the counter appear. In the worker process, whose host has no counters, nothing is counted. */
static inline void fusee_count(const struct fusee_self *self, const char *metric, uint64_t n)
{
	if (n && self->host->count)
		self->host->count(self->in, metric, NULL, 0, n);
}

static inline void fusee_count_by(const struct fusee_self *self, const char *metric,
				  const char *key, const char *text, uint64_t n)
{
	struct fusee_label l = fusee_text_label(key, text);

	if (n && self->host->count)
		self->host->count(self->in, metric, &l, 1, n);
}

/* ---- tables ---- */

/* A loop over a struct fusee_table by its stride; `item` is a const T *. */
#define FUSEE_FOR_EACH(T, item, table)                                               \
	for (const T *item = (const T *)(table).at,                                  \
		     *item##_end = (table).n ? FUSEE_AT(T, table, (table).n) : item; \
	     item != item##_end; item = (const T *)((const char *)item + (table).stride))

/* The label `key` of a table of struct fusee_label, such as profile->resource. NULL: the table has
 * no label of this name with a text that is not empty. */
static inline const struct fusee_label *fusee_find_label(struct fusee_table labels, const char *key)
{
	FUSEE_FOR_EACH (struct fusee_label, l, labels) {
		if (fusee_text_is(l->key, key))
			return l->str.len ? l : NULL;
	}
	return NULL;
}

/* ---- structs that begin with their size ---- */

/* An initializer that sets the size and the members that are named:
 *	struct fusee_claim run = FUSEE_SIZED(struct fusee_claim, .flags = FUSEE_CLAIM_STEP);
 */
#define FUSEE_SIZED(T, ...)                    \
	{                                      \
		.size = sizeof(T), __VA_ARGS__ \
	}

/* The section `name` of a file, in inspect() only. 0: *s is filled and has bytes; -ENOENT: the file
 * has no such section, or one without bytes; else what host->file_section() returned. */
static inline int fusee_file_section(const struct fusee_unwinder_host *host, uint64_t file,
				     const char *name, struct fusee_section *s)
{
	int err;

	memset(s, 0, sizeof(*s));
	s->size = sizeof(*s);
	err = host->file_section(file, name, s);
	return err ? err : s->bytes.p ? 0 : -ENOENT;
}

/* ---- what a file is ---- */

/* max: bytes at text that may be read. */
static inline int fusee_begins_with_any(const char *text, uint64_t max,
					const char *const *beginnings)
{
	for (; *beginnings; beginnings++)
		if (max > strlen(*beginnings) && !memcmp(text, *beginnings, strlen(*beginnings)))
			return 1;
	return 0;
}

/* A symbol of a 64-bit ELF file. FROZEN */
struct fusee_elf_symbol {
	uint32_t name; /* its place in .dynstr */
	uint8_t info, other;
	uint16_t section; /* 0: another file has it */
	uint64_t value, size;
};

/* Of the functions that the file exports, do nine in ten have names with one of these beginnings
 * (NULL ends them)? Then the file is that library, or a program that is nothing else; a program
 * that embeds it exports functions of its own. In inspect() only, for 64-bit files. */
static inline int fusee_exports_mostly(const struct fusee_unwinder_host *host, uint64_t file,
				       const char *const *beginnings)
{
	struct fusee_section symbols, names;
	struct fusee_elf_symbol s;
	uint64_t all = 0, similar = 0;

	if (fusee_file_section(host, file, ".dynsym", &symbols) ||
	    fusee_file_section(host, file, ".dynstr", &names))
		return 0;
	for (uint64_t at = 0; symbols.bytes.len - at >= sizeof(s); at += sizeof(s)) {
		memcpy(&s, symbols.bytes.p + at, sizeof(s));
		if (!s.section || (s.info & 15) != 2 || s.name >= names.bytes.len)
			continue; /* not its own, or no function */
		all++;
		if (fusee_begins_with_any(names.bytes.p + s.name, names.bytes.len - s.name,
					  beginnings))
			similar++;
	}
	return all && similar * 10 >= all * 9;
}

/* ---- options ---- */

/*
 * Entries of an option table. An option is called as the field of ctx that it fills; the compiler
 * refuses a field of another C type than the option's. `def` is the default as text, as a script
 * would say it; NULL makes the option required. `doc` is one sentence. Numbers are in the unit of
 * the field: bytes, nanoseconds, 1/10,000 of a percent. min == max == 0: no limits.
 *
 *	static const struct fusee_option options[] = {
 *		FUSEE_OPTION_STRING(struct lines, path, NULL, "The file to append to."),
 *		FUSEE_OPTION_DURATION(struct lines, every, "5s", FUSEE_SECOND, FUSEE_HOUR,
 *				      "How often to look."),
 *	};
 *	FUSEE_PLUGIN(.., .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct lines), ..);
 */
#define FUSEE_OPTION_BOOL(ctx, field, def, doc) \
	FUSEE_OPTION(ctx, field, uint8_t, FUSEE_BOOL, def, doc, 0, 0, NULL)
#define FUSEE_OPTION_INT(ctx, field, def, min, max, doc) \
	FUSEE_OPTION(ctx, field, int64_t, FUSEE_INT, def, doc, min, max, NULL)
#define FUSEE_OPTION_PERCENT(ctx, field, def, min, max, doc) \
	FUSEE_OPTION(ctx, field, int64_t, FUSEE_PERCENT, def, doc, min, max, NULL)
#define FUSEE_OPTION_SIZE(ctx, field, def, min, max, doc) \
	FUSEE_OPTION(ctx, field, uint64_t, FUSEE_SIZE, def, doc, min, max, NULL)
#define FUSEE_OPTION_DURATION(ctx, field, def, min, max, doc) \
	FUSEE_OPTION(ctx, field, uint64_t, FUSEE_DURATION, def, doc, min, max, NULL)
#define FUSEE_OPTION_STRING(ctx, field, def, doc) \
	FUSEE_OPTION(ctx, field, const char *, FUSEE_STRING, def, doc, 0, 0, NULL)
#define FUSEE_OPTION_SECRET(ctx, field, def, doc) \
	FUSEE_OPTION(ctx, field, const char *, FUSEE_SECRET, def, doc, 0, 0, NULL)
/* choices: an array of texts that ends with NULL; the field becomes an index into it. */
#define FUSEE_OPTION_ENUM(ctx, field, def, choices, doc) \
	FUSEE_OPTION(ctx, field, int64_t, FUSEE_ENUM, def, doc, 0, 0, choices)
#define FUSEE_OPTION_LIST(ctx, field, def, doc) \
	FUSEE_OPTION(ctx, field, struct fusee_table, FUSEE_LIST, def, doc, 0, 0, NULL)
#define FUSEE_OPTION_MAP(ctx, field, def, doc) \
	FUSEE_OPTION(ctx, field, struct fusee_table, FUSEE_MAP, def, doc, 0, 0, NULL)

/* Any of them. For a field that is no T the size of an array is negative, which does not compile.
 */
#define FUSEE_OPTION(ctx, field, T, kind, text, sentence, low, high, texts)               \
	{                                                                                 \
		.name = #field, .def = (text), .doc = (sentence), .type = (kind),         \
		.offset = (uint32_t)(offsetof(ctx, field) +                               \
				     0 * sizeof(char[FUSEE_IS(ctx, field, T) ? 1 : -1])), \
		.min = (low), .max = (high), .choices = (texts),                          \
	}
#ifdef __cplusplus
#define FUSEE_IS(ctx, field, T) 1 /* C++ has no such builtin */
#else
#define FUSEE_IS(ctx, field, T) __builtin_types_compatible_p(__typeof__(((ctx *)0)->field), T)
#endif

/* ---- time ---- */

#define FUSEE_SECOND 1000000000ll /* ns */
#define FUSEE_MINUTE (60 * FUSEE_SECOND)
#define FUSEE_HOUR (60 * FUSEE_MINUTE)

/* What a clock says, ns: CLOCK_MONOTONIC, CLOCK_REALTIME. */
static inline uint64_t fusee_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#ifdef __cplusplus
}
#endif
#endif
