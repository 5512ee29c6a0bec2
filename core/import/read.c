/* SPDX-License-Identifier: Apache-2.0 */
#include "import/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import/internal/folded.h"
#include "import/internal/perf_script.h"
#include "import/internal/speedscope.h"
#include "pprof/pprof.h"

#define PERF_DATA_MAGIC "PERFILE2" /* tools/perf/Documentation/perf.data-file-format.txt */

/* Has one of the two. */
struct profile_file {
	struct pprof_file *pprof;
	struct builder *builder;
	const struct fusee_profile *profile;
};

static const struct text_format {
	bool (*is)(const char *text, size_t len);
	int (*read)(struct builder *, const char *text, size_t len, const char **error);
} text_formats[] = {
	{perf_script_is, perf_script_read},
	{speedscope_is, speedscope_read},
	{folded_is, folded_read},
};

/* NULL: it is none of these texts. */
static const struct text_format *text_format_of(const char *text, size_t len)
{
	for (size_t i = 0; len && i < sizeof(text_formats) / sizeof(*text_formats); i++)
		if (text_formats[i].is(text, len))
			return &text_formats[i];
	return NULL;
}

static int read_text(struct profile_file *f, const struct text_format *format, const char *text,
		     size_t len, const char **error)
{
	int err = builder_new(&f->builder);

	*error = "no memory";
	if (!err)
		err = format->read(f->builder, text, len, error);
	return err ? err : builder_finish(f->builder, &f->profile);
}

static int read_pprof(struct profile_file *f, const void *bytes, size_t len, const char **error)
{
	int err = pprof_decode(bytes, len, &f->pprof, error);

	if (!err)
		f->profile = pprof_profile(f->pprof);
	return err;
}

int profile_read(const void *bytes, size_t len, struct profile_file **ret, const char **text)
{
	const struct text_format *format = text_format_of(bytes, len);
	struct profile_file *f = calloc(1, sizeof(*f));
	int err;

	*text = "no memory";
	if (!f)
		return -ENOMEM;
	if (len >= 8 && !memcmp(bytes, PERF_DATA_MAGIC, 8)) {
		*text = "this is perf's own format: perf script -i FILE | fusee report -";
		err = -EINVAL;
	} else if (format) {
		err = read_text(f, format, bytes, len, text);
	} else {
		err = read_pprof(f, bytes, len, text);
	}
	if (err)
		profile_file_free(f);
	else
		*ret = f;
	return err;
}

const struct fusee_profile *profile_of(const struct profile_file *f)
{
	return f->profile;
}

void profile_file_free(struct profile_file *f)
{
	if (!f)
		return;
	pprof_free(f->pprof);
	builder_free(f->builder);
	free(f);
}
