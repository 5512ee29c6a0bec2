/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inserts the rows of each profile into two tables of ClickHouse, stacks before samples. The key of
 * a row is the profile's id and the row's number, and rows have the same order at each attempt. So
 * a second delivery makes rows with the same keys, even if it divides them differently into
 * inserts.
 */
#include "encode.h"
#include "known.h"
#include "server.h"

#define MAX_TEXT 65536   /* bytes of a text in a row */
#define MAX_FRAMES 16384 /* of a stack */
/* Times of a TTL have 32 bits and end in 2106; a later time would wrap into the past. */
#define MAX_KEEP (40 * 365 * 24 * FUSEE_HOUR)

struct clickhouse {
	struct fusee_self self;
	struct fusee_http_options http;
	const char *database, *samples, *stacks;
	uint64_t keep, max_bytes;
	int64_t max_rows;
	uint8_t create, gzip;

	struct fusee_http *client;
	struct server server;
	struct fusee_bytes body;
	struct known known;
	uint32_t code; /* of the last insert's exception; 0: none */
	/* the progress of the profile that was sent last */
	struct progress {
		uint8_t id[16];
		enum table table; /* earlier tables are complete */
		uint64_t next;    /* row of it */
		int lost;         /* -errno of the first row that is lost */
	} at;
};

static const struct fusee_option options[] = {
	FUSEE_HTTP_URL(struct clickhouse, http,
		       "The server's HTTP interface: http://HOST:8123, or https://HOST:8443."),
	FUSEE_OPTION_STRING(struct clickhouse, database, "default",
			    "The database of both tables; it must exist."),
	FUSEE_OPTION_STRING(struct clickhouse, samples, "samples", "The table of samples."),
	FUSEE_OPTION_STRING(struct clickhouse, stacks, "stacks",
			    "The table of the stacks' exact frames."),
	FUSEE_OPTION_BOOL(struct clickhouse, create, "false",
			  "Makes the tables if they are missing."),
	FUSEE_OPTION_DURATION(struct clickhouse, keep, "0", 0, 0,
			      "Tables that are made remove rows that are older, 1h to 40 years; 0 "
			      "keeps them for ever."),
	FUSEE_OPTION_INT(struct clickhouse, max_rows, "500000", 1, 1000000,
			 "Rows of an insert; more are sent in several."),
	FUSEE_OPTION_SIZE(struct clickhouse, max_bytes, "32MiB", 1 << 20, 1 << 30,
			  "Bytes of an insert, before compression; more are sent in several."),
	FUSEE_OPTION_BOOL(struct clickhouse, gzip, "true", "Compresses inserts."),
	FUSEE_HTTP_OPTIONS(struct clickhouse, http, "60s"),
};

/* A profile that is being sent. */
struct sending {
	struct clickhouse *c;
	const struct fusee_delivery *d;
	struct fusee_rows *rows;
};

/* ---- an insert ---- */

static uint64_t rows_of(const struct sending *s, enum table t)
{
	return t == STACKS ? fusee_rows_nstacks(s->rows) : fusee_rows_nsamples(s->rows);
}

/* Adds row i, unless the server has it. 0 or -errno. */
static int encode(struct sending *s, enum table t, uint64_t i)
{
	struct clickhouse *c = s->c;
	const struct layout *l = &c->server.layouts[t];
	struct fusee_rows_sample sample;
	struct fusee_rows_stack stack;
	int r;

	if (t == SAMPLES) {
		r = fusee_rows_fill_sample(s->rows, i, &sample);
		return r ? r : encode_sample(&c->body, l, s->d->profile, &sample, i);
	}
	if (known_has(&c->known, fusee_rows_stack_id(s->rows, i)))
		return 0;
	r = fusee_rows_fill_stack(s->rows, i, &stack);
	return r ? r : encode_stack(&c->body, l, s->d->profile, &stack);
}

/* Encodes `most` rows from `from` on, or fewer if they would exceed the limit of bytes. *end: the
 * row after them; *n: rows in the body. 0, -E2BIG: the first row alone is too long; -ENOMEM. */
static int fill(struct sending *s, enum table t, uint64_t from, uint64_t most, uint64_t *end,
		uint64_t *n)
{
	struct fusee_bytes *b = &s->c->body;
	uint64_t i = from;
	int r = 0;

	*n = 0;
	fusee_bytes_reset(b);
	for (; i < rows_of(s, t) && *n < most; i++) {
		uint64_t before = b->len;

		r = encode(s, t, i);
		if (r == -E2BIG && *n) {
			b->len = before;
			*end = i;
			return 0;
		}
		if (r) {
			*end = i + 1;
			return r;
		}
		*n += b->len > before;
	}
	*end = i;
	return 0;
}

static int insert(struct sending *s, enum table t, uint64_t n)
{
	static const char *const names[TABLES] = {[STACKS] = "stacks", [SAMPLES] = "samples"};
	struct clickhouse *c = s->c;
	struct fusee_http_request q = {.flags = c->gzip ? FUSEE_HTTP_GZIP : 0,
				       .content_type = "application/octet-stream",
				       .body = {c->body.p, c->body.len},
				       .out = s->d->out};
	char query[LAYOUT_INSERT + 8];
	struct fusee_http_answer http;
	struct answer a;
	int r;

	snprintf(query, sizeof(query), "query=%s", c->server.layouts[t].insert);
	q.query = query;
	r = fusee_http_send(c->client, &q, &http);
	if (r)
		return r;
	answer_read(&http, true, &a);
	c->code = a.code;
	if (a.verdict == FUSEE_HTTP_TAKEN) {
		fusee_count_by(&c->self, "rows_sent", "table", names[t], n);
		fusee_count(&c->self, "bytes_sent", c->body.len);
	}
	return fusee_http_result(c->client, s->d->out, &http, a.verdict, a.words);
}

/* ---- a table ---- */

static void lose(struct clickhouse *c, uint64_t rows, int err)
{
	fusee_count(&c->self, "rows_refused", rows);
	c->at.lost = c->at.lost ? c->at.lost : err;
}

static void taken(struct sending *s, enum table t, uint64_t from, uint64_t end)
{
	for (uint64_t i = from; t == STACKS && i < end; i++)
		known_add(&s->c->known, fusee_rows_stack_id(s->rows, i));
}

/* Sends the rows of a table that the server does not have yet. 0, or -errno after host->fail(). */
static int send_table(struct sending *s, enum table t)
{
	struct clickhouse *c = s->c;
	uint64_t most = (uint64_t)c->max_rows, end, n;

	while (c->at.next < rows_of(s, t)) {
		int r = fill(s, t, c->at.next, most, &end, &n);

		if (r == -ENOMEM)
			return fusee_fail(&c->self, r, "no memory for the rows of a profile");
		if (r == -E2BIG)
			fusee_fail(&c->self, r, "a row is longer than 'max_bytes'");
		else if (n)
			r = insert(s, t, n);
		if (r == -E2BIG && n > 1) {
			most = n / 2;
			continue;
		}
		if (r == -E2BIG)
			lose(c, 1, r);
		else if (r)
			return r;
		else
			taken(s, t, c->at.next, end);
		c->at.next = end;
	}
	return 0;
}

static int send_tables(struct sending *s)
{
	struct progress *at = &s->c->at;
	int r = 0;

	for (; !r && at->table < TABLES; at->table += !r) {
		r = send_table(s, at->table);
		at->next = r ? at->next : 0;
	}
	return r;
}

/* ---- a profile ---- */

/* After a refusal, queries the columns again: if they have changed, all rows are sent again with
 * the new columns. A table that was missing is empty, so all rows are sent again too. */
static int send_again(struct sending *s, int refused)
{
	struct clickhouse *c = s->c;
	struct layout before[TABLES];
	bool missing;
	int r;

	memcpy(before, c->server.layouts, sizeof(before));
	known_forget(&c->known);
	missing = c->code == ANSWER_UNKNOWN_TABLE || c->code == ANSWER_UNKNOWN_DATABASE;
	if (missing) { /* also for a later attempt, if the query fails */
		c->at.table = STACKS;
		c->at.next = 0;
	}
	r = server_look(&c->server, s->d->out);
	if (r)
		return r;
	if (!missing && !memcmp(before, c->server.layouts, sizeof(before)))
		return refused;
	c->at.table = STACKS;
	c->at.next = 0;
	return send_tables(s);
}

static int send_profile(struct sending *s)
{
	struct clickhouse *c = s->c;
	bool old = c->server.looked;
	int r;

	c->code = 0;
	r = old ? 0 : server_look(&c->server, s->d->out);
	if (!r)
		r = send_tables(s);
	if (r == -EBADMSG && old)
		r = send_again(s, r);
	if (r == -EBADMSG)
		lose(c, fusee_rows_nsamples(s->rows) - (c->at.table == SAMPLES ? c->at.next : 0),
		     r);
	return r ? r : c->at.lost;
}

static void count_shortened(struct clickhouse *c, struct fusee_rows_shortened n)
{
	fusee_count_by(&c->self, "shortened", "what", "stack", n.stacks);
	fusee_count_by(&c->self, "shortened", "what", "frames", n.frames);
	fusee_count_by(&c->self, "shortened", "what", "label", n.labels);
}

static int consume(void *ctx, const struct fusee_delivery *d)
{
	/* with ids also for tables that lack them: a row has the same number at each delivery */
	static const struct fusee_rows_options bounds = {
		.max_text = MAX_TEXT, .max_frames = MAX_FRAMES, .ids = 1};
	struct clickhouse *c = ctx;
	struct sending s = {.c = c, .d = d};
	int r = fusee_rows_open(&s.rows, d->profile, &bounds);

	if (r)
		return fusee_fail(&c->self, r, "no memory for the rows of a profile");
	if (!d->attempt || memcmp(c->at.id, d->profile->id, sizeof(c->at.id))) {
		c->at = (struct progress){.table = STACKS};
		memcpy(c->at.id, d->profile->id, sizeof(c->at.id));
	}
	known_begin(&c->known, d->profile->start_ns);
	r = send_profile(&s);
	if (!r)
		count_shortened(c, fusee_rows_count_shortened(s.rows));
	fusee_rows_close(s.rows);
	return r;
}

/* ---- the instance ---- */

static void cancel(void *ctx)
{
	fusee_http_cancel(((struct clickhouse *)ctx)->client);
}

static int check_name(struct clickhouse *c, const char *option, const char *name)
{
	if (layout_is_name(name))
		return 0;
	return fusee_fail(&c->self, -EINVAL,
			  "option '%s': '%s' is empty, longer than %d bytes, or has quotes or '\\'",
			  option, name, LAYOUT_NAME);
}

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	static const char *const own[] = {"content-encoding", NULL};
	struct clickhouse *c = ctx;
	int r;

	fusee_self_init(ctx, in, host);
	r = check_name(c, "database", c->database);
	if (!r)
		r = check_name(c, "samples", c->samples);
	if (!r)
		r = check_name(c, "stacks", c->stacks);
	if (!r && c->keep && (c->keep < FUSEE_HOUR || c->keep > MAX_KEEP))
		r = fusee_fail(&c->self, -EINVAL,
			       "option 'keep': an hour at least, 40 years at most; 0 is for ever");
	if (!r)
		r = fusee_http_open(&c->client, &c->self, &c->http, own);
	c->body.most = c->max_bytes;
	c->server = (struct server){.self = &c->self,
				    .client = c->client,
				    .database = c->database,
				    .tables = {[STACKS] = c->stacks, [SAMPLES] = c->samples},
				    .create = c->create,
				    .keep = c->keep / FUSEE_SECOND};
	return r;
}

static void fini(void *ctx)
{
	struct clickhouse *c = ctx;

	fusee_http_close(c->client);
	fusee_bytes_fini(&c->body);
	known_fini(&c->known);
}

static const struct fusee_sink_ops ops = {
	.size = sizeof(ops), .consume = consume, .cancel = cancel};

FUSEE_PLUGIN(clickhouse, FUSEE_SINK, .version = "0.1",
	     .doc = "Inserts profiles as rows into tables of ClickHouse.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct clickhouse), .init = init,
	     .fini = fini, .ops = &ops);
