/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTAINER_READER_INTERNAL_H
#define CONTAINER_READER_INTERNAL_H

#include "reader.h"

/* Shared by the readers of both forms of answers. */
struct reader_base {
	enum daemon_kind kind;
	enum ask ask;
	struct chosen_list chosen;
	reader_each each;
	void *arg;
	struct container container; /* that is read now */
	char space[CONTAINER_NAME]; /* of the request */
	const char *problem;
};

/* Docker's API. As the functions of reader.h. */
struct json_reader;
struct json_reader *json_reader_new(struct reader_base *); /* borrowed */
void json_reader_free(struct json_reader *);
int json_reader_begin(struct json_reader *);
int json_reader_feed(struct json_reader *, const char *bytes, size_t n);
int json_reader_end(struct json_reader *);
const char *json_reader_message(const struct json_reader *);

/* gRPC. */
struct grpc_reader;
struct grpc_reader *grpc_reader_new(struct reader_base *); /* borrowed */
void grpc_reader_free(struct grpc_reader *);
int grpc_reader_begin(struct grpc_reader *);
int grpc_reader_feed(struct grpc_reader *, const char *bytes, size_t n);
int grpc_reader_end(struct grpc_reader *);

/* The path of a control group in a container's specification (JSON); "" if it has none. */
void spec_cgroup(struct fusee_str spec, char path[CONTAINER_PATH]);
#endif
