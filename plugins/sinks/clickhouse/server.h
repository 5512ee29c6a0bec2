/* SPDX-License-Identifier: Apache-2.0 */
/* Queries a server for the columns of its tables, and creates tables on request. */
#ifndef CLICKHOUSE_SERVER_H
#define CLICKHOUSE_SERVER_H

#include "answer.h"
#include "layout.h"

struct server {
	const struct fusee_self *self;
	struct fusee_http *client;
	const char *database, *tables[TABLES];
	bool create;
	uint64_t keep; /* seconds; 0: for ever */

	bool looked;
	struct layout layouts[TABLES]; /* after server_look() */
};

/* Fills s->layouts. 0, or -errno after host->fail(). */
int server_look(struct server *, struct fusee_sink_out *);
#endif
