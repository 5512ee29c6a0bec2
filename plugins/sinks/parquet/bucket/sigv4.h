/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures of requests in version 4 of AWS, as servers of S3 expect them. libcurl can sign too,
 * but before 8.13 it encodes some paths and queries differently from servers.
 */
#ifndef PARQUET_SIGV4_H
#define PARQUET_SIGV4_H

#include <time.h>

#include <fusee/helpers.h>

#define SIGV4_HASH 65             /* bytes of a SHA-256 as text with its NUL */
#define SIGV4_TIME 17             /* of "20150830T123600Z" */
#define SIGV4_AUTHORIZATION 1024u /* of a header's value */
#define SIGV4_HEADERS 32u         /* signed headers, at most */

struct sigv4_key {
	const char *id, *secret, *region, *service;
};

struct sigv4_request {
	const char *method;
	const char *path;  /* as it is sent: by sigv4_encode() */
	const char *query; /* likewise, its parameters in alphabetical order, each with '=' */
	struct fusee_table headers; /* struct fusee_label: all that are signed, in any order */
	const char *hash;           /* of the body: by sigv4_hash() */
};

void sigv4_time(char text[SIGV4_TIME], time_t);
/* SHA-256. 0 or -ENOMEM. */
int sigv4_hash(char hex[SIGV4_HASH], struct fusee_str bytes);
/* Encodes all characters except letters, digits, "-._~" and those of `keep` as %XX. The length, or
 * -E2BIG.
 */
int sigv4_encode(char *to, size_t size, struct fusee_str text, const char *keep);
/* The value of the header Authorization. 0, -ENOMEM, or -EINVAL: too many headers, or texts that
 * are too long. */
int sigv4_authorize(char value[SIGV4_AUTHORIZATION], const struct sigv4_key *,
		    const struct sigv4_request *, const char time[SIGV4_TIME]);
#endif
