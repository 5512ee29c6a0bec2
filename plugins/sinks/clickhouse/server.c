/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <stdlib.h>

#define STATEMENT 512 /* bytes of a query of a table's columns */

/* Denied: profiles wait until a person corrects the tables or the address. -EAGAIN. */
static int deny(struct server *s, struct fusee_sink_out *out)
{
	const struct fusee_sink_host *host = s->self->host->sink;

	if (FUSEE_HAS(host, denied))
		host->denied(out);
	return -EAGAIN;
}

/* Sends a statement; *http is its answer, if that is not an error. 0, or -errno after host->fail().
 */
static int ask(struct server *s, struct fusee_sink_out *out, const char *statement,
	       struct fusee_http_answer *http)
{
	struct fusee_http_request q = {.content_type = "text/plain; charset=UTF-8",
				       .body = fusee_text(statement),
				       .out = out};
	struct answer a;
	int r = fusee_http_send(s->client, &q, http);

	if (r)
		return r;
	answer_read(http, false, &a);
	return fusee_http_result(s->client, out, http, a.verdict, a.words);
}

/* The columns of a table, none if there is no such table. */
static int describe(struct server *s, struct fusee_sink_out *out, enum table t)
{
	char statement[STATEMENT], why[FUSEE_SENTENCE / 4];
	struct fusee_http_answer http;
	int r;

	snprintf(statement, sizeof(statement),
		 "SELECT name, type FROM system.columns WHERE database = '%s' AND table = '%s' AND "
		 "default_kind NOT IN ('MATERIALIZED', 'ALIAS', 'EPHEMERAL') FORMAT TabSeparated",
		 s->database, s->tables[t]);
	r = ask(s, out, statement, &http);
	if (r)
		return r;
	r = layout_read(t, s->database, s->tables[t], http.body, &s->layouts[t], why, sizeof(why));
	if (r)
		return fusee_fail(s->self, r == -EBADMSG ? deny(s, out) : r, "'%s': %s",
				  fusee_http_shown(s->client), why);
	if (*why)
		fusee_log(s->self, FUSEE_INFO, "the table '%s.%s' does not have %s: not filled",
			  s->database, s->tables[t], why);
	return 0;
}

/* "18.16.1" becomes 1816. 0: not a version. */
static uint32_t version_of(struct fusee_str text)
{
	unsigned major = 0, minor = 0;

	if (!text.len || sscanf(text.p, "%4u.%2u", &major, &minor) != 2)
		return 0;
	return major * 100 + minor;
}

static int create(struct server *s, struct fusee_sink_out *out, enum table t)
{
	struct fusee_http_answer http;
	uint32_t version;
	char *statement;
	int r = ask(s, out, "SELECT version()", &http);

	if (r)
		return r;
	version = version_of(http.body);
	if (!version)
		return fusee_fail(s->self, deny(s, out),
				  "'%s' answered %ld, but not as ClickHouse does: is 'url' right?",
				  fusee_http_shown(s->client), http.status);
	if (s->keep && version < LAYOUT_MODERN)
		fusee_log(s->self, FUSEE_WARNING,
			  "'keep' is not for ClickHouse %u.%u: drop old partitions of '%s.%s'",
			  version / 100, version % 100, s->database, s->tables[t]);
	statement = layout_create(t, s->database, s->tables[t], version, s->keep);
	if (!statement)
		return fusee_fail(s->self, -ENOMEM, "no memory for a statement");
	r = ask(s, out, statement, &http);
	free(statement);
	if (!r)
		fusee_log(s->self, FUSEE_INFO, "the table '%s.%s' was made", s->database,
			  s->tables[t]);
	return r;
}

static int look(struct server *s, struct fusee_sink_out *out, enum table t)
{
	int r = describe(s, out, t);

	if (r || s->layouts[t].n)
		return r;
	if (s->create) {
		r = create(s, out, t);
		if (!r)
			r = describe(s, out, t);
	}
	if (r || s->layouts[t].n)
		return r;
	return fusee_fail(s->self, deny(s, out),
			  "'%s' has no table '%s.%s', or does not show it to this user%s",
			  fusee_http_shown(s->client), s->database, s->tables[t],
			  s->create ? "" : ": create = true makes it");
}

int server_look(struct server *s, struct fusee_sink_out *out)
{
	int r = 0;

	s->looked = false;
	for (enum table t = STACKS; !r && t < TABLES; t++)
		r = look(s, out, t);
	s->looked = !r;
	return r;
}
