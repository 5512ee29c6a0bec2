/* SPDX-License-Identifier: Apache-2.0 */
/* fusee ctl: sends a command to a running agent and prints its answer for people. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/guess.h"
#include "base/log.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/answer.h"
#include "ctl/internal/explain_table.h"
#include "console/grid.h"
#include "console/options.h"
#include "ctl/target_table.h"
#include "config/plan.h"
#include "net/control_client.h"

#define DEFAULT_TIMEOUT_NS 60000000000ull

struct ctl {
	const char *socket, *command, *argument; /* of the command; NULL: none */
	char *default_socket;
	uint64_t timeout_ns;
	bool json;
	uint32_t width;
};

/* Sum of an object's numbers. */
static uint64_t sum_of(struct json_object *o, const char *key)
{
	struct json_object *all = json_object_object_get(o, key);
	uint64_t sum = 0;

	if (!json_object_is_type(all, json_type_object))
		return 0;
	json_object_object_foreach(all, name, v)
	{
		(void)v;
		sum += answer_number(all, name);
	}
	return sum;
}

/* ---- status ---- */

static void add_time(struct buf *b, double seconds)
{
	/* the answer may come from any program: a number beyond 2^53 is not a time */
	uint64_t s = seconds > 0 ? (uint64_t)(seconds < 0x1p53 ? seconds : 0x1p53) : 0;

	if (s >= 86400)
		buf_printf(b, "%" PRIu64 " d %" PRIu64 " h", s / 86400, s / 3600 % 24);
	else if (s >= 3600)
		buf_printf(b, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
	else if (s >= 60)
		buf_printf(b, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
	else
		buf_printf(b, "%" PRIu64 " s", s);
}

static void add_config(const struct ctl *c, struct json_object *o, struct buf *out)
{
	struct json_object *reload = json_object_object_get(o, "last_reload");
	const char *path = answer_text(o, "config"), *error = answer_text(reload, "error");
	uint64_t generation = answer_number(o, "generation");
	struct buf b = {0};

	buf_str(&b, *path ? path : "from flags");
	if (generation > 1)
		buf_printf(&b, ", reloaded %" PRIu64 " time%s", generation - 1,
			   generation == 2 ? "" : "s");
	answer_line(out, c->width, "config", &b);
	buf_reset(&b);
	if (reload && !answer_bool(reload, "ok")) {
		buf_printf(&b, "failed, the plan before it still runs: %s", error);
		answer_line(out, c->width, "reload", &b);
	}
	buf_fini(&b);
}

/* Appends "reason n, reason n" of one stage. */
static void add_losses(const struct ctl *c, struct json_object *o, const char *stage,
		       struct buf *out)
{
	struct json_object *reasons = json_object_object_get(o, stage);
	struct buf b = {0};
	char number[32];

	if (json_object_is_type(reasons, json_type_object)) {
		json_object_object_foreach(reasons, reason, v)
		{
			(void)v;
			if (!answer_number(reasons, reason))
				continue;
			buf_printf(&b, "%s%s %s", b.len ? ", " : "", reason,
				   text_number(number, answer_number(reasons, reason)));
		}
	}
	if (b.len)
		answer_line(out, c->width, stage, &b);
	buf_fini(&b);
}

static void add_sampling(const struct ctl *c, struct json_object *o, struct buf *out)
{
	char number[32], other[32];
	uint64_t samples = answer_number(o, "samples");
	struct buf b = {0};

	buf_printf(&b, "%s of %s processes profiled, ",
		   text_number(number, answer_number(o, "profiled")),
		   text_number(other, answer_number(o, "processes")));
	buf_printf(&b, "%s samples", text_number(number, samples));
	if (samples && json_object_object_get(o, "complete"))
		buf_printf(&b, ", %.1f%% complete",
			   100.0 * (double)answer_number(o, "complete") / (double)samples);
	answer_line(out, c->width, "sampling", &b);
	buf_fini(&b);
	add_losses(c, o, "truncated", out);
	add_losses(c, o, "lost", out);
}

static void add_cost(const struct ctl *c, struct json_object *o, struct buf *out)
{
	double cpu = answer_real(o, "cpu_s"), up = answer_real(o, "uptime_s");
	char number[32];
	struct buf b = {0};

	buf_printf(&b, "%.1f s of CPU time", cpu);
	if (up > 0)
		buf_printf(&b, " (%.2f%% of one CPU)", 100 * cpu / up);
	buf_printf(&b, ", %s of memory", text_bytes(number, answer_number(o, "rss_bytes")));
	answer_line(out, c->width, "cost", &b);
	buf_fini(&b);
}

/* Appends nothing without a budget. */
static void add_budget(const struct ctl *c, struct json_object *o, struct buf *out)
{
	struct json_object *budget = json_object_object_get(o, "budget");
	double share = answer_real(budget, "share");
	struct buf b = {0};

	if (!json_object_is_type(budget, json_type_object))
		return;
	buf_printf(&b, "%g%% of one CPU, %.2f%% used in the last minute, rates ",
		   100 * answer_real(budget, "cpu"), 100 * answer_real(budget, "used"));
	if (share < 1)
		buf_printf(&b, "lowered to %.0f%%", 100 * share);
	else
		buf_str(&b, "not lowered");
	answer_line(out, c->width, "budget", &b);
	buf_fini(&b);
}

/* Appends nothing where that is not followed. */
static void add_in_use(struct json_object *in_use, struct buf *b)
{
	static const char *const reasons[] = {"unfollowed", "unreturned", "unheld", "uncarried",
					      "failed"};
	uint64_t lost = 0;
	char number[32];

	if (!json_object_is_type(in_use, json_type_object))
		return;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		lost += answer_number(in_use, reasons[i]);
	buf_printf(b, "; %s bytes were in use when the last window ended",
		   text_number(number, answer_number(in_use, "bytes")));
	if (lost)
		buf_printf(b, "; %s samples are not among them (fusee_alloc_inuse_lost_total)",
			   text_number(number, lost));
}

/* Appends nothing where allocations are not sampled. */
static void add_alloc(const struct ctl *c, struct json_object *o, struct buf *out)
{
	struct json_object *alloc = json_object_object_get(o, "alloc");
	uint64_t unprobed = answer_number(alloc, "unprobed");
	uint64_t unknown = answer_number(alloc, "unknown_files");
	char number[32];
	struct buf b = {0};

	if (!json_object_is_type(alloc, json_type_object))
		return;
	buf_printf(&b, "%" PRIu64 " allocators of processes are probed, ",
		   answer_number(alloc, "probed"));
	buf_printf(&b, "%s calls so far", text_number(number, answer_number(alloc, "calls")));
	if (unprobed)
		buf_printf(&b, "; %" PRIu64 " were not probed, at first or to their end: %s",
			   unprobed, answer_text(alloc, "error"));
	if (unknown)
		buf_printf(&b, "; of %" PRIu64 " files it is not known whether they have one",
			   unknown);
	add_in_use(json_object_object_get(alloc, "in_use"), &b);
	answer_line(out, c->width, "alloc", &b);
	buf_fini(&b);
}

/* A line for each probe of the script. */
static void add_probes(const struct ctl *c, struct json_object *o, struct buf *out)
{
	struct json_object *list = json_object_object_get(o, "probes");

	for (size_t i = 0; i < answer_length(list); i++) {
		struct json_object *p = json_object_array_get_idx(list, i);
		uint64_t lost = answer_number(p, "lost");
		const char *error = answer_text(p, "error");
		char number[32];
		struct buf b = {0};

		buf_printf(&b, "%s: %" PRIu64 " attached, ", answer_text(p, "name"),
			   answer_number(p, "probed"));
		buf_printf(&b, "%s hits so far", text_number(number, answer_number(p, "hits")));
		if (lost)
			buf_printf(&b, ", %s without a stack", text_number(number, lost));
		if (*error)
			buf_printf(&b, "; the last failure: %s", error);
		answer_line(out, c->width, i ? "" : "probes", &b);
		buf_fini(&b);
	}
}

/* Why profiles wait until a person corrects something. */
static void add_denied(struct buf *b, struct json_object *sink)
{
	buf_str(b, ". Denied for ");
	add_time(b, answer_real(sink, "denied_s"));
	buf_str(b, ": profiles wait until that is mended; the next attempt is in ");
	add_time(b, answer_real(sink, "retry_s"));
	buf_str(b, ", or soon after a file with a token or password has changed");
}

static void add_errors(const struct ctl *c, struct json_object *list, const char *key,
		       struct buf *out)
{
	for (size_t i = 0; i < answer_length(list); i++) {
		struct json_object *o = json_object_array_get_idx(list, i);
		const char *error = answer_text(o, key);
		struct buf b = {0};

		if (!*error)
			continue;
		buf_printf(&b, "%s: %s", answer_text(o, "name"), error);
		if (!strcmp(key, "last_error") && json_object_object_get(o, "denied_s"))
			add_denied(&b, o);
		answer_wrap(out, c->width, 0, 2, &b);
		buf_fini(&b);
	}
}

/* How long the oldest profile of the sink's spool has waited; "-": none waits. */
static void oldest_cell(struct grid *g, struct json_object *sink)
{
	struct buf b = {0};

	if (answer_number(sink, "spooled"))
		add_time(&b, answer_real(sink, "spooled_oldest_s"));
	else
		buf_str(&b, "-");
	buf_add(&b, "", 1);
	grid_cell(g, "%s", b.error ? "" : b.p);
	buf_fini(&b);
}

static void sink_row(struct grid *g, struct json_object *s)
{
	char number[32];

	grid_cell(g, "%s", answer_text(s, "name"));
	grid_cell(g, "%s", answer_text(s, "state"));
	grid_cell(g, "%s", text_number(number, answer_number(s, "delivered")));
	grid_cell(g, "%s", text_number(number, answer_number(s, "retried")));
	grid_cell(g, "%s", text_number(number, sum_of(s, "lost")));
	grid_cell(g, "%s",
		  text_number(number, answer_number(s, "queued") + answer_number(s, "spooled")));
	grid_cell(g, "%s",
		  text_bytes(number,
			     answer_number(s, "queued_bytes") + answer_number(s, "spooled_bytes")));
}

static void add_sinks(const struct ctl *c, struct json_object *o, struct buf *out)
{
	struct json_object *list = answer_list(o, "sinks");
	struct grid g = {.columns = {{"SINK", false, 0},
				     {"STATE", false, 0},
				     {"DELIVERED", true, 0},
				     {"RETRIED", true, 1},
				     {"LOST", true, 0},
				     {"WAITING", true, 2},
				     {"BYTES", true, 1}},
			 .ncolumns = 7};
	bool spools = false, servers = false;

	for (size_t i = 0; i < answer_length(list); i++) {
		struct json_object *s = json_object_array_get_idx(list, i);

		spools |= json_object_object_get(s, "spooled") != NULL;
		servers |= !strcmp(answer_text(s, "names"), "server");
	}
	if (spools)
		g.columns[g.ncolumns++] = (struct grid_column){"OLDEST", true, 1};
	if (servers)
		g.columns[g.ncolumns++] = (struct grid_column){"NAMES", false, 1};
	for (size_t i = 0; i < answer_length(list); i++) {
		struct json_object *s = json_object_array_get_idx(list, i);

		sink_row(&g, s);
		if (spools)
			oldest_cell(&g, s);
		if (servers)
			grid_cell(&g, "%s", answer_text(s, "names"));
	}
	if (g.ncells) {
		buf_str(out, "\n");
		grid_print(&g, c->width, out);
		add_errors(c, list, "last_error", out);
		add_errors(c, list, "spool_error", out);
	}
	grid_fini(&g);
}

static void add_discoveries(const struct ctl *c, struct json_object *o, struct buf *out)
{
	struct json_object *list = answer_list(o, "discoveries");
	struct grid g = {
		.columns = {{"DISCOVERY", false, 0}, {"TARGETS", true, 0}, {"STATE", false, 0}},
		.ncolumns = 3};
	char number[32];

	for (size_t i = 0; i < answer_length(list); i++) {
		struct json_object *d = json_object_array_get_idx(list, i);

		grid_cell(&g, "%s", answer_text(d, "name"));
		grid_cell(&g, "%s", text_number(number, answer_number(d, "targets")));
		grid_cell(&g, "%s",
			  *answer_text(d, "error")   ? "failing"
			  : answer_bool(d, "synced") ? "in sync"
						     : "looking");
	}
	if (g.ncells) {
		buf_str(out, "\n");
		grid_print(&g, c->width, out);
		add_errors(c, list, "error", out);
	}
	grid_fini(&g);
}

static void print_status(const struct ctl *c, struct json_object *o, struct buf *out)
{
	struct buf b = {0};

	buf_printf(&b, "fusee %s, pid %" PRIu64 ", up for ", answer_text(o, "version"),
		   answer_number(o, "pid"));
	add_time(&b, answer_real(o, "uptime_s"));
	buf_printf(&b, ", %s", answer_text(o, "state"));
	answer_line(out, c->width, "agent", &b);
	buf_fini(&b);
	add_config(c, o, out);
	add_sampling(c, o, out);
	add_alloc(c, o, out);
	add_probes(c, o, out);
	add_cost(c, o, out);
	add_budget(c, o, out);
	add_sinks(c, o, out);
	add_discoveries(c, o, out);
}

static void print_explain(const struct ctl *c, struct json_object *o, struct buf *out)
{
	explain_table(o, c->width, out);
}

static void print_targets(const struct ctl *c, struct json_object *o, struct buf *out)
{
	target_table(answer_list(o, "targets"), c->width, 0, out);
}

/* ---- the commands ---- */

static const struct command {
	const char *name;
	void (*print)(const struct ctl *, struct json_object *, struct buf *out);
	const char *said; /* printed instead of the answer */
} commands[] = {
	{"status", print_status, NULL},
	{"targets", print_targets, NULL},
	{"explain", print_explain, NULL},
	{"reload", NULL, "reloaded\n"},
	{"pause", NULL, "sampling is paused: fusee ctl resume goes on\n"},
	{"resume", NULL, "sampling goes on\n"},
	{"flush", NULL, "everything is delivered\n"},
	{"help", NULL, NULL},
	{NULL, NULL, NULL},
};

static const struct command *find(const char *name)
{
	struct guess guess = {.word = name};

	for (const struct command *k = commands; k->name; k++) {
		if (!strcmp(k->name, name))
			return k;
		guess_offer(&guess, k->name);
	}
	log_error("fusee ctl has no command '%s'" GUESS_HINT, name,
		  GUESS_WORDS(guess, ": fusee ctl --help lists them"));
	return NULL;
}

/* Logs each line of the text as an error of its own. */
static void log_lines(const char *text)
{
	for (;;) {
		int len = (int)strcspn(text, "\n");

		log_error("%.*s", len, text);
		text += len;
		if (!*text++)
			return;
	}
}

static int print_answer(const struct ctl *c, const struct command *k, const char *text)
{
	struct json_object *o = json_tokener_parse(text);
	struct buf out = {0};
	int code = 0, err = 0;

	if (!json_object_is_type(o, json_type_object) || !json_object_object_get(o, "ok")) {
		log_error("the answer of the agent at %s is not understood: is it another "
			  "version?",
			  c->socket);
		code = EX_PROTOCOL;
	} else if (!answer_bool(o, "ok")) {
		code = 1;
	}
	if (c->json && code != EX_PROTOCOL)
		buf_printf(&out, "%s\n", text);
	else if (code == 1)
		log_lines(answer_text(o, "error"));
	else if (!code && k->print)
		k->print(c, o, &out);
	else if (!code)
		buf_str(&out, k->said);
	err = out.error ? out.error : buf_write(&out, STDOUT_FILENO);
	if (err && err != -EPIPE) {
		log_error("cannot write to standard output: %s", strerror(-err));
		code = EX_IOERR;
	}
	buf_fini(&out);
	json_object_put(o);
	return code;
}

static int no_answer(const struct ctl *c, int err)
{
	switch (err) {
	case -ENOENT:
	case -ECONNREFUSED:
		log_error("no agent at %s: start one with 'fusee run', or name its socket with "
			  "--socket",
			  c->socket);
		return EX_UNAVAILABLE;
	case -EACCES:
	case -EPERM:
		log_error(
			"cannot connect to the agent at %s: only root and the user who started it "
			"may",
			c->socket);
		return EX_NOPERM;
	case -ETIMEDOUT:
		log_error("the agent at %s did not answer within %g s", c->socket,
			  (double)c->timeout_ns / 1e9);
		return 1;
	case -ECONNRESET:
		log_error("the agent at %s closed the connection without an answer", c->socket);
		return 1;
	default:
		log_error("cannot send the command to the agent at %s: %s", c->socket,
			  strerror(-err));
		return 1;
	}
}

#define MEMBER(member) .offset = offsetof(struct ctl, member)

static const struct cli_option options[] = {
	{"socket", 0, "PATH", "the agent's control socket; default /run/fusee/control for root",
	 CLI_TEXT, MEMBER(socket)},
	{"timeout", 0, "TIME", "how long to wait for the answer; default 60s", CLI_DURATION,
	 MEMBER(timeout_ns)},
	{"json", 0, NULL, "print the agent's answer as it is", CLI_TRUE, MEMBER(json)},
};

const struct cli_command ctl_command = {
	.name = "ctl",
	.does = "query or control a running agent",
	.usage = "fusee ctl [OPTION]... COMMAND\n"
		 "Queries or controls the agent that runs on this machine (fusee run).\n"
		 "\n"
		 "  status      what it does, what it lost, and the state of its sinks\n"
		 "  targets     what is profiled, at which rate, for which sinks\n"
		 "  explain PID a process: its labels, their sources, why it is profiled or not\n"
		 "  reload      read the script again; a wrong script changes nothing\n"
		 "  pause       stop sampling\n"
		 "  resume      go on with it\n"
		 "  flush       end all windows now and deliver everything that waits\n"
		 "  help        print this\n",
	CLI_OPTIONS(options),
	.words = "status targets explain reload pause resume flush help",
};

static int run(struct ctl *c)
{
	const struct command *k = find(c->command);
	char *answer, request[64];
	int err, code;

	if (!k)
		return EX_USAGE;
	if (!k->print && !k->said && !c->json) {
		cli_print_help(&ctl_command);
		return 0;
	}
	if (!c->socket)
		c->socket = c->default_socket = plan_default_control();
	if (!c->socket) {
		log_error("out of memory");
		return EX_OSERR;
	}
	snprintf(request, sizeof(request), "%s%s%.32s", c->command, c->argument ? " " : "",
		 c->argument ? c->argument : "");
	err = control_request(c->socket, request, c->timeout_ns, &answer);
	if (err)
		return no_answer(c, err);
	c->width = grid_width();
	code = print_answer(c, k, answer);
	free(answer);
	return code;
}

int cmd_ctl(int argc, char **argv)
{
	struct ctl c = {.timeout_ns = DEFAULT_TIMEOUT_NS};
	int first, r = cli_parse(&ctl_command, &c, argc, argv, &first);

	if (r)
		return r < 0 ? 0 : r;
	if (first == argc)
		return cli_bad_usage(&ctl_command, "name a command: status, targets, explain, "
						   "reload, pause, resume or flush");
	c.command = argv[first];
	if (!strcmp(c.command, "explain")) {
		if (first + 2 != argc)
			return cli_bad_usage(&ctl_command, "explain takes the number of a process");
		c.argument = argv[first + 1];
	} else if (first + 1 != argc) {
		return cli_bad_usage(&ctl_command, "one command at a time");
	}
	r = run(&c);
	free(c.default_socket);
	return r;
}
