/* SPDX-License-Identifier: Apache-2.0 */
#include "import/internal/perf_script.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "import/internal/lines.h"

#define MAX_EVENTS 16u
#define MAX_TOKENS 64u
#define KERNEL_ADDRESS 0xffff800000000000ull /* x86-64: addresses from here on are the kernel's */

/* The first line of a sample. */
struct head {
	struct fusee_str comm, event;
	struct fusee_str rest; /* what follows the event: a frame, or the fields of a tracepoint */
	uint32_t pid, tid;
	uint64_t time_ns, period;
	bool has_time, has_period;
};

struct frame {
	uint64_t address;
	struct fusee_str symbol, dso;
	bool inlined;
};

struct event {
	struct fusee_str name;
	uint32_t type; /* the value type of its periods; 0: its samples have none */
	bool without_period;
};

struct reader {
	struct builder *b;
	struct lines text;
	struct event events[MAX_EVENTS];
	uint32_t nevents, ntypes;
	struct buf locations;  /* uint32_t: of the current sample, leaf first */
	struct buf lines;      /* struct fusee_line: inlined into the next frame */
	struct fusee_str comm; /* of the current sample */
	uint32_t main;         /* mapping of the program; 0: not found yet */
	uint64_t first_ns, last_ns, ignored;
	const char *error;
};

/* ---- text ---- */

static bool ends_with(struct fusee_str t, const char *end)
{
	size_t len = strlen(end);

	return t.len >= len && !memcmp(t.p + t.len - len, end, len);
}

/* Reads the digits at the start of t. How many; 0: none, or a number above 64 bits. */
static size_t number(struct fusee_str t, unsigned base, uint64_t *ret)
{
	size_t n = 0;

	for (*ret = 0; n < t.len; n++) {
		int c = tolower((unsigned char)t.p[n]);
		unsigned digit = isdigit(c) ? (unsigned)(c - '0')
				 : c >= 'a' ? (unsigned)(c - 'a' + 10)
					    : 99;

		if (digit >= base)
			break;
		if (__builtin_mul_overflow(*ret, base, ret) ||
		    __builtin_add_overflow(*ret, digit, ret))
			return 0;
	}
	return n;
}

static bool is_number(struct fusee_str t, uint64_t *ret)
{
	return t.len && number(t, 10, ret) == t.len;
}

/* "1375.116664:", seconds and 1 to 9 digits behind the point. */
static bool is_time(struct fusee_str t, uint64_t *ns)
{
	uint64_t seconds, rest;
	size_t n = number(t, 10, &seconds), digits;

	if (!n || n + 2 >= t.len || t.p[n] != '.' || t.p[t.len - 1] != ':')
		return false;
	digits = t.len - n - 2;
	if (digits > 9 || !is_number((struct fusee_str){t.p + n + 1, digits}, &rest))
		return false;
	for (size_t i = digits; i < 9; i++)
		rest *= 10;
	*ns = seconds * 1000000000u + rest;
	return true;
}

/* "1234" or "1234/1235"; "-1": the thread had ended, pid and tid are 0. */
static bool is_thread(struct fusee_str t, uint32_t *pid, uint32_t *tid)
{
	uint64_t first, second;
	size_t n = number(t, 10, &first);

	*pid = *tid = 0;
	if (str_equal(t, (struct fusee_str){"-1", 2}))
		return true;
	if (!n || first > UINT32_MAX)
		return false;
	second = first;
	if (n < t.len &&
	    (t.p[n] != '/' || !is_number((struct fusee_str){t.p + n + 1, t.len - n - 1}, &second) ||
	     second > UINT32_MAX))
		return false;
	*pid = (uint32_t)first;
	*tid = (uint32_t)second;
	return true;
}

static uint32_t split(struct fusee_str line, struct fusee_str tokens[MAX_TOKENS])
{
	uint32_t n = 0;

	while (n < MAX_TOKENS) {
		const char *start;

		line = line_trim(line);
		if (!line.len)
			break;
		start = line.p;
		while (line.len && !isspace((unsigned char)*line.p)) {
			line.p++;
			line.len--;
		}
		tokens[n++] = (struct fusee_str){start, (size_t)(line.p - start)};
	}
	return n;
}

/* ---- lines ---- */

/* What follows the time: "[period] event: rest". */
static bool read_event(struct head *h, struct fusee_str line, const struct fusee_str *tokens,
		       uint32_t n)
{
	uint32_t i = 0;

	if (n && is_number(tokens[0], &h->period)) {
		h->has_period = true;
		i = 1;
	}
	if (i >= n || tokens[i].len < 2 || tokens[i].p[tokens[i].len - 1] != ':')
		return false;
	h->event = (struct fusee_str){tokens[i].p, tokens[i].len - 1};
	h->rest.p = tokens[i].p + tokens[i].len;
	h->rest.len = (size_t)(line.p + line.len - h->rest.p);
	h->rest = line_trim(h->rest);
	return true;
}

/* A comm may have spaces and digits: the thread's number is the token before the CPU and the time.
 */
static bool read_head(struct head *h, struct fusee_str line)
{
	struct fusee_str tokens[MAX_TOKENS];
	uint32_t n = split(line, tokens), thread;

	*h = (struct head){0};
	for (uint32_t i = 2; i < n; i++) {
		if (!is_time(tokens[i], &h->time_ns))
			continue;
		thread = i - 1 - (tokens[i - 1].p[0] == '[' && i > 2);
		if (!is_thread(tokens[thread], &h->pid, &h->tid))
			continue;
		h->has_time = true;
		h->comm.p = tokens[0].p;
		h->comm.len = (size_t)(tokens[thread].p - tokens[0].p);
		h->comm = line_trim(h->comm);
		return h->comm.len && read_event(h, line, tokens + i + 1, n - i - 1);
	}
	return false;
}

/* Where " (dso)" at the end of t begins: at the parenthesis that its end belongs to, as paths have
 * pairs of them; else at the nearest before a path. 0: t has none. */
static size_t dso_begin(struct fusee_str t)
{
	size_t open = 0;
	bool pair = true;

	for (size_t at = t.len; at > 0; at--) {
		bool begins = t.p[at - 1] == '(' && (at == 1 || t.p[at - 2] == ' ');

		open += t.p[at - 1] == ')';
		open -= t.p[at - 1] == '(' && open;
		if (begins && ((pair && !open) || t.p[at] == '/'))
			return at;
		pair = pair && open;
	}
	return 0;
}

/* Takes " (dso)" off the end of t. */
static void take_dso(struct fusee_str *t, struct fusee_str *dso)
{
	size_t at = ends_with(*t, ")") ? dso_begin(*t) : 0;

	if (!at)
		return;
	*dso = (struct fusee_str){t->p + at, t->len - 1 - at};
	if (ends_with(*dso, " (deleted)"))
		dso->len -= strlen(" (deleted)");
	*t = line_trim((struct fusee_str){t->p, at - 1});
}

/* Takes "+0x1f" off the end of t. */
static void take_offset(struct fusee_str *t)
{
	size_t at = t->len;
	uint64_t offset;

	while (at > 0 && isxdigit((unsigned char)t->p[at - 1]))
		at--;
	if (at < t->len && at > 3 && !memcmp(t->p + at - 3, "+0x", 3) &&
	    number((struct fusee_str){t->p + at, t->len - at}, 16, &offset))
		t->len = at - 3;
}

/* "address symbol+0xoffset (dso)"; symbol and dso may be missing. */
static bool read_frame(struct frame *f, struct fusee_str line)
{
	size_t n;

	*f = (struct frame){0};
	line = line_trim(line);
	n = number(line, 16, &f->address);
	if (!n || (n < line.len && line.p[n] != ' '))
		return false;
	f->symbol = line_trim((struct fusee_str){line.p + n, line.len - n});
	take_dso(&f->symbol, &f->dso);
	f->inlined = fusee_text_is(f->dso, "inlined");
	take_offset(&f->symbol);
	if (fusee_text_is(f->symbol, "[unknown]"))
		f->symbol.len = 0;
	return true;
}

/* "file.c:12", as -F +srcline prints it below a frame. */
static bool read_source(struct fusee_str line, struct fusee_str *file, uint32_t *number_of_line)
{
	uint64_t n;
	size_t at;

	line = line_trim(line);
	at = line.len;
	while (at > 0 && isdigit((unsigned char)line.p[at - 1]))
		at--;
	if (at < 2 || line.p[at - 1] != ':' ||
	    !is_number((struct fusee_str){line.p + at, line.len - at}, &n) || n > UINT32_MAX)
		return false;
	*file = (struct fusee_str){line.p, at - 1};
	*number_of_line = (uint32_t)n;
	return true;
}

static bool is_ignored(struct fusee_str line)
{
	return !line.len || line.p[0] == '#';
}

bool perf_script_is(const char *text, size_t len)
{
	struct reader r = {.text = {text, text + len}};
	struct fusee_str line;
	struct head h;

	while (line_next(&r.text, &line))
		if (!is_ignored(line_trim(line)))
			return read_head(&h, line);
	return false;
}

/* ---- events and value types ---- */

/* The event without its modifiers: "cpu-clock:pppH" is cpu-clock, "sched:sched_switch" is itself.
 */
static struct fusee_str event_name(struct fusee_str t)
{
	size_t at = t.len;

	while (at > 0 && t.p[at - 1] != ':')
		at--;
	for (size_t i = at; i < t.len; i++)
		if (!strchr("ukhIGHpPSDWeb", t.p[i]))
			return t;
	return at > 1 ? (struct fusee_str){t.p, at - 1} : t;
}

static struct event *find_event(struct reader *r, struct fusee_str event)
{
	struct fusee_str name = event_name(event);

	for (uint32_t i = 0; i < r->nevents; i++)
		if (str_equal(r->events[i].name, name))
			return &r->events[i];
	if (r->nevents == MAX_EVENTS) {
		r->error = "it has samples of more than 16 events: let perf script -e print fewer";
		return NULL;
	}
	r->events[r->nevents] = (struct event){.name = name};
	return &r->events[r->nevents++];
}

static int find_events(struct reader *r)
{
	const char *start = r->text.at;
	struct fusee_str line;
	struct event *e;
	struct head h;

	while (line_next(&r->text, &line)) {
		if (is_ignored(line) || !read_head(&h, line))
			continue;
		e = find_event(r, h.event);
		if (!e)
			return -EINVAL;
		e->without_period |= !h.has_period;
	}
	r->text.at = start;
	return 0;
}

static bool is_clock(struct fusee_str event)
{
	return str_equal(event, (struct fusee_str){"cpu-clock", 9}) ||
	       str_equal(event, (struct fusee_str){"task-clock", 10});
}

/* A value type's name has letters, digits and '_' alone: backends make selectors of it. */
static void add_type(struct reader *r, struct event *e)
{
	char name[64];
	size_t n = e->name.len < sizeof(name) - 1 ? e->name.len : sizeof(name) - 1;

	for (size_t i = 0; i < n; i++)
		name[i] = isalnum((unsigned char)e->name.p[i]) ? e->name.p[i] : '_';
	name[n] = '\0';
	e->type = r->ntypes++;
	if (is_clock(e->name))
		builder_type(r->b, "cpu", "nanoseconds");
	else
		builder_type(r->b, name, "count");
}

/* CPU time where it was sampled, else the first event. */
static uint32_t default_type(const struct reader *r)
{
	for (uint32_t i = 0; i < r->nevents; i++)
		if (is_clock(r->events[i].name) && r->events[i].type)
			return r->events[i].type;
	return r->ntypes > 1;
}

static void add_types(struct reader *r)
{
	struct fusee_profile *p = builder_profile(r->b);

	builder_type(r->b, "samples", "count");
	r->ntypes = 1;
	for (uint32_t i = 0; i < r->nevents; i++)
		if (!r->events[i].without_period)
			add_type(r, &r->events[i]);
	p->default_type = default_type(r);
	p->kind = builder_cstr(r->b, "cpu");
}

/* ---- samples ---- */

static uint32_t string(struct reader *r, struct fusee_str t)
{
	return builder_string(r->b, t.p, t.len);
}

/* A thread's first comm is the first 15 bytes of its program's name. */
static bool is_program(struct fusee_str path, struct fusee_str comm)
{
	struct fusee_str name = str_base_name(path);

	if (name.len == path.len)
		return false;
	if (name.len > 15)
		name.len = 15;
	return str_equal(name, comm);
}

static uint32_t add_mapping(struct reader *r, const struct frame *f)
{
	struct fusee_mapping m = {.limit = UINT64_MAX};
	uint32_t mapping;

	if (!f->dso.len)
		return 0;
	if (f->address >= KERNEL_ADDRESS)
		m.flags |= FUSEE_MAPPING_KERNEL;
	else if (str_begins(f->dso, "[JIT]") || str_begins(f->dso, "/tmp/perf-") ||
		 str_begins(f->dso, "//anon"))
		m.flags |= FUSEE_MAPPING_JIT;
	m.path = string(r, f->dso);
	mapping = builder_mapping(r->b, &m);
	if (!r->main && is_program(f->dso, r->comm))
		r->main = mapping;
	return mapping;
}

static struct fusee_line line_of(struct reader *r, const struct frame *f, struct fusee_str file,
				 uint32_t number_of_line)
{
	struct fusee_function function = {.name = string(r, f->symbol), .file = string(r, file)};

	function.system_name = function.name;
	return (struct fusee_line){.function = builder_function(r->b, &function),
				   .line = number_of_line,
				   .flags = f->inlined ? FUSEE_LINE_INLINED : 0};
}

/* perf prints functions that were inlined before the function that contains them. */
static int add_frame(struct reader *r, const struct frame *f, struct fusee_str file,
		     uint32_t number_of_line)
{
	struct fusee_location location = {.address = f->address};
	uint32_t index;

	if (f->symbol.len) {
		struct fusee_line line = line_of(r, f, file, number_of_line);

		if (buf_add(&r->lines, &line, sizeof(line)))
			return -ENOMEM;
	}
	if (f->inlined)
		return 0;
	location.mapping = add_mapping(r, f);
	location.frame_type = builder_cstr(r->b,
					   f->address >= KERNEL_ADDRESS ? "kernel" : "native");
	index = builder_location(r->b, &location,
				 (const struct fusee_line *)(const void *)r->lines.p,
				 (uint32_t)(r->lines.len / sizeof(struct fusee_line)));
	buf_reset(&r->lines);
	return buf_add(&r->locations, &index, sizeof(index));
}

/* The source line below the frame, if there is one. */
static void take_source(struct reader *r, struct fusee_str *file, uint32_t *number_of_line)
{
	const char *start = r->text.at;
	struct fusee_str line;

	*file = (struct fusee_str){"", 0};
	*number_of_line = 0;
	if (line_next(&r->text, &line) && read_source(line, file, number_of_line))
		return;
	*file = (struct fusee_str){"", 0};
	r->text.at = start;
}

/* The frames of the sample whose first line is h. */
static int add_frames(struct reader *r, const struct head *h)
{
	struct fusee_str line, file;
	uint32_t number_of_line;
	struct frame f;
	int err = 0;

	buf_reset(&r->locations);
	buf_reset(&r->lines);
	if (h->rest.len && ends_with(h->rest, ")") && read_frame(&f, h->rest)) {
		take_source(r, &file, &number_of_line);
		return add_frame(r, &f, file, number_of_line);
	}
	while (!err && line_next(&r->text, &line) && line_trim(line).len) {
		struct head next;

		if (read_head(&next, line)) { /* no empty line in between: perf script without -g */
			r->text.at = line.p;
			break;
		}
		if (read_frame(&f, line)) {
			take_source(r, &file, &number_of_line);
			err = add_frame(r, &f, file, number_of_line);
		} else {
			r->ignored++;
		}
	}
	return err;
}

static int add_sample(struct reader *r, const struct head *h)
{
	const struct fusee_label thread = {.key = {"thread", 6}, .str = {h->comm.p, h->comm.len}};
	int64_t values[MAX_EVENTS + 1] = {1};
	const struct event *e = find_event(r, h->event);
	int err;
	uint32_t stack;

	r->comm = h->comm;
	err = add_frames(r, h);
	if (err || !e)
		return err ? err : -EINVAL;
	err = import_is_too_large(r->b, &r->error);
	if (err)
		return err;
	if (e->type)
		values[e->type] = h->period <= INT64_MAX ? (int64_t)h->period : INT64_MAX;
	stack = builder_stack(r->b, (const uint32_t *)(const void *)r->locations.p,
			      (uint32_t)(r->locations.len / sizeof(uint32_t)));
	if (!r->first_ns || h->time_ns < r->first_ns)
		r->first_ns = h->time_ns;
	if (h->time_ns > r->last_ns)
		r->last_ns = h->time_ns;
	return builder_sample(r->b, stack, &thread, 1, h->pid, h->tid, values);
}

static int add_samples(struct reader *r)
{
	struct fusee_str line;
	struct head h;
	int err = 0;

	while (!err && line_next(&r->text, &line)) {
		if (is_ignored(line_trim(line)))
			continue;
		if (read_head(&h, line))
			err = add_sample(r, &h);
		else
			r->ignored++;
	}
	return err;
}

int perf_script_read(struct builder *b, const char *text, size_t len, const char **error)
{
	struct reader r = {.b = b, .text = {text, text + len}};
	int err = find_events(&r);

	if (!err) {
		add_types(&r);
		err = add_samples(&r);
	}
	if (r.main && r.main != BUILDER_NONE)
		builder_mapping_flags(b, r.main, FUSEE_MAPPING_MAIN, 0);
	if (r.ignored)
		builder_comment(b, "perf script: %llu lines were not understood",
				(unsigned long long)r.ignored);
	builder_profile(b)->duration_ns = r.last_ns - r.first_ns;
	buf_fini(&r.locations);
	buf_fini(&r.lines);
	*error = r.error ? r.error : err == -ENOMEM ? "no memory" : "";
	return err;
}
