/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of Pyroscope's two services, and their answers. push.v1.PusherService/Push, by Connect's
 * unary protocol, and POST /ingest of servers before it: fields, statuses and texts as of Pyroscope
 * 1.0 to 2.2.
 */
#ifndef PYROSCOPE_PUSH_H
#define PYROSCOPE_PUSH_H

#include <fusee/bytes.h>
#include <fusee/http.h>
#include <fusee/series.h>

#define PUSH_PATH "/push.v1.PusherService/Push"
#define INGEST_PATH "/ingest"
#define PUSH_BURST (2ull << 20) /* bytes that a server accepts at once by default */

/* The body of Push: one series with one profile, gzipped pprof. Adds to *to. 0 or
 * -ENOMEM. */
int push_encode(const char *name, struct fusee_table labels, const struct fusee_profile *,
		struct fusee_str pprof, struct fusee_bytes *to);
/* The query of /ingest. The caller frees *ret. 0 or -ENOMEM. */
int ingest_query(struct fusee_table labels, const struct fusee_profile *, char **ret);

/* The meaning of an answer of either service, and the server's words, or "". */
enum fusee_http_verdict push_verdict(const struct fusee_http_answer *,
				     char words[FUSEE_HTTP_WORDS]);
#endif
