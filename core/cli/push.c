// SPDX-License-Identifier: Apache-2.0
/* fusee push: sends recorded profiles to a server, or to any sink. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/log.h"
#include "cli/cli.h"
#include "view/profile_input.h"
#include "view/push_sink.h"
#include "import/read.h"

#define MAX_LABELS 32u
#define MAX_BYTES (512u << 20) /* of a file */

struct push {
	const char *to, *sink;
	struct fusee_label labels[MAX_LABELS];
	uint32_t nlabels;
	uint32_t tries;
	bool quiet;
};

static int add_label(void *arg, const char *value)
{
	struct push *o = arg;
	const char *equals = strchr(value, '=');

	if (!equals || equals == value || !equals[1])
		return cli_bad_usage(&push_command, "--label '%s': it is NAME=TEXT", value);
	if (o->nlabels == MAX_LABELS)
		return cli_bad_usage(&push_command, "more than %u labels: '%s'", MAX_LABELS, value);
	o->labels[o->nlabels++] = (struct fusee_label){
		.key = {value, (uint64_t)(equals - value)},
		.str = {equals + 1, strlen(equals + 1)},
	};
	return 0;
}

#define MEMBER(member) .offset = offsetof(struct push, member)

static const struct cli_option options[] = {
	{"to", 't', "URL", "where: a server that takes pprof by POST (sink.http)", CLI_TEXT,
	 MEMBER(to)},
	{"sink", 0, "SINK", "or by any sink, with its options: otlp:url=http://host:4318", CLI_TEXT,
	 MEMBER(sink)},
	{"label", 'l', "NAME=TEXT", "a label of all samples that lack it; several are allowed",
	 CLI_CALL, .set = add_label},
	{"tries", 0, "N", "how often at most, where the server may take it later; default 5",
	 CLI_COUNT, MEMBER(tries)},
	{"quiet", 'q', NULL, "print errors only", CLI_TRUE, MEMBER(quiet)},
};

const struct cli_command push_command = {
	.name = "push",
	.does = "send recorded profiles to a server",
	.usage = "fusee push FILE.. --to URL [--label NAME=TEXT]...\n"
		 "       fusee push FILE.. --sink SINK[:OPTION=VALUE,..]\n"
		 "Sends pprof files, or others that fusee report reads, to a server. '-' is "
		 "standard input.\n",
	CLI_OPTIONS(options),
	.footer = "Exit codes: 65 no profile, 66 no file, 69 refused, 75 may be taken later.\n",
	.operand = "FILE",
};

static int parse(struct push *o, int argc, char **argv, int *first)
{
	int r = cli_parse(&push_command, o, argc, argv, first);

	if (r)
		return r;
	if (*first == argc)
		return cli_bad_usage(&push_command, "which profile? name a FILE");
	if (!o->to == !o->sink)
		return cli_bad_usage(&push_command, "where to? --to URL, or --sink SINK");
	if (o->to && !push_is_address(o->to))
		return cli_bad_address(&push_command, "to", o->to,
				       "does not begin with http:// or https://");
	if (!o->tries)
		return cli_bad_usage(&push_command, "--tries 0 sends nothing");
	return 0;
}

static int send_profile(const struct push *o, struct push_sink *sink, const char *path,
			const struct fusee_profile *from)
{
	struct fusee_profile p = *from;
	uint64_t n = p.resource.n;
	struct fusee_label *all = calloc(n + o->nlabels + 1, sizeof(*all));
	char *error = NULL;
	int r = -ENOMEM;

	if (all) {
		/* of equal names the first counts: labels of the command line */
		memcpy(all, o->labels, o->nlabels * sizeof(*all));
		for (uint64_t i = 0; i < n; i++)
			all[o->nlabels + i] = *FUSEE_AT(struct fusee_label, p.resource, i);
		p.resource = (struct fusee_table){all, (uint32_t)(n + o->nlabels), sizeof(*all)};
		r = push_sink_send(sink, &p, o->tries, &error);
	}
	free(all);
	if (r)
		log_error("'%s' was not delivered: %s", path, error ? error : strerror(-r));
	else if (!o->quiet)
		fprintf(stderr, "%s: delivered by sink.%s\n", path, push_sink_name(sink));
	free(error);
	return !r ? 0 : r == -ENOMEM ? EX_OSERR : r == -EAGAIN ? EX_TEMPFAIL : EX_UNAVAILABLE;
}

int cmd_push(int argc, char **argv)
{
	struct push o = {.tries = 5};
	struct push_sink *sink;
	int first, r = parse(&o, argc, argv, &first), worst = 0;

	if (!r)
		r = push_sink_open(&sink, o.to ? o.to : o.sink);
	if (r)
		return r < 0 ? 0 : r;
	for (int i = first; i < argc; i++) {
		struct profile_file *file = NULL;

		r = profile_input(argv[i], MAX_BYTES, &file);
		if (!r)
			r = send_profile(&o, sink, argv[i], profile_of(file));
		profile_file_free(file);
		if (r && (!worst || worst == EX_TEMPFAIL)) /* permanent failures outrank */
			worst = r;
	}
	push_sink_close(sink);
	return worst;
}
