/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include <fusee/codemap.h>

static bool begins(const char *p, uint64_t len, const char *with)
{
	return len >= strlen(with) && !memcmp(p, with, strlen(with));
}

enum fusee_code_kind fusee_codemap_kind(struct fusee_str name)
{
	if (begins(name.p, name.len, "py::"))
		return FUSEE_CODE_PYTHON;
	/* $module:function/1; a dump has no $, and begins with what all modules share */
	if ((begins(name.p, name.len, "$") && memchr(name.p, ':', name.len)) ||
	    begins(name.p, name.len, "global::"))
		return FUSEE_CODE_ERLANG;
	return FUSEE_CODE_PLAIN;
}

/* The last ':' of p, or NULL. */
static const char *last_colon(const char *p, uint64_t len)
{
	return memrchr(p, ':', len);
}

/* Removes ":12" from the end of *text and returns the number. 0: there is none. */
static uint32_t remove_number(struct fusee_str *text)
{
	const char *colon = last_colon(text->p, text->len), *end = text->p + text->len;
	uint32_t n = 0;

	if (!colon || colon + 1 == end || end - colon > 9)
		return 0;
	for (const char *p = colon + 1; p < end; p++) {
		if (*p < '0' || *p > '9')
			return 0;
		n = n * 10 + (uint32_t)(*p - '0');
	}
	text->len = (uint64_t)(colon - text->p);
	return n;
}

/* CPython: "py::qualified.name:/path/of/file.py" */
static void split_python(const char *p, uint32_t len, struct fusee_source_frame *f)
{
	const char *colon = memchr(p, ':', len);

	f->function = (struct fusee_str){p, len};
	if (!colon || colon == p)
		return;
	f->function.len = (uint64_t)(colon - p);
	f->file = (struct fusee_str){colon + 1, len - f->function.len - 1};
}

/*
 * V8: "JS:*name /path/of/file.js:12:5", the sign before the name being how the function was
 * compiled: ~ interpreted, ^ baseline, + mid-tier, * optimized. A name may be empty, and paths may
 * have blanks: the file begins behind the first blank.
 */
static void split_v8(const char *p, uint32_t len, struct fusee_source_frame *f)
{
	const char *blank;

	if (len && strchr("~^+*", *p)) {
		p++;
		len--;
	}
	blank = memchr(p, ' ', len);
	f->function = (struct fusee_str){p, len};
	if (!blank)
		return;
	f->function.len = (uint64_t)(blank - p);
	f->file = (struct fusee_str){blank + 1, len - f->function.len - 1};
	f->column = remove_number(&f->file);
	f->start_line = remove_number(&f->file);
	if (!f->start_line) /* a single number is the line */
		f->start_line = f->column;
	f->column = 0; /* of the function's beginning, not of what runs */
	if (!f->function.len)
		f->function = (struct fusee_str){"(anonymous)", 11};
}

void fusee_codemap_split(struct fusee_str text, struct fusee_source_frame *f)
{
	const char *name = text.p;
	uint32_t len = (uint32_t)text.len;
	static const char *const v8[] = {
		"JS:", "LazyCompile:", "Function:", "Script:", "Eval:", "Callback:"};

	f->system_name = f->function = (struct fusee_str){name, len};
	if (begins(name, len, "py::")) {
		split_python(name + 4, len - 4, f);
		return;
	}
	for (size_t i = 0; i < sizeof(v8) / sizeof(*v8); i++) {
		uint32_t n = (uint32_t)strlen(v8[i]);

		if (begins(name, len, v8[i])) {
			split_v8(name + n, len - n, f);
			return;
		}
	}
	if (begins(name, len, "$") && memchr(name, ':', len)) /* Erlang's $module:function/1 */
		f->function = (struct fusee_str){name + 1, len - 1};
}
