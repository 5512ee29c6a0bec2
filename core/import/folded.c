/* SPDX-License-Identifier: Apache-2.0 */
#include "import/internal/folded.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/dict.h"
#include "import/internal/lines.h"

#define LOOK_LINES 16 /* so many lines decide whether a text is folded stacks */

/* A line; base is 0 if it has one number. */
struct entry {
	struct fusee_str stack;
	double value, base;
	bool has_base;
};

struct reader {
	struct builder *b;
	struct lines text;
	struct dict frames;     /* texts of frames */
	struct buf locations;   /* uint32_t: of each text, by its id in frames */
	struct buf stack;       /* uint32_t: of the current line, root first; then reversed */
	double rest, base_rest; /* what rounding has taken from the numbers so far */
	bool has_base;
	uint64_t ignored;
	const char *error;
};

/* ---- lines ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "12" or "12.5". */
static bool read_number(struct fusee_str t, double *ret)
{
	double unit = 1;
	size_t i = 0;

	for (*ret = 0; i < t.len && is_digit(t.p[i]); i++)
		*ret = *ret * 10 + (t.p[i] - '0');
	if (!i)
		return false;
	if (i < t.len && t.p[i] == '.')
		for (i++; i < t.len && is_digit(t.p[i]); i++)
			*ret += (t.p[i] - '0') * (unit /= 10);
	return i == t.len;
}

/* Takes the last word, a number, off the end of t. */
static bool take_number(struct fusee_str *t, double *ret)
{
	size_t at = t->len;

	while (at && t->p[at - 1] != ' ' && t->p[at - 1] != '\t')
		at--;
	if (!at || !read_number((struct fusee_str){t->p + at, t->len - at}, ret))
		return false;
	*t = line_trim((struct fusee_str){t->p, at});
	return true;
}

/* py-spy writes a blank and a number for samples without a frame. */
static bool read_entry(struct entry *e, struct fusee_str line)
{
	struct fusee_str rest = line_trim(line);
	double value;

	*e = (struct entry){.stack = {line.p, (uint64_t)(rest.p + rest.len - line.p)}};
	if (!take_number(&e->stack, &e->value))
		return false;
	rest = e->stack;
	if (take_number(&rest, &value) && rest.len) {
		e->has_base = true;
		e->base = value;
	}
	return true;
}

/* Bytes of text: a packed profile has others in what might be its first line. */
static bool is_text(struct fusee_str line)
{
	for (uint64_t i = 0; i < line.len; i++)
		if ((unsigned char)line.p[i] < ' ' && line.p[i] != '\t')
			return false;
	return true;
}

bool folded_is(const char *text, size_t len)
{
	struct lines l = {text, text + len};
	struct fusee_str line;
	struct entry e;
	bool has_frame = false;
	int n = 0;

	while (n < LOOK_LINES && line_next(&l, &line)) {
		bool is = is_text(line) && read_entry(&e, line);

		if (!is && line_trim(line).len && line.p[0] != '#')
			return false;
		n += is;
		has_frame |= is && e.stack.len;
	}
	return has_frame;
}

/* ---- frames ---- */

/* Where ":12" at the end of t begins; 0: it has none. */
static size_t number_begin(struct fusee_str t, uint32_t *line)
{
	size_t at = t.len;
	double n;

	while (at && is_digit(t.p[at - 1]))
		at--;
	if (at < 2 || t.p[at - 1] != ':' ||
	    !read_number((struct fusee_str){t.p + at, t.len - at}, &n) || n > UINT32_MAX)
		return 0;
	*line = (uint32_t)n;
	return at - 1;
}

/* Takes " (file:12)" or " - file:12" off the end of a frame. */
static void take_source(struct fusee_str *name, struct fusee_str *file, uint32_t *line)
{
	bool closed = name->len && name->p[name->len - 1] == ')';
	const char *before = closed ? " (" : " - ";
	size_t end = name->len - closed, skip = strlen(before), at = end, colon;

	*file = (struct fusee_str){"", 0};
	*line = 0;
	while (at > skip && memcmp(name->p + at - skip, before, skip))
		at--;
	if (at <= skip)
		return;
	colon = number_begin((struct fusee_str){name->p + at, end - at}, line);
	if (!colon)
		return;
	*file = (struct fusee_str){name->p + at, colon};
	*name = line_trim((struct fusee_str){name->p, at - skip});
}

/* Takes "_[k]" off the end of a frame: its letter, or 0. */
static char take_kind(struct fusee_str *name)
{
	const char *end = name->p + name->len;

	if (name->len < 5 || end[-4] != '_' || end[-3] != '[' || end[-1] != ']' ||
	    !strchr("kijw01", end[-2]))
		return 0;
	name->len -= 4;
	return end[-2];
}

static uint32_t add_location(struct reader *r, struct fusee_str name)
{
	struct fusee_location location = {0};
	struct fusee_function function = {0};
	struct fusee_line line = {0};
	struct fusee_str file;

	if (take_kind(&name) == 'k')
		location.frame_type = builder_cstr(r->b, "kernel");
	take_source(&name, &file, &line.line);
	function.name = function.system_name = builder_string(r->b, name.p, name.len);
	function.file = builder_string(r->b, file.p, file.len);
	line.function = builder_function(r->b, &function);
	return builder_location(r->b, &location, &line, 1);
}

/* A text is looked at once; most stacks have frames that others have too. */
static int add_frame(struct reader *r, struct fusee_str text)
{
	uint32_t id = dict_add(&r->frames, text.p, text.len), location;

	if (id == DICT_NONE)
		return -ENOMEM;
	if (r->locations.len / sizeof(location) <= id) {
		location = add_location(r, text);
		if (location == BUILDER_NONE || buf_add(&r->locations, &location, sizeof(location)))
			return -ENOMEM;
	}
	location = ((const uint32_t *)(const void *)r->locations.p)[id];
	return buf_add(&r->stack, &location, sizeof(location));
}

/* ---- stacks ---- */

static void reverse(uint32_t *at, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint32_t other = at[i];

		at[i] = at[n - 1 - i];
		at[n - 1 - i] = other;
	}
}

static int add_stack(struct reader *r, struct fusee_str stack, uint32_t *ret)
{
	const char *at = stack.p, *end = at + stack.len;
	uint32_t *locations;
	size_t n;
	int err = 0;

	buf_reset(&r->stack);
	while (!err && at < end) {
		const char *next = memchr(at, ';', (size_t)(end - at));
		struct fusee_str frame = {at, (size_t)((next ? next : end) - at)};

		frame = line_trim(frame);
		if (frame.len)
			err = add_frame(r, frame);
		at = next ? next + 1 : end;
	}
	locations = (uint32_t *)(void *)r->stack.p;
	n = r->stack.len / sizeof(*locations);
	reverse(locations, n);
	*ret = err ? BUILDER_NONE : builder_stack(r->b, locations, (uint32_t)n);
	return err;
}

/* Takes "[name tid=12];", as async-profiler begins stacks of threads, off a stack. */
static void take_thread(struct fusee_str *stack, struct fusee_label *thread, uint32_t *tid)
{
	const char *end = memchr(stack->p, ';', stack->len);
	size_t len = end ? (size_t)(end - stack->p) : stack->len, at = len - 1;
	double n;

	if (stack->p[0] != '[' || stack->p[at] != ']')
		return;
	while (at && is_digit(stack->p[at - 1]))
		at--;
	if (at < 6 || memcmp(stack->p + at - 5, " tid=", 5) ||
	    !read_number((struct fusee_str){stack->p + at, len - 1 - at}, &n) || n >= UINT32_MAX)
		return;
	*thread = (struct fusee_label){.key = {"thread", 6}, .str = {stack->p + 1, at - 6}};
	*tid = (uint32_t)n;
	*stack = (struct fusee_str){stack->p + len + (end != NULL),
				    stack->len - len - (end != NULL)};
}

/* Numbers with fractions are rounded so that their sum is right. */
static int64_t rounded(double value, double *rest)
{
	double exact = value + *rest, number = rint(exact);

	if (!(number < 0x1p63))
		return INT64_MAX;
	*rest = exact - number;
	return (int64_t)number;
}

static int add_entry(struct reader *r, const struct entry *e)
{
	struct fusee_str all = e->stack;
	struct fusee_label thread = {0};
	uint32_t stack, tid = 0;
	int64_t values[2];
	double skipped;
	int err;

	if (r->has_base)
		take_number(&all, &skipped);
	if (all.len)
		take_thread(&all, &thread, &tid);
	err = add_stack(r, all, &stack);
	if (!err)
		err = import_is_too_large(r->b, &r->error);
	if (err)
		return err;
	values[0] = rounded(e->value, &r->rest);
	values[1] = rounded(e->base, &r->base_rest);
	return builder_sample(r->b, stack, &thread, thread.key.len > 0, 0, tid, values);
}

static bool each_has_base(struct lines text)
{
	struct fusee_str line;
	struct entry e;

	while (line_next(&text, &line))
		if (read_entry(&e, line) && !e.has_base)
			return false;
	return true;
}

static void add_types(struct reader *r)
{
	builder_type(r->b, "samples", "count");
	r->has_base = each_has_base(r->text);
	if (r->has_base)
		builder_type(r->b, "base", "count");
}

/* Location 0 of the texts is that of an empty text. */
static int reader_init(struct reader *r)
{
	const uint32_t none = 0;
	int err = dict_init(&r->frames);

	return err ? err : buf_add(&r->locations, &none, sizeof(none));
}

int folded_read(struct builder *b, const char *text, size_t len, const char **error)
{
	struct reader r = {.b = b, .text = {text, text + len}};
	int err = reader_init(&r);
	struct fusee_str line;
	struct entry e;

	if (!err)
		add_types(&r);
	while (!err && line_next(&r.text, &line)) {
		if (read_entry(&e, line))
			err = add_entry(&r, &e);
		else
			r.ignored += line_trim(line).len > 0;
	}
	if (!err && r.ignored)
		builder_comment(b, "folded stacks: %llu lines were not understood",
				(unsigned long long)r.ignored);
	dict_fini(&r.frames);
	buf_fini(&r.locations);
	buf_fini(&r.stack);
	*error = r.error ? r.error : err ? "no memory" : "";
	return err;
}
