/* SPDX-License-Identifier: Apache-2.0 */
#include "import/internal/speedscope.h"

#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "import/internal/lines.h"

#define MAX_BYTES (512ull << 20)
/* json-c takes some 80 bytes for a number of two bytes. */
#define MAX_VALUES (32u << 20)
/* Frames of all stacks of events: a deep stack at each of many events takes hours otherwise. */
#define MAX_FRAMES (1ull << 28)

enum unit { COUNT, TIME, SPACE, UNITS };

static const struct {
	const char *name;
	enum unit unit;
	double factor;
} units[] = {
	{"none", COUNT, 1},          {"nanoseconds", TIME, 1}, {"microseconds", TIME, 1e3},
	{"milliseconds", TIME, 1e6}, {"seconds", TIME, 1e9},   {"bytes", SPACE, 1},
};

static const char *const types[UNITS][2] = {[COUNT] = {"samples", "count"},
					    [TIME] = {"time", "nanoseconds"},
					    [SPACE] = {"space", "bytes"}};

struct reader {
	struct builder *b;
	struct json_object *frames;
	uint32_t *locations; /* of each of frames */
	size_t nframes;
	uint32_t type[UNITS], ntypes; /* type: its number and 1; 0: no profile has the unit */
	double rest[UNITS];           /* what rounding has taken from the weights so far */
	struct buf stack;             /* uint32_t: locations, root first */
	struct buf reversed;
	uint64_t work;
	const char *error;
};

/* The profile that is read. */
struct part {
	struct json_object *json;
	enum unit unit;
	double factor;
	struct fusee_label label; /* its key is empty: the only profile */
};

static int fail(struct reader *r, const char *error)
{
	if (!r->error)
		r->error = error;
	return -EINVAL;
}

/* ---- JSON ---- */

static struct json_object *member(struct json_object *o, const char *name, enum json_type type)
{
	struct json_object *m = json_object_is_type(o, json_type_object)
					? json_object_object_get(o, name)
					: NULL;

	return json_object_is_type(m, type) ? m : NULL;
}

static struct fusee_str text_of(struct json_object *o, const char *name)
{
	struct json_object *s = member(o, name, json_type_string);

	return s ? (struct fusee_str){json_object_get_string(s),
				      (uint64_t)json_object_get_string_len(s)}
		 : (struct fusee_str){"", 0};
}

static bool is_number(struct json_object *o)
{
	return json_object_is_type(o, json_type_int) || json_object_is_type(o, json_type_double);
}

static size_t length(struct json_object *list)
{
	return list ? json_object_array_length(list) : 0;
}

/* How many values a text can have at most. */
static bool has_too_many(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == ',' || text[i] == '[' || text[i] == '{' || text[i] == ':';
	return n > MAX_VALUES;
}

static struct json_object *parse(struct reader *r, const char *text, size_t len)
{
	struct json_tokener *tok;
	struct json_object *o = NULL;
	size_t end;

	if (len > MAX_BYTES || has_too_many(text, len)) {
		fail(r, "this JSON is larger than 512 MiB, or has more than 33,554,432 values");
		return NULL;
	}
	tok = json_tokener_new();
	if (!tok)
		return NULL;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	o = json_tokener_parse_ex(tok, text, (int)len);
	end = json_tokener_get_parse_end(tok);
	if (!o || line_trim((struct fusee_str){text + end, len - end}).len) {
		fail(r, "this JSON is damaged or truncated");
		json_object_put(o);
		o = NULL;
	}
	json_tokener_free(tok);
	return o;
}

/* ---- frames ---- */

static uint32_t number_of_line(struct json_object *frame, const char *name)
{
	struct json_object *n = member(frame, name, json_type_int);
	int64_t line = n ? json_object_get_int64(n) : 0;

	return line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
}

static uint32_t add_frame(struct reader *r, struct json_object *frame)
{
	struct fusee_str name = text_of(frame, "name"), file = text_of(frame, "file");
	struct fusee_function function = {0};
	struct fusee_location location = {0};
	struct fusee_line line = {.line = number_of_line(frame, "line"),
				  .column = number_of_line(frame, "col")};

	function.name = function.system_name = builder_string(r->b, name.p, name.len);
	function.file = builder_string(r->b, file.p, file.len);
	line.function = builder_function(r->b, &function);
	return builder_location(r->b, &location, &line, 1);
}

static int add_frames(struct reader *r)
{
	r->nframes = length(r->frames);
	r->locations = calloc(r->nframes + 1, sizeof(*r->locations));
	if (!r->locations)
		return -ENOMEM;
	for (size_t i = 0; i < r->nframes; i++) {
		struct json_object *frame = json_object_array_get_idx(r->frames, i);

		if (!member(frame, "name", json_type_string))
			return fail(r, "a frame of it has no name");
		r->locations[i] = add_frame(r, frame);
	}
	return 0;
}

/* Adds the frame with the number to the current stack. */
static int push(struct reader *r, struct json_object *number)
{
	int64_t i = json_object_is_type(number, json_type_int) ? json_object_get_int64(number) : -1;

	if (i < 0 || (uint64_t)i >= r->nframes)
		return fail(r, "a stack of it has a frame that is not in its list");
	return buf_add(&r->stack, &r->locations[i], sizeof(*r->locations));
}

/* ---- samples ---- */

/* Weights with fractions are rounded so that their sum is right. */
static int64_t rounded(double value, double *rest)
{
	double exact = value + *rest, number = rint(exact);

	if (!(fabs(number) < 0x1p63))
		return number > 0 ? INT64_MAX : 0;
	*rest = exact - number;
	return (int64_t)number;
}

/* The current stack, with a weight. */
static int add_sample(struct reader *r, const struct part *p, double weight)
{
	const uint32_t *locations = (const uint32_t *)(const void *)r->stack.p;
	size_t n = r->stack.len / sizeof(*locations);
	int64_t values[UNITS] = {0};
	uint32_t stack, *reversed;
	int err;

	r->work += n;
	if (r->work > MAX_FRAMES)
		return fail(r, "its stacks have more than 268,435,456 frames");
	buf_reset(&r->reversed);
	reversed = buf_grow(&r->reversed, n * sizeof(*reversed));
	if (!reversed)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		reversed[i] = locations[n - 1 - i];
	stack = builder_stack(r->b, reversed, (uint32_t)n);
	values[r->type[p->unit] - 1] = rounded(weight * p->factor, &r->rest[p->unit]);
	err = import_is_too_large(r->b, &r->error);
	return err ? err
		   : builder_sample(r->b, stack, &p->label, p->label.key.len > 0, 0, 0, values);
}

static int read_sampled(struct reader *r, const struct part *p)
{
	struct json_object *samples = member(p->json, "samples", json_type_array),
			   *weights = member(p->json, "weights", json_type_array);
	int err = 0;

	if (!samples || length(samples) != length(weights))
		return fail(r, "a profile of it has not one weight for each sample");
	for (size_t i = 0; !err && i < length(samples); i++) {
		struct json_object *stack = json_object_array_get_idx(samples, i),
				   *weight = json_object_array_get_idx(weights, i);

		if (!json_object_is_type(stack, json_type_array) || !is_number(weight))
			return fail(r, "a sample of it is no list of frames with a weight");
		buf_reset(&r->stack);
		for (size_t k = 0; !err && k < length(stack); k++)
			err = push(r, json_object_array_get_idx(stack, k));
		if (!err)
			err = add_sample(r, p, json_object_get_double(weight));
	}
	return err;
}

static int pop(struct reader *r, struct json_object *number)
{
	size_t size = sizeof(*r->locations);
	int err = push(r, number);
	const char *end;

	if (err)
		return err;
	r->stack.len -= size;
	end = r->stack.p + r->stack.len;
	if (!r->stack.len || memcmp(end - size, end, size))
		return fail(r, "an event of it closes a frame that is not the innermost");
	r->stack.len -= size;
	return 0;
}

/* What passes between two events belongs to the stack that is open. */
static int read_evented(struct reader *r, const struct part *p)
{
	struct json_object *events = member(p->json, "events", json_type_array);
	double last = 0;
	int err = 0;

	if (!events)
		return fail(r, "a profile of it has no events");
	buf_reset(&r->stack);
	for (size_t i = 0; !err && i < length(events); i++) {
		struct json_object *e = json_object_array_get_idx(events, i);
		struct json_object *at = json_object_is_type(e, json_type_object)
						 ? json_object_object_get(e, "at")
						 : NULL;
		struct fusee_str type = text_of(e, "type");
		double now = is_number(at) ? json_object_get_double(at) : NAN;

		if (!(now >= last || (!i && now < last)))
			return fail(r, "events of it are not in order of time");
		if (r->stack.len && now > last)
			err = add_sample(r, p, now - last);
		last = now;
		if (!err && fusee_text_is(type, "O"))
			err = push(r, member(e, "frame", json_type_int));
		else if (!err && fusee_text_is(type, "C"))
			err = pop(r, member(e, "frame", json_type_int));
		else if (!err)
			err = fail(r, "an event of it neither opens nor closes a frame");
	}
	return err;
}

/* ---- all ---- */

static int find_unit(struct reader *r, struct part *p)
{
	struct fusee_str unit = text_of(p->json, "unit");

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (!fusee_text_is(unit, units[i].name))
			continue;
		p->unit = units[i].unit;
		p->factor = units[i].factor;
		return 0;
	}
	return fail(r, "a profile of it has a unit that speedscope does not know");
}

static int read_part(struct reader *r, struct json_object *json, bool labelled)
{
	struct part p = {.json = json};
	struct fusee_str type = text_of(json, "type");
	int err = find_unit(r, &p);

	if (err)
		return err;
	if (labelled)
		p.label = (struct fusee_label){.key = {"profile", 7}, .str = text_of(json, "name")};
	if (fusee_text_is(type, "sampled"))
		return read_sampled(r, &p);
	if (fusee_text_is(type, "evented"))
		return read_evented(r, &p);
	return fail(r, "a profile of it is neither sampled nor evented");
}

/* Before the first sample: the units of all profiles. */
static int add_types(struct reader *r, struct json_object *profiles)
{
	for (size_t i = 0; i < length(profiles); i++) {
		struct part p = {.json = json_object_array_get_idx(profiles, i)};

		if (find_unit(r, &p))
			return -EINVAL;
		if (r->type[p.unit])
			continue;
		builder_type(r->b, types[p.unit][0], types[p.unit][1]);
		r->type[p.unit] = ++r->ntypes;
	}
	return r->ntypes ? 0 : fail(r, "it has no profiles");
}

static int read_all(struct reader *r, struct json_object *file)
{
	struct json_object *profiles = member(file, "profiles", json_type_array);
	struct fusee_str exporter = text_of(file, "exporter");
	int err;

	r->frames = member(member(file, "shared", json_type_object), "frames", json_type_array);
	if (!r->frames || !profiles)
		return fail(r, "this JSON is no file of speedscope: it lacks frames or profiles");
	err = add_types(r, profiles);
	if (!err)
		err = add_frames(r);
	for (size_t i = 0; !err && i < length(profiles); i++)
		err = read_part(r, json_object_array_get_idx(profiles, i), length(profiles) > 1);
	if (!err && exporter.len)
		builder_comment(r->b, "made by %.*s",
				(int)(exporter.len < 256 ? exporter.len : 256), exporter.p);
	return err;
}

bool speedscope_is(const char *text, size_t len)
{
	struct fusee_str t = line_trim((struct fusee_str){text, len});

	if (!t.len || t.p[0] != '{')
		return false;
	t = line_trim((struct fusee_str){t.p + 1, t.len - 1});
	return t.len && t.p[0] == '"';
}

int speedscope_read(struct builder *b, const char *text, size_t len, const char **error)
{
	struct reader r = {.b = b};
	struct json_object *file = parse(&r, text, len);
	int err = file ? read_all(&r, file) : r.error ? -EINVAL : -ENOMEM;

	json_object_put(file);
	free(r.locations);
	buf_fini(&r.stack);
	buf_fini(&r.reversed);
	*error = r.error ? r.error : err ? "no memory" : "";
	return err;
}
