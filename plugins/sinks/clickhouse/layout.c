/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include <stdlib.h>

#include <fusee/http.h>

/* The kind of a field's values. */
enum kind { TEXT, NUMBER, TIME, ID, MAP, TEXTS, NUMBERS };

struct field {
	const char *name;
	enum kind kind;
	bool required;
	const char *modern, *old; /* types; NULL: not a column of new tables */
};

#define LOW "LowCardinality(String)"
#define STACK_TEXT "String CODEC(ZSTD(3))"
#define ID_TEXT "String CODEC(ZSTD(1))"
/* Ids have a value for each request: blocks without it are skipped. */
#define FILTER(column) \
	", INDEX `" column "_filter` `" column "` TYPE bloom_filter(0.01) GRANULARITY 1"

static const struct field samples_fields[] = {
	[TS] = {"ts", TIME, true, "DateTime64(6, 'UTC')", "DateTime('UTC')"},
	[DURATION] = {"duration_ns", NUMBER, false, "Int64", "Int64"},
	[PROFILE] = {"profile", TEXT, false, LOW, "String"},
	[SAMPLE_TYPE] = {"sample_type", TEXT, false, LOW, "String"},
	[UNIT] = {"unit", TEXT, false, LOW, "String"},
	[PERIOD] = {"period", NUMBER, false, "Int64", "Int64"},
	[HOST] = {"host", TEXT, false, LOW, "String"},
	[SERVICE] = {"service", TEXT, false, LOW, "String"},
	[PROCESS] = {"process", TEXT, false, LOW, "String"},
	[NAMESPACE] = {"namespace", TEXT, false, LOW, "String"},
	[POD] = {"pod", TEXT, false, LOW, "String"},
	[CONTAINER] = {"container", TEXT, false, LOW, "String"},
	[PID] = {"pid", NUMBER, false, "Int32", "Int32"},
	[TID] = {"tid", NUMBER, false, "Int32", "Int32"},
	[THREAD] = {"thread", TEXT, false, LOW, "String"},
	[TRACE] = {"trace_id", TEXT, false, ID_TEXT, "String"},
	[SPAN] = {"span_id", TEXT, false, ID_TEXT, "String"},
	[LABELS] = {"labels", MAP, false, "Map(LowCardinality(String), String)", NULL},
	[LABEL_KEY] = {"labels.key", TEXTS, false, NULL, "Array(String)"},
	[LABEL_VALUE] = {"labels.value", TEXTS, false, NULL, "Array(String)"},
	[VALUE] = {"value", NUMBER, true, "Int64", "Int64"},
	[COUNT] = {"count", NUMBER, false, "Int64", "Int64"},
	[STACK] = {"stack", TEXT, false, STACK_TEXT, "String"},
	[STACK_ID] = {"stack_id", NUMBER, false, "Int64", "Int64"},
	[PROFILE_ID] = {"profile_id", ID, false, "UUID", "UUID"},
	[ROW] = {"row", NUMBER, false, "UInt32", "UInt32"},
};

#define LOWS "Array(LowCardinality(String))"

static const struct field stacks_fields[] = {
	[S_ID] = {"stack_id", NUMBER, true, "Int64", "Int64"},
	[S_TS] = {"ts", TIME, false, "DateTime('UTC')", "DateTime('UTC')"},
	[S_STACK] = {"stack", TEXT, false, STACK_TEXT, "String"},
	[F_FUNCTION] = {"frames.function", TEXTS, false, LOWS, "Array(String)"},
	[F_FILE] = {"frames.file", TEXTS, false, LOWS, "Array(String)"},
	[F_LINE] = {"frames.line", NUMBERS, false, "Array(Int64)", "Array(Int64)"},
	[F_ADDRESS] = {"frames.address", NUMBERS, false, "Array(Int64)", "Array(Int64)"},
	[F_MAPPING] = {"frames.mapping", TEXTS, false, LOWS, "Array(String)"},
	[F_BUILD_ID] = {"frames.build_id", TEXTS, false, LOWS, "Array(String)"},
	[F_INLINED] = {"frames.inlined", NUMBERS, false, "Array(UInt8)", "Array(UInt8)"},
	[F_TYPE] = {"frames.type", TEXTS, false, LOWS, "Array(String)"},
};

/* A second delivery has equal keys, and merging drops all rows of a key but one. */
static const struct {
	struct fusee_table fields;
	const char *indices; /* of modern servers */
	const char *engine;
	uint64_t longer; /* seconds that rows are kept beyond `keep` */
} tables[TABLES] = {
	[STACKS] = {FUSEE_TABLE(stacks_fields), "", "ReplacingMergeTree(ts) ORDER BY stack_id",
		    86400},
	[SAMPLES] = {FUSEE_TABLE(samples_fields), FILTER("trace_id") FILTER("span_id"),
		     "ReplacingMergeTree PARTITION BY toDate(ts) ORDER BY (profile, service, ts, "
		     "profile_id, row)",
		     0},
};

bool layout_is_name(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] < ' ' || strchr("`'\"\\", name[i]))
			return false;
	return n && n <= LAYOUT_NAME;
}

char *layout_create(enum table t, const char *database, const char *name, uint32_t version,
		    uint64_t keep)
{
	bool modern = version >= LAYOUT_MODERN;
	char *text = NULL, *before = "";
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	fprintf(f, "CREATE TABLE IF NOT EXISTS `%s`.`%s` (", database, name);
	FUSEE_FOR_EACH (struct field, field, tables[t].fields) {
		const char *type = modern ? field->modern : field->old;

		if (!type)
			continue;
		fprintf(f, "%s`%s` %s", before, field->name, type);
		before = ", ";
	}
	fprintf(f, "%s) ENGINE = %s", modern ? tables[t].indices : "", tables[t].engine);
	if (keep && modern)
		fprintf(f, " TTL toDateTime(ts) + toIntervalSecond(%llu)",
			(unsigned long long)(keep + tables[t].longer));
	if (ferror(f) | fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- types ---- */

/* The text between the parentheses of NAME(..), or no bytes. */
static struct fusee_str inside(struct fusee_str type, const char *name)
{
	size_t n = strlen(name);

	if (type.len < n + 2 || memcmp(type.p, name, n) || type.p[n] != '(' ||
	    type.p[type.len - 1] != ')')
		return (struct fusee_str){NULL, 0};
	return (struct fusee_str){type.p + n + 1, type.len - n - 2};
}

/* The type without LowCardinality and Nullable, which are around it. */
static struct fusee_str bare(struct fusee_str type, uint8_t *nullable)
{
	struct fusee_str in = inside(type, "LowCardinality");

	if (in.len)
		type = in;
	in = inside(type, "Nullable");
	*nullable = in.len > 0;
	return in.len ? in : type;
}

static bool is_text(struct fusee_str type)
{
	uint8_t nullable;

	return fusee_text_is(bare(type, &nullable), "String") && !nullable;
}

static bool read_int(struct fusee_str type, struct column *c)
{
	static const char *const names[] = {"8", "16", "32", "64"};

	if (type.len && *type.p == 'U')
		type = (struct fusee_str){type.p + 1, type.len - 1};
	if (type.len < 3 || memcmp(type.p, "Int", 3))
		return false;
	type = (struct fusee_str){type.p + 3, type.len - 3};
	for (uint32_t i = 0; i < 4; i++)
		if (fusee_text_is(type, names[i])) {
			c->size = (uint8_t)(1 << i);
			return true;
		}
	return false;
}

static bool read_time(struct fusee_str type, struct column *c)
{
	struct fusee_str digits = inside(type, "DateTime64");

	c->shape = SHAPE_SECONDS;
	if (fusee_text_is(type, "DateTime") || inside(type, "DateTime").len)
		return true;
	c->shape = SHAPE_TICKS;
	if (!digits.len || *digits.p < '0' || *digits.p > '9')
		return false;
	c->size = (uint8_t)(*digits.p - '0');
	return digits.len == 1 || digits.p[1] == ',';
}

static bool read_map(struct fusee_str type)
{
	struct fusee_str in = inside(type, "Map"), value;
	const char *comma = in.len ? memchr(in.p, ',', in.len) : NULL;

	if (!comma)
		return false;
	value = (struct fusee_str){comma + 1, in.len - (uint64_t)(comma + 1 - in.p)};
	while (value.len && *value.p == ' ')
		value = (struct fusee_str){value.p + 1, value.len - 1};
	return is_text((struct fusee_str){in.p, (uint64_t)(comma - in.p)}) && is_text(value);
}

/* Whether values of this kind can be written as this type; sets *c if so. */
static bool read_type(enum kind kind, struct fusee_str type, struct column *c)
{
	static const uint8_t shapes[] = {
		[TEXT] = SHAPE_TEXT,   [NUMBER] = SHAPE_INT, [TIME] = SHAPE_SECONDS,
		[ID] = SHAPE_UUID,     [MAP] = SHAPE_MAP,    [TEXTS] = SHAPE_TEXTS,
		[NUMBERS] = SHAPE_INTS};

	c->shape = shapes[kind];
	if (kind == MAP)
		return read_map(type);
	if (kind == TEXTS || kind == NUMBERS)
		type = inside(type, "Array");
	type = bare(type, &c->nullable);
	switch (kind) {
	case TEXT:
	case TEXTS:
		return fusee_text_is(type, "String");
	case TIME:
		return read_time(type, c);
	case ID:
		if (fusee_text_is(type, "String"))
			c->shape = SHAPE_UUID_TEXT;
		return c->shape == SHAPE_UUID_TEXT || fusee_text_is(type, "UUID");
	default:
		return read_int(type, c);
	}
}

/* ---- a server's table ---- */

/* Adds text to the insert, as a part of a URL's query. Statements are shorter than its room: names
 * are bounded. */
static void add(struct layout *l, const char *text)
{
	static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				   "-._";
	size_t n = strlen(l->insert);

	for (; *text && n + 4 < sizeof(l->insert); text++)
		n += (size_t)snprintf(l->insert + n, sizeof(l->insert) - n,
				      strchr(safe, *text) ? "%c" : "%%%02X",
				      (unsigned)(unsigned char)*text);
}

static void add_column(enum table t, const struct field *f, struct column c, struct layout *l)
{
	c.field = (uint8_t)(f - (const struct field *)tables[t].fields.at);
	add(l, l->n ? ", `" : "`");
	add(l, f->name);
	add(l, "`");
	l->at[l->n++] = c;
}

static int read_line(enum table t, const char *name, struct fusee_str line, struct layout *l,
		     char *why, size_t size)
{
	const char *tab = memchr(line.p, '\t', line.len);
	char words[FUSEE_HTTP_WORDS];
	struct fusee_str column, type;
	struct column c = {0};

	if (!tab) {
		snprintf(why, size, "it does not answer as ClickHouse does: is 'url' right?");
		return -EBADMSG;
	}
	column = (struct fusee_str){line.p, (uint64_t)(tab - line.p)};
	type = (struct fusee_str){tab + 1, line.len - column.len - 1};
	FUSEE_FOR_EACH (struct field, f, tables[t].fields) {
		if (!fusee_text_is(column, f->name) || l->n == FIELDS)
			continue;
		if (!read_type(f->kind, type, &c)) {
			fusee_http_words(words, type);
			snprintf(why, size,
				 "the column '%s' of table '%s' has the type %.80s, which this "
				 "sink does not write; it writes %s",
				 f->name, name, words, f->modern ? f->modern : f->old);
			return -EBADMSG;
		}
		add_column(t, f, c, l);
		break;
	}
	return 0;
}

static bool has(const struct layout *l, uint32_t field)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->at[i].field == field)
			return true;
	return false;
}

/* Lists the names of columns that the table lacks; -EBADMSG: it lacks a required column. */
static int find_missing(enum table t, const char *name, const struct layout *l, char *why,
			size_t size)
{
	const struct field *fields = tables[t].fields.at;
	bool map = t == SAMPLES && has(l, LABELS);
	bool arrays = t == SAMPLES && has(l, LABEL_KEY) && has(l, LABEL_VALUE);
	size_t n = 0;

	*why = '\0';
	for (uint32_t i = 0; i < tables[t].fields.n; i++) {
		bool other = t == SAMPLES && (i == LABELS                          ? arrays
					      : i == LABEL_KEY || i == LABEL_VALUE ? map
										   : false);

		if (has(l, i) || other)
			continue;
		if (fields[i].required) {
			snprintf(why, size, "the table '%s' has no column '%s'", name,
				 fields[i].name);
			return -EBADMSG;
		}
		if (n < size)
			n += (size_t)snprintf(why + n, size - n, "%s'%s'", n ? ", " : "",
					      fields[i].name);
	}
	return 0;
}

int layout_read(enum table t, const char *database, const char *name, struct fusee_str lines,
		struct layout *l, char *why, size_t size)
{
	int r = 0;

	memset(l, 0, sizeof(*l));
	*why = '\0';
	add(l, "INSERT INTO `");
	add(l, database);
	add(l, "`.`");
	add(l, name);
	add(l, "` (");
	while (!r && lines.len) {
		const char *end = memchr(lines.p, '\n', lines.len);
		uint64_t n = end ? (uint64_t)(end - lines.p) : lines.len;

		r = read_line(t, name, (struct fusee_str){lines.p, n}, l, why, size);
		n += end != NULL;
		lines = (struct fusee_str){lines.p + n, lines.len - n};
	}
	add(l, ") FORMAT RowBinary");
	return r || !l->n ? r : find_missing(t, name, l, why, size);
}
