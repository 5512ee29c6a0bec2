/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a bucket: of the environment, or of a file in the form of ~/.aws/credentials. */
#ifndef PARQUET_CREDENTIALS_H
#define PARQUET_CREDENTIALS_H

#include <fusee/helpers.h>
#include <fusee/http_curl.h>

struct credentials {
	char id[129], secret[256], token[8192]; /* token: "" for none */
};

/* file: "" for AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment;
 * of a file AWS_PROFILE, or "default", is the section. 0, or -errno and why. The caller clears
 * them. */
int credentials_read(struct credentials *, const struct fusee_self *, const char *file,
		     char why[FUSEE_HTTP_WHY]);
void credentials_clear(struct credentials *);
#endif
