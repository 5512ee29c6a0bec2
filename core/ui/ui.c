/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/ui.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "console/interrupt.h"
#include "ui/internal/browser.h"
#include "ui/internal/server.h"

#define END_NS 1000000000u /* for an answer that is being made */

/* SIGINT, SIGTERM and SIGHUP: the loop ends, and if it is busy for longer, as with a bucket that
 * does not answer or a file that is read, the process. */
struct ending {
	struct loop *loop;
	atomic_bool *ending;
	sem_t done;
};

static void stop(void *arg)
{
	loop_stop(arg);
}

static void on_signal(void *arg)
{
	struct ending *e = arg;
	struct timespec until = clock_spec(clock_now() + END_NS);

	atomic_store(e->ending, true);
	if (loop_post(e->loop, stop, e->loop) || sem_clockwait(&e->done, CLOCK_MONOTONIC, &until))
		_exit(0); /* there is nothing to write */
}

/* The host and port for the browser: the machine's name if the server listens on all addresses. */
static void name_host(const struct ui_server *u, char host[160])
{
	const char *at = http_address(u->http), *port = strrchr(at, ':');
	char name[128] = "";

	if ((!strncmp(at, "0.0.0.0:", 8) || !strncmp(at, "[::]:", 5)) &&
	    !gethostname(name, sizeof(name) - 1) && *name)
		snprintf(host, 160, "%s%s", name, port);
	else
		snprintf(host, 160, "%s", at);
}

/* Prints the page's address, and opens the browser with a ticket instead of the token: other users
 * can read command lines. */
static void show(const struct ui_server *u, bool browser)
{
	char at[160], ticket[sizeof("http:///") + sizeof(at) + UI_TOKEN];
	int r = -1;

	name_host(u, at);
	snprintf(ticket, sizeof(ticket), "http://%s/%s", at, u->address.ticket);
	if (browser)
		r = browser_open(ticket);
	printf("http://%s/%s/\n", at, u->address.token);
	fflush(stdout);
	log_info("%s; Ctrl-C ends it", r ? "open this address in a browser" : "the page is open");
}

/* Runs the server until the loop ends. Returns an exit code. */
static int serve(struct ui_server *u, bool browser)
{
	char *text = NULL;
	int r = ui_server_open(u, &text);

	if (!r) {
		ui_files_ahead(&u->profiles.files);
		show(u, browser);
		r = loop_run(u->loop);
	}
	if (r)
		log_error("%s", text ? text : strerror(-r));
	free(text);
	ui_server_close(u);
	return r ? EX_UNAVAILABLE : 0;
}

/* Serves until a signal comes. */
static int serve_until(struct ui_server *u, bool browser)
{
	struct ending e = {.loop = u->loop, .ending = &u->profiles.ending};
	struct interrupt *interrupt;
	int r;

	sem_init(&e.done, 0, 0);
	interrupt_block();
	interrupt_begin(&interrupt, on_signal, &e);
	r = serve(u, browser);
	sem_post(&e.done);
	interrupt_end(interrupt);
	sem_destroy(&e.done);
	return r;
}

int ui_serve(const struct ui_options *o)
{
	struct ui_server u = {.listen = o->listen, .live = o->live};
	int r = ui_files_open(&u.profiles.files, o->paths, o->npaths);

	if (ui_profiles_open(&u.profiles, o->store, o->place) && !r) {
		log_error("no memory");
		r = EX_OSERR;
	}
	if (!r && loop_new(&u.loop)) {
		log_error("cannot make an event loop");
		r = EX_OSERR;
	}
	if (!r)
		r = serve_until(&u, o->browser);
	loop_free(u.loop);
	ui_profiles_close(&u.profiles);
	return r;
}
