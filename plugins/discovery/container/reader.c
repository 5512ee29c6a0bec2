/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "reader_internal.h"

struct reader {
	struct reader_base base;
	struct json_reader *json; /* one of them is NULL */
	struct grpc_reader *grpc;
};

struct reader *reader_new(enum daemon_kind kind, struct chosen_list chosen, reader_each each,
			  void *arg)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->base = (struct reader_base){.kind = kind, .chosen = chosen, .each = each, .arg = arg};
	if (!container_init(&r->base.container, chosen.n)) {
		if (kind == DAEMON_DOCKER)
			r->json = json_reader_new(&r->base);
		else
			r->grpc = grpc_reader_new(&r->base);
	}
	if (r->json || r->grpc)
		return r;
	reader_free(r);
	return NULL;
}

void reader_free(struct reader *r)
{
	if (!r)
		return;
	json_reader_free(r->json);
	grpc_reader_free(r->grpc);
	container_fini(&r->base.container);
	free(r);
}

int reader_begin(struct reader *r, enum ask ask, const char *space)
{
	r->base.ask = ask;
	r->base.problem = NULL;
	TEXT_SET(r->base.space, fusee_text(space));
	return r->json ? json_reader_begin(r->json) : grpc_reader_begin(r->grpc);
}

int reader_feed(struct reader *r, const char *bytes, size_t n)
{
	return r->json ? json_reader_feed(r->json, bytes, n) : grpc_reader_feed(r->grpc, bytes, n);
}

int reader_end(struct reader *r)
{
	return r->json ? json_reader_end(r->json) : grpc_reader_end(r->grpc);
}

const char *reader_problem(const struct reader *r)
{
	return r->base.problem;
}

const char *reader_message(const struct reader *r)
{
	return r->json ? json_reader_message(r->json) : "";
}
