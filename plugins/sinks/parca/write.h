/* SPDX-License-Identifier: Apache-2.0 */
/* Parca's ProfileStoreService.WriteRaw: its requests and its answers, by gRPC-web or by the JSON of
 * its gateway. parca.c calls write.c and answer.c, which don't call each other. */
#ifndef PARCA_WRITE_H
#define PARCA_WRITE_H

#include <fusee/bytes.h>
#include <fusee/http.h>

enum write_protocol { WRITE_GRPC_WEB, WRITE_JSON };

#define WRITE_PATH_GRPC "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
#define WRITE_PATH_JSON "/api/profiles/writeraw"

/* The body of a request with one series of one profile. name: __name__, the profile's; labels:
 * struct fusee_label, with texts. Adds to *to. 0 or -ENOMEM. */
int write_encode(enum write_protocol, const char *name, struct fusee_table labels,
		 struct fusee_str pprof, struct fusee_bytes *to);

/* Codes of google.rpc.Code. */
enum write_code {
	CODE_OK = 0,
	CODE_CANCELLED = 1,
	CODE_UNKNOWN = 2,
	CODE_DEADLINE_EXCEEDED = 4,
	CODE_NOT_FOUND = 5,
	CODE_ALREADY_EXISTS = 6,
	CODE_PERMISSION_DENIED = 7,
	CODE_RESOURCE_EXHAUSTED = 8,
	CODE_FAILED_PRECONDITION = 9,
	CODE_ABORTED = 10,
	CODE_UNIMPLEMENTED = 12,
	CODE_INTERNAL = 13,
	CODE_UNAVAILABLE = 14,
	CODE_UNAUTHENTICATED = 16,
	CODE_LAST = 16,
};

/* Of gRPC-web and gRPC: the status, -1: the answer has none. */
int write_code(const struct fusee_http_answer *);
/* Of gRPC-web: the first message of the answer. false: it has none. */
bool write_message(const struct fusee_http_answer *, struct fusee_str *message);

/* The server's verdict on the request, and its words for the sentence. */
enum fusee_http_verdict write_verdict(enum write_protocol, const struct fusee_http_answer *,
				      char words[FUSEE_HTTP_WORDS]);
#endif
