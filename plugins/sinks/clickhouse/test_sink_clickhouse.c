/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/clickhouse
/* Statements, rows and answers, and deliveries to tests/run/lib/clickhouse_http.py: run from the
 * source's root. A real server is that of tests/run/clickhouse. */
#include "lib/fakehost.h"
#include "lib/begun.h"
#include "lib/served.h"

#include "answer.h"
#include "encode.h"
#include "known.h"

extern const struct fusee_plugin fusee_plugin;

#define NS 1000000000ull
#define T 1795248900ull /* 2026-11-21T08:15:00Z, of fake_profile() */

/* ---- tables ---- */

static char why[1000];

static int read_samples(const char *lines, struct layout *l)
{
	return layout_read(SAMPLES, "db", "t", fusee_text(lines), l, why, sizeof(why));
}

/* The shape, size and nullable of a column, "" if it is refused. */
static const char *shape_of(const char *name, const char *type)
{
	static char shape[32];
	struct layout l;
	int r = read_samples(text("ts\tDateTime\nvalue\tInt64\n%s\t%s\n", name, type), &l);

	if (r) {
		CHECK_INT(r, -EBADMSG);
		CHECK(strstr(why, name) && strstr(why, type));
		return "";
	}
	CHECK_INT(l.n, 3);
	snprintf(shape, sizeof(shape), "%d %d %d", l.at[2].shape, l.at[2].size, l.at[2].nullable);
	return shape;
}

#define CHECK_SHAPE(name, type, shape, size, nullable) \
	CHECK_STR(shape_of(name, type), text("%d %d %d", shape, size, nullable))

TEST(types_of_columns)
{
	CHECK_SHAPE("service", "String", SHAPE_TEXT, 0, 0);
	CHECK_SHAPE("service", "LowCardinality(String)", SHAPE_TEXT, 0, 0);
	CHECK_SHAPE("service", "LowCardinality(Nullable(String))", SHAPE_TEXT, 0, 1);
	CHECK_SHAPE("service", "Nullable(String)", SHAPE_TEXT, 0, 1);
	CHECK_SHAPE("pid", "Int8", SHAPE_INT, 1, 0);
	CHECK_SHAPE("pid", "UInt16", SHAPE_INT, 2, 0);
	CHECK_SHAPE("pid", "Nullable(UInt32)", SHAPE_INT, 4, 1);
	CHECK_SHAPE("stack_id", "UInt64", SHAPE_INT, 8, 0);
	CHECK_SHAPE("profile_id", "UUID", SHAPE_UUID, 0, 0);
	CHECK_SHAPE("profile_id", "String", SHAPE_UUID_TEXT, 0, 0);
	CHECK_SHAPE("labels", "Map(String, String)", SHAPE_MAP, 0, 0);
	CHECK_SHAPE("labels", "Map(LowCardinality(String), String)", SHAPE_MAP, 0, 0);
	CHECK_SHAPE("labels.key", "Array(LowCardinality(String))", SHAPE_TEXTS, 0, 0);
	CHECK_SHAPE("labels.value", "Array(Nullable(String))", SHAPE_TEXTS, 0, 1);
}

TEST(types_that_are_refused)
{
	static const char *const numbers[] = {"String", "Int",    "Int128",  "Float64",
					      "UInt",   "Int6",   "IInt64",  "Decimal(9, 2)",
					      "",       "Int64)", "(Int64)", "Nullable(Int64"};
	static const char *const maps[] = {"String",
					   "Map(String, Int64)",
					   "Map(String)",
					   "Map(, )",
					   "Array(String)",
					   "Map(String,",
					   "Map(UInt8, String)",
					   "Map(String, Nullable(String))"};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		CHECK_STR(shape_of("pid", numbers[i]), "");
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		CHECK_STR(shape_of("labels", maps[i]), "");
	CHECK_STR(shape_of("service", "FixedString(9)"), "");
	CHECK_STR(shape_of("profile_id", "FixedString(16)"), "");
	CHECK_STR(shape_of("labels.key", "String"), "");
	CHECK_STR(shape_of("thread", "Enum8(\\'a\\' = 1)"), "");
}

static void check_time(const char *type, int r, int shape, int digits)
{
	struct layout l;

	CHECK_INT(read_samples(text("ts\t%s\nvalue\tInt64\n", type), &l), r);
	if (r)
		return;
	CHECK_INT(l.at[0].shape, shape);
	CHECK_INT(l.at[0].size, digits);
}

TEST(types_of_times)
{
	check_time("DateTime", 0, SHAPE_SECONDS, 0);
	check_time("DateTime(\\'Europe/Berlin\\')", 0, SHAPE_SECONDS, 0);
	check_time("DateTime64(9)", 0, SHAPE_TICKS, 9);
	check_time("DateTime64(3, \\'UTC\\')", 0, SHAPE_TICKS, 3);
	check_time("DateTime64", -EBADMSG, 0, 0);
	check_time("DateTime64()", -EBADMSG, 0, 0);
	check_time("DateTime64(10)", -EBADMSG, 0, 0);
	check_time("Date", -EBADMSG, 0, 0);
	check_time("Int64", -EBADMSG, 0, 0);
}

TEST(columns_that_are_missing)
{
	struct layout l;

	CHECK_INT(read_samples("ts\tDateTime\n", &l), -EBADMSG);
	CHECK_STR(why, "the table 't' has no column 'value'");
	CHECK_INT(read_samples("value\tInt64\nmine\tFloat64\nts\tDateTime\nlabels\tMap(String, "
			       "String)\n",
			       &l),
		  0);
	CHECK(strstr(why, "'thread'") && strstr(why, "'row'"));
	CHECK(!strstr(why, "labels") && !strstr(why, "mine") && !strstr(why, "'ts'"));
	CHECK_INT(l.n, 3);
	CHECK_STR(l.insert, "INSERT%20INTO%20%60db%60.%60t%60%20%28%60value%60%2C%20%60ts%60%2C%20"
			    "%60labels%60%29%20FORMAT%20RowBinary");
	/* no table, another server */
	CHECK_INT(read_samples("", &l), 0);
	CHECK_INT(l.n, 0);
	CHECK_INT(read_samples("<html>\n", &l), -EBADMSG);
	CHECK(strstr(why, "is 'url' right?"));
}

/* A server that repeats a column can't make the list of columns longer than its room. */
TEST(columns_that_are_repeated)
{
	struct buf b = {0};
	struct layout l;

	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "ts\tDateTime\nvalue\tInt64\n");
	CHECK(!buf_add(&b, "", 1));
	CHECK_INT(read_samples(b.p, &l), 0);
	CHECK_INT(l.n, FIELDS);
	CHECK(strlen(l.insert) < sizeof(l.insert));
	buf_fini(&b);
}

TEST(statements_by_version)
{
	char *s = layout_create(SAMPLES, "d", "t", 2609, 86400);

	CHECK(strstr(s, "CREATE TABLE IF NOT EXISTS `d`.`t` (`ts` DateTime64(6, 'UTC'), "));
	CHECK(strstr(s, "`labels` Map(LowCardinality(String), String)") &&
	      !strstr(s, "labels.key"));
	CHECK(strstr(s, "`span_id` String CODEC(ZSTD(1)), ") &&
	      strstr(s, ", INDEX `span_id_filter` `span_id` TYPE bloom_filter(0.01) GRANULARITY 1) "
			"ENGINE"));
	CHECK(strstr(s, " TTL toDateTime(ts) + toIntervalSecond(86400)"));
	free(s);
	/* stacks go after the samples that have them */
	s = layout_create(STACKS, "d", "t", LAYOUT_MODERN, 86400);
	CHECK(strstr(s, " ORDER BY stack_id TTL toDateTime(ts) + toIntervalSecond(172800)"));
	free(s);
	s = layout_create(SAMPLES, "d", "t", 1816, 86400);
	CHECK(strstr(s, "`ts` DateTime('UTC'), ") && strstr(s, "`labels.key` Array(String)"));
	CHECK(strstr(s, "`span_id` String, ") && !strstr(s, "INDEX"));
	CHECK(!strstr(s, "Map") && !strstr(s, "LowCardinality") && !strstr(s, "CODEC") &&
	      !strstr(s, "TTL"));
	free(s);
	s = layout_create(SAMPLES, "d", "t", 2609, 0);
	CHECK(!strstr(s, "TTL"));
	free(s);
}

/* ---- rows ---- */

TEST(bodies)
{
	static const uint8_t id[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	struct fusee_bytes b = {.most = 34};

	fusee_bytes_varint(&b, 300);
	fusee_bytes_number(&b, 0x01020304, 4);
	body_text(&b, fusee_text("ab"));
	body_uuid(&b, id);
	CHECK_INT(b.len, 2 + 4 + 3 + 16);
	CHECK(!memcmp(b.p,
		      "\xac\x02\x04\x03\x02\x01\x02"
		      "ab\7\6\5\4\3\2\1\0\17\16\15\14\13\12\11\10",
		      25));
	fusee_bytes_number(&b, 1, 8);
	CHECK_INT(b.error, 0);
	body_text(&b, fusee_text("a"));
	CHECK_INT(b.error, -E2BIG);
	CHECK(b.len <= 34);
	fusee_bytes_reset(&b);
	fusee_bytes_number(&b, 1, 1);
	CHECK_INT(b.len, 1);
	fusee_bytes_fini(&b);
}

TEST(rows_by_type)
{
	struct fusee_rows_label label = {FUSEE_TEXT("k"), FUSEE_TEXT("v")};
	struct fusee_rows_sample s = {.value = -2, .labels = {&label, 1, sizeof(label)}};
	struct builder *b;
	struct fusee_profile p = *fake_profile(&b, 7, 1, NULL);
	struct fusee_bytes body = {.most = 1000};
	struct layout l;

	p.start_ns = 5 * NS + 123456789;
	s.own[FUSEE_ROWS_SERVICE] = fusee_text("x");
	s.own[FUSEE_ROWS_SPAN] = fusee_text("0a");
	CHECK_INT(read_samples("value\tInt16\nts\tDateTime64(3)\nservice\tNullable(String)\nlabels"
			       "\tMap(String, String)\nlabels.value\tArray(Nullable(String))\n"
			       "profile_id\tString\nrow\tUInt8\nspan_id\tString\n",
			       &l),
		  0);
	CHECK_INT(encode_sample(&body, &l, &p, &s, 9), 0);
	CHECK_INT(body.len, 2 + 8 + 3 + 5 + 4 + 37 + 1 + 3);
	CHECK(!memcmp(body.p,
		      "\xfe\xff\x03\x14\0\0\0\0\0\0\0\1x\1\1k\1v\1\0\1v$07000000-0000-0000-0000-"
		      "000000000000\11\2"
		      "0a",
		      body.len));
	/* before 1970, and far behind it */
	fusee_bytes_reset(&body);
	CHECK_INT(read_samples("value\tUInt8\nts\tDateTime\n", &l), 0);
	p.start_ns = UINT64_MAX;
	CHECK_INT(encode_sample(&body, &l, &p, &s, 9), 0);
	CHECK(body.len == 5 && !memcmp(body.p, "\xfe\xff\xff\xff\xff", 5));
	fusee_bytes_fini(&body);
	builder_free(b);
}

/* ---- answers ---- */

static void check_answer(long status, const char *head, const char *body, bool silent,
			 enum fusee_http_verdict verdict, const char *said)
{
	struct fusee_http_answer http = {.status = status,
					 .error = "",
					 .head = fusee_text(head),
					 .body = fusee_text(body),
					 .complete = true};
	struct answer a;

	answer_read(&http, silent, &a);
	CHECK_INT(a.verdict, verdict);
	CHECK_STR(a.words, said);
}

#define OLD(code, words) \
	"Code: " code ", e.displayText() = DB::Exception: " words ", e.what() = DB::Exception"
#define NEW(code, words) "Code: " code ". DB::Exception: " words

TEST(answers)
{
	static const char *const files[] = {NEW("74", "x"), NEW("75", "x"), NEW("76", "x"),
					    NEW("745", "x"), NEW("1001", "x")};
	static const char other[] = "but not as ClickHouse does: is 'url' right?";

	check_answer(200, "", "", true, FUSEE_HTTP_TAKEN, "");
	check_answer(200, "", "18.16.1\n", false, FUSEE_HTTP_TAKEN, "");
	check_answer(200, "", "<html>", true, FUSEE_HTTP_DENIED, other);
	check_answer(200, "", "ok", true, FUSEE_HTTP_REFUSED, other);
	/* an error behind a header of success */
	check_answer(200, "", NEW("252", "Too many parts"), true, FUSEE_HTTP_LATER,
		     NEW("252", "Too many parts"));
	check_answer(404, "", OLD("60", "Table a.b doesn't exist."), true, FUSEE_HTTP_REFUSED,
		     OLD("60", "Table a.b doesn't exist."));
	check_answer(500, "", NEW("53", "Type mismatch") "\nmore", true, FUSEE_HTTP_REFUSED,
		     NEW("53", "Type mismatch"));
	check_answer(500, "", OLD("202", "Too many simultaneous queries"), true, FUSEE_HTTP_LATER,
		     OLD("202", "Too many simultaneous queries"));
	check_answer(500, "", NEW("242", "x"), true, FUSEE_HTTP_LATER, NEW("242", "x"));
	check_answer(500, "X-ClickHouse-Exception-Code: 242\r\n", "x", true, FUSEE_HTTP_LATER, "x");
	check_answer(500, "X-ClickHouse-Exception-Code: 62\r\n", "x", true, FUSEE_HTTP_REFUSED,
		     "x");
	check_answer(401, "", OLD("193", "Wrong password"), true, FUSEE_HTTP_DENIED,
		     OLD("193", "Wrong password") " ('user' and 'password_file')");
	check_answer(403, "", NEW("516", "x"), true, FUSEE_HTTP_DENIED,
		     NEW("516", "x") " ('user' and 'password_file')");
	check_answer(404, "", NEW("81", "x"), false, FUSEE_HTTP_DENIED,
		     NEW("81", "x") " (CREATE DATABASE makes it)");
	check_answer(500, "", NEW("497", "x"), true, FUSEE_HTTP_DENIED, NEW("497", "x"));
	check_answer(500, "", NEW("396", "x"), true, FUSEE_HTTP_TOO_LARGE, NEW("396", "x"));
	check_answer(500, "", NEW("99999999", "x"), true, FUSEE_HTTP_REFUSED, NEW("99999999", "x"));
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		check_answer(500, "", files[i], true, FUSEE_HTTP_LATER, files[i]);
	/* a code that is not known */
	check_answer(503, "", NEW("9999", "x"), true, FUSEE_HTTP_LATER, NEW("9999", "x"));
	check_answer(429, "", NEW("9999", "x"), true, FUSEE_HTTP_LATER, NEW("9999", "x"));
	check_answer(501, "", NEW("9999", "x"), true, FUSEE_HTTP_REFUSED, NEW("9999", "x"));
	check_answer(503, "", NEW("53", "x"), true, FUSEE_HTTP_LATER, NEW("53", "x"));
	/* of something before the server */
	check_answer(503, "", "no backend", true, FUSEE_HTTP_LATER, "no backend");
	check_answer(413, "", "", true, FUSEE_HTTP_TOO_LARGE, "");
	check_answer(404, "", "not found", true, FUSEE_HTTP_DENIED, "not found");
	check_answer(0, "", "", true, FUSEE_HTTP_LATER, "");
}

/* ---- stacks that are known ---- */

TEST(known_stacks)
{
	struct known k = {0};

	known_begin(&k, T * NS);
	CHECK(!known_has(&k, 5));
	known_add(&k, 5);
	known_add(&k, 5 + (1ll << 40)); /* of the same slot */
	known_add(&k, 0);
	CHECK(known_has(&k, 5) && known_has(&k, 5 + (1ll << 40)) && !known_has(&k, 0));
	CHECK(!known_has(&k, 5 + (2ll << 40)));
	CHECK_INT(k.n, 2);
	known_begin(&k, (T + 1) * NS);
	CHECK(known_has(&k, 5));
	known_begin(&k, (T + 3600) * NS);
	CHECK(!known_has(&k, 5));
	for (int64_t i = 1; i < 1000000; i++)
		known_add(&k, i);
	CHECK_INT(k.n, KNOWN_SLOTS / 2);
	CHECK(known_has(&k, KNOWN_SLOTS / 2) && !known_has(&k, 999999));
	known_fini(&k);
}

/* ---- deliveries ---- */

#define SAMPLES_LINES "ts\tDateTime\nvalue\tInt64\nrow\tUInt32\n" /* rows of 16 bytes */
#define STACKS_LINES "stack_id\tInt64\n"

static int port;

static struct fake *sink_of(const char *option, const char *value)
{
	struct fake *f;

	port = serve_by("tests/run/lib/clickhouse_http.py", NULL, NULL, NULL);
	f = begun(fake_new(&fusee_plugin, "url", text("http://127.0.0.1:%d", port), "database",
			   "db", option, value, NULL));
	return f;
}

static struct fake *with_tables(const char *option, const char *value)
{
	scratch();
	put("samples", SAMPLES_LINES);
	put("stacks", STACKS_LINES);
	return sink_of(option, value);
}

static int deliver(struct fake *f, uint32_t id, uint32_t n, uint32_t attempt)
{
	struct builder *b;
	int r = fake_consume(f, fake_profile(&b, id, n, "service_name", "web", NULL), attempt);

	builder_free(b);
	return r;
}

/* How many INSERTs into a table came. */
static int inserts(const char *table)
{
	const char *statement = text("\"INSERT INTO `db`.`%s`", table);
	int n = 0;

	for (const char *at = read_file("log"); (at = strstr(at, statement)); at++)
		n++;
	return n;
}

/* The numbers of the rows that request n has, as "0 1 2". */
static const char *rows_in(int n)
{
	static char all[1000];
	struct buf b = {0};
	int fd = open(text("%s/%d.body", dir, n), O_RDONLY);
	size_t at = 0;

	CHECK(fd >= 0 && !buf_read_fd(&b, fd, 1 << 20) && b.len % 16 == 0);
	close(fd);
	*all = '\0';
	for (uint64_t i = 0; i < b.len; i += 16) {
		uint32_t ts, row;
		int64_t value;

		memcpy(&ts, b.p + i, sizeof(ts));
		memcpy(&value, b.p + i + 4, sizeof(value));
		memcpy(&row, b.p + i + 12, sizeof(row));
		CHECK_INT(ts, T);
		CHECK_INT(value, 10000000);
		at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%u", i ? " " : "", row);
	}
	buf_fini(&b);
	return all;
}

TEST(stacks_come_before_samples)
{
	struct fake *f = with_tables("headers", "X-Mine=1");

	CHECK_INT(deliver(f, 1, 3, 0), 0);
	CHECK_INT(requests(), 4); /* two for the columns */
	CHECK(strstr(read_file("log"), "\"n\": 3, \"statement\": \"INSERT INTO `db`.`stacks` "
				       "(`stack_id`) FORMAT RowBinary\""));
	CHECK(logged("\"n\": 4, \"statement\": \"INSERT INTO `db`.`samples` (`ts`, `value`, `row`) "
		     "FORMAT RowBinary\""));
	CHECK(logged("\"content-encoding\": \"gzip\"") && logged("\"x-mine\": \"1\""));
	CHECK_STR(rows_in(4), "0 1 2");
	CHECK_INT(fake_count(f, "rows_sent{table=\"stacks\"}"), 3);
	CHECK_INT(fake_count(f, "rows_sent{table=\"samples\"}"), 3);
	CHECK_INT(fake_count(f, "bytes_sent"), 3 * 8 + 3 * 16);
	/* the columns are known then, and so are stacks */
	CHECK_INT(deliver(f, 2, 4, 0), 0);
	CHECK_INT(requests(), 6);
	CHECK_INT(fake_count(f, "rows_sent{table=\"stacks\"}"), 4);
	CHECK_INT(deliver(f, 3, 4, 0), 0);
	CHECK_INT(requests(), 7);
	CHECK_STR(rows_in(7), "0 1 2 3");
	CHECK_INT(deliver(f, 4, 0, 0), 0);
	CHECK_INT(requests(), 7);
	fake_free(f);
}

TEST(large_profiles_are_several_inserts)
{
	struct fake *f = with_tables("max_rows", "2");

	CHECK_INT(deliver(f, 1, 5, 0), 0);
	CHECK_INT(inserts("stacks"), 3);
	CHECK_INT(inserts("samples"), 3);
	CHECK_STR(rows_in(6), "0 1");
	CHECK_STR(rows_in(7), "2 3");
	CHECK_STR(rows_in(8), "4");
	fake_free(f);
}

TEST(an_attempt_goes_on_where_the_last_ended)
{
	struct fake *f = with_tables("max_rows", "2");

	put("answers", "*\n*\n*\n*\n503 no backend\n");
	CHECK_INT(deliver(f, 1, 5, 0), -EAGAIN);
	CHECK(strstr(f->error, "answered 503: no backend"));
	CHECK_STR(rows_in(7), "2 3");
	CHECK_INT(deliver(f, 1, 5, 1), 0);
	CHECK_INT(requests(), 9);
	CHECK_STR(rows_in(8), "2 3");
	CHECK_STR(rows_in(9), "4");
	/* a second delivery is complete, and the same */
	CHECK_INT(deliver(f, 1, 5, 0), 0);
	CHECK_INT(requests(), 12);
	CHECK_STR(rows_in(10), "0 1");
	CHECK_INT(fake_count(f, "rows_refused"), 0);
	fake_free(f);
}

TEST(too_large_is_halved)
{
	struct fake *f = with_tables("gzip", "false");

	put("answers", "*\n413 too large\n413 too large\n500 " NEW("396", "limit") "\n*\n");
	CHECK_INT(deliver(f, 1, 4, 0), -E2BIG);
	CHECK(!logged("content-encoding"));
	CHECK_STR(rows_in(4), "0 1 2 3");
	CHECK_STR(rows_in(5), "0 1");
	CHECK_STR(rows_in(6), "0"); /* this row is lost */
	CHECK_STR(rows_in(7), "1");
	CHECK_STR(rows_in(9), "3");
	CHECK_INT(fake_count(f, "rows_refused"), 1);
	CHECK_INT(fake_count(f, "rows_sent{table=\"samples\"}"), 3);
	fake_free(f);
}

TEST(tables_are_made_on_request)
{
	struct fake *f;

	scratch();
	f = sink_of("create", "false");
	CHECK_INT(deliver(f, 1, 1, 0), FAKE_DENIED);
	CHECK_STR(f->error, text("'http://127.0.0.1:%d' has no table 'db.stacks', or does not show "
				 "it to this user: create = true makes it",
				 port));
	CHECK_INT(fake_count(f, "rows_refused"), 0);
	fake_free(f);
	put("new-samples", SAMPLES_LINES);
	put("new-stacks", STACKS_LINES);
	put("version", "18.16.1\n");
	f = begun(fake_new(&fusee_plugin, "url", text("http://127.0.0.1:%d", port), "database",
			   "db", "create", "true", "keep", "1d", NULL));
	CHECK_INT(deliver(f, 1, 2, 0), 0);
	CHECK(logged("CREATE TABLE IF NOT EXISTS `db`.`samples`") && !logged("Map("));
	CHECK(strstr(f->logged.p, "'keep' is not for ClickHouse 18.16"));
	fake_free(f);
}

TEST(columns_are_looked_at_again)
{
	struct fake *f = with_tables("gzip", "false");

	CHECK_INT(deliver(f, 1, 2, 0), 0);
	put("samples", "ts\tDateTime\nvalue\tInt64\nrow\tUInt32\npid\tNullable(UInt8)\n");
	put("answers", "500 " NEW("33", "Cannot read all data") "\n");
	CHECK_INT(deliver(f, 2, 2, 0), 0);
	CHECK(logged("INSERT INTO `db`.`samples` (`ts`, `value`, `row`, `pid`)"));
	/* but the same columns are not tried twice */
	put("answers", "*\n500 " NEW("53", "Type mismatch") "\n");
	CHECK_INT(deliver(f, 3, 7, 0), -EBADMSG);
	CHECK(strstr(f->error, "answered 500: " NEW("53", "Type mismatch")));
	CHECK_INT(fake_count(f, "rows_refused"), 7);
	put("stacks", "stack_id\tFloat64\n");
	put("answers", "500 " NEW("53", "Type mismatch") "\n");
	CHECK_INT(deliver(f, 4, 1, 0), FAKE_DENIED);
	CHECK(strstr(f->error, "the column 'stack_id' of table 'stacks' has the type Float64"));
	fake_free(f);
}

TEST(a_table_that_vanishes_is_made_again)
{
	struct fake *f = with_tables("create", "true");

	put("new-samples", SAMPLES_LINES);
	CHECK_INT(deliver(f, 1, 2, 0), 0);
	CHECK(!unlink(text("%s/samples", dir)));
	put("answers", "404 " NEW("60", "Table db.samples does not exist") "\n");
	CHECK_INT(deliver(f, 2, 2, 0), 0);
	CHECK(logged("CREATE TABLE IF NOT EXISTS `db`.`samples`"));
	CHECK(!logged("CREATE TABLE IF NOT EXISTS `db`.`stacks`"));
	CHECK_STR(rows_in(requests()), "0 1");
	CHECK_INT(inserts("samples"), 3);
	CHECK_INT(inserts("stacks"), 2);
	CHECK_INT(fake_count(f, "rows_refused"), 0);
	/* a server that always says so gets no more attempts */
	put("answers", "404 " NEW("60", "x") "\n*\n404 " NEW("60", "x") "\n");
	CHECK_INT(deliver(f, 3, 2, 0), -EBADMSG);
	CHECK_INT(inserts("samples"), 5);
	CHECK_INT(fake_count(f, "rows_refused"), 2);
	put("answers", "413 x\n*\n404 " NEW("60", "x") "\n"); /* of one row behind another */
	put("truncate", "0 table = 'stacks'");
	CHECK_INT(deliver(f, 4, 2, 0), -EAGAIN);
	CHECK_INT(deliver(f, 4, 2, 1), 0);
	CHECK_STR(rows_in(requests()), "0 1");
	fake_free(f);
}

TEST(answers_that_end_early)
{
	struct fake *f = with_tables("gzip", "false");

	/* a column would not be filled */
	put("truncate", "24 table = 'samples'");
	CHECK_INT(deliver(f, 1, 2, 0), -EAGAIN);
	CHECK(strstr(f->error, "answered 200: the answer ended early"));
	CHECK_INT(inserts("stacks"), 0);
	/* an exception might follow */
	put("truncate", "0 INSERT INTO `db`.`samples`");
	CHECK_INT(deliver(f, 1, 2, 1), -EAGAIN);
	CHECK(strstr(f->error, "answered 200: the answer ended early"));
	CHECK_INT(inserts("samples"), 1);
	CHECK_INT(deliver(f, 1, 2, 2), 0);
	CHECK_INT(inserts("samples"), 2);
	CHECK_STR(rows_in(requests()), "0 1");
	CHECK_INT(fake_count(f, "rows_sent{table=\"samples\"}"), 2);
	CHECK_INT(fake_count(f, "rows_refused"), 0);
	fake_free(f);
}

TEST(refuses_options)
{
	static const char *const names[] = {"", "a`b", "a'b", "a\\b", "a\nb"};
	static const struct {
		const char *keep;
		int result;
	} keeps[] = {{"1m", -EINVAL}, {"1h", 0}, {"14600d", 0}, {"14601d", -EINVAL}, {"0", 0}};
	struct fake *f;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		f = fake_new(&fusee_plugin, "url", "http://h", "samples", names[i], NULL);
		CHECK_INT(fake_init(f), -EINVAL);
		CHECK(strstr(f->error, "option 'samples'"));
		fake_free(f);
	}
	for (size_t i = 0; i < sizeof(keeps) / sizeof(*keeps); i++) {
		f = fake_new(&fusee_plugin, "url", "http://h", "keep", keeps[i].keep, NULL);
		CHECK_INT(fake_init(f), keeps[i].result);
		CHECK(!keeps[i].result ||
		      strstr(f->error, "option 'keep': an hour at least, 40 years at most"));
		fake_free(f);
	}
	f = fake_new(&fusee_plugin, "url", "nonsense", NULL);
	CHECK_INT(fake_init(f), -EINVAL);
	fake_free(f);
}
