/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of sinks that send to an HTTP server share; the server is
 * tests/run/lib/http_server.py. Include it once in a test program. */
#ifndef SERVED_SINK_H
#define SERVED_SINK_H

#include "lib/begun.h"
#include "lib/served.h"

extern const struct fusee_plugin fusee_plugin;

/* A server on a new folder. -> its port */
SERVED int served(void)
{
	scratch();
	return serve(NULL, NULL, NULL);
}

SERVED struct fake *sink_of(const char *url, const char *name, const char *value)
{
	return begun(fake_new(&fusee_plugin, "url", url, SINK_OPTIONS name, value, NULL));
}

/* With an option; the path begins with a slash. */
SERVED struct fake *sink_at(int port, const char *path, const char *name, const char *value)
{
	return sink_of(text("http://127.0.0.1:%d%s", port, path), name, value);
}

/* A delivery to that path ends so, with these words in its sentence. */
SERVED void check_said(struct fake *f, int expected, const char *said)
{
	struct builder *b;

	CHECK_INT(fake_consume(f, fake_profile(&b, 1, 3, "host", "n1", NULL), 0), expected);
	if (!strstr(f->error, said))
		CHECK_STR(f->error, said);
	builder_free(b);
	fake_free(f);
}
#endif
