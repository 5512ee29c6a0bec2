/* SPDX-License-Identifier: Apache-2.0 */
#include "view/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/credentials.h"
#include "console/outfile.h"
#include "view/push_sink.h"
#include "pprof/pprof.h"
#include "report/report.h"

#define TRIES 5 /* while the server may accept a later attempt */

static int as_pprof(const struct fusee_profile *p, const struct render_options *o, struct buf *b)
{
	(void)o;
	return pprof_encode(p, true, b);
}

static int as_folded(const struct fusee_profile *p, const struct render_options *o, struct buf *b)
{
	return render_folded(p, NULL, o, b);
}

static int as_html(const struct fusee_profile *p, const struct render_options *o, struct buf *b)
{
	return render_flamegraph(p, NULL, o, b);
}

static int as_speedscope(const struct fusee_profile *p, const struct render_options *o,
			 struct buf *b)
{
	return render_speedscope(p, NULL, o, b);
}

static int as_json(const struct fusee_profile *p, const struct render_options *o, struct buf *b)
{
	return render_json(p, NULL, o, b);
}

static const struct format {
	const char *suffix;
	int (*render)(const struct fusee_profile *, const struct render_options *, struct buf *);
} formats[] = {
	{".pb.gz", as_pprof},
	{".pprof", as_pprof},
	{".folded", as_folded},
	{".html", as_html},
	{".speedscope.json", as_speedscope},
	{".json", as_json},
};

static const struct format *format_of(const char *path)
{
	size_t len = strlen(path);

	if (outfile_descriptor(path) >= 0 || push_is_address(path))
		return &formats[0];
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		size_t n = strlen(formats[i].suffix);

		if (len >= n && !strcmp(path + len - n, formats[i].suffix))
			return &formats[i];
	}
	return NULL;
}

int output_check(const char *path, char **error)
{
	if (format_of(path))
		return 0;
	if (asprintf(error,
		     "'%s' names no format: it should end with .pb.gz, .pprof, .folded, .html,"
		     " .speedscope.json or .json",
		     path) < 0)
		*error = NULL;
	return -EINVAL;
}

bool output_is_pprof(const char *path)
{
	const struct format *f = format_of(path);

	return f && f->render == as_pprof;
}

/* Saves the bytes in another folder; *error names the file. */
static void save(const struct buf *b, const char *suffix, char **error)
{
	char *saved = NULL, *text = NULL, *why = *error;
	int r = outfile_save(b, suffix, &saved), n;

	if (r)
		n = asprintf(&text, "%s; nor to $TMPDIR, /tmp or /var/tmp (%s): it is lost",
			     why ? why : "no memory", strerror(-r));
	else
		n = asprintf(&text, "%s; it is saved as %s", why ? why : "no memory", saved);
	if (n >= 0) {
		free(why);
		*error = text;
	}
	if (!r)
		free(saved);
}

/* Sends the profile to a server by sink.http. */
static int send(const struct fusee_profile *p, const char *address, char **error)
{
	struct push_sink *s = NULL;
	char *why = NULL, *shown = strdup(address);
	int r = push_sink_open(&s, address) ? -EINVAL : push_sink_send(s, p, TRIES, &why);

	if (shown)
		credentials_hide_value(shown);
	if (r && asprintf(error, "'%s' did not take the profile: %s", shown ? shown : "",
			  why ? why : strerror(-r)) < 0)
		*error = NULL;
	free(shown);
	free(why);
	push_sink_close(s);
	return r;
}

int output_write(const struct fusee_profile *p, const struct render_options *o, const char *path,
		 char **error)
{
	const struct format *f = format_of(path);
	struct buf b = {0};
	int r;

	if (!f)
		return output_check(path, error);
	r = f->render(p, o, &b);
	if (!r)
		r = b.error;
	if (r) { /* -EINVAL: the renderer wrote why */
		bool why = r == -EINVAL && b.len;

		if (asprintf(error, "cannot write '%s': %.*s", path, why ? (int)b.len : 1024,
			     why ? b.p : strerror(-r)) < 0)
			*error = NULL;
	} else {
		r = push_is_address(path) ? send(p, path, error) : outfile_write(&b, path, error);
		if (r)
			save(&b, f->suffix, error);
	}
	buf_fini(&b);
	return r;
}
