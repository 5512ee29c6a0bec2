/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket for tests of sink.parquet: tests/run/lib/s3_server.py, which says what the folder's file
 * "faults" may have. Include it after lib/served.h.
 */
#ifndef SERVED_S3_H
#define SERVED_S3_H

extern const struct fusee_plugin fusee_plugin;

static char endpoint[64];

SERVED void keys(const char *id, const char *secret)
{
	setenv("AWS_ACCESS_KEY_ID", id, 1);
	setenv("AWS_SECRET_ACCESS_KEY", secret, 1);
}

/* A server, and an environment with the right keys and nothing else of AWS. */
SERVED void begin(void)
{
	static const char *const others[] = {"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION",
					     "AWS_DEFAULT_REGION"};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		unsetenv(others[i]);
	keys("AKTEST", "secret/of+AKTEST");
	scratch();
	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%d",
		 serve_by("tests/run/lib/s3_server.py", NULL, NULL, NULL));
}

SERVED struct fake *sink_of(const char *bucket)
{
	struct fake *f = fake_new(&fusee_plugin, "bucket", bucket, "endpoint", endpoint, NULL);

	CHECK_INT(fake_init(f), 0);
	return f;
}

/* The number that a command prints in the folder. */
SERVED int count(const char *command)
{
	FILE *f = popen(text("cd '%s' && %s", dir, command), "r");
	int n = -1;

	CHECK(f && fscanf(f, "%d", &n) == 1);
	pclose(f);
	return n;
}

SERVED int objects(void)
{
	return count("find objects -type f 2>/dev/null | wc -l");
}

SERVED int kinds(const char *kind)
{
	return count(text("cat log 2>/dev/null | grep -c '\"kind\": \"%s\"'", kind));
}
#endif
