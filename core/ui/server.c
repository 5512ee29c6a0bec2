/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/internal/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "ui/internal/assets.h"
#include "ui/internal/selection.h"
#include "ui/internal/time_view.h"
#include "ui/internal/views.h"

#define JSON "application/json"
#define MAX_REQUEST 65536u /* names of C++ functions are long */
#define MAX_PATH 80

/* The page loads files of this server only, runs no inline scripts, and no page of another server
 * may show it in a frame. */
#define HEADERS                                                                              \
	"Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; " \
	"connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; "             \
	"form-action 'none'; frame-ancestors 'self'\r\n"                                     \
	"X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"                \
	"Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: "          \
	"same-origin\r\n"

static int first_range(struct ui_profiles *u, const struct ui_selection *s, struct buf *out)
{
	(void)s;
	return ui_first_range(u, clock_ns(CLOCK_REALTIME), out);
}

static const struct data {
	const char *name, *type;
	int (*put)(const struct ui_view *, struct buf *out);
	/* instead of put, for data that is not of the selected profiles alone */
	int (*of_all)(struct ui_profiles *, const struct ui_selection *, struct buf *out);
	bool saved; /* the browser saves it as a file */
} data[] = {
	{"about.json", JSON, .put = ui_about},
	{"table.json", JSON, .put = ui_table},
	{"callers.json", JSON, .put = ui_callers},
	{"labels.json", JSON, .put = ui_labels},
	{"source.json", JSON, .put = ui_source},
	{"code.json", JSON, .put = ui_code},
	{"calls.json", JSON, .put = ui_graph},
	{"tracks.json", JSON, .put = ui_tracks},
	{"time.json", JSON, .of_all = ui_time},
	{"range.json", JSON, .of_all = first_range},
	{"share.pb.gz", "application/octet-stream", .put = ui_share_pprof, .saved = true},
	{"share.folded", "text/plain; charset=utf-8", .put = ui_share_folded, .saved = true},
	{"share.html", "text/html; charset=utf-8", .put = ui_share_page, .saved = true},
	{"graph.html", "text/html; charset=utf-8", .put = NULL},
};

#define DATA (sizeof(data) / sizeof(*data))

static void answer_with(struct http_request *q, int status, const char *headers, const char *type,
			struct fusee_str body)
{
	http_answer(q, &(struct http_answer){.status = status,
					     .type = type,
					     .headers = headers,
					     .body = body.p,
					     .len = body.len});
}

static void answer(struct http_request *q, int status, const char *type, struct fusee_str body)
{
	answer_with(q, status, HEADERS, type, body);
}

static void answer_error(struct http_request *q, int status, struct fusee_str sentence)
{
	struct buf b = {0};
	struct json j = {.out = &b};

	json_open(&j, NULL);
	json_str(&j, "error", sentence);
	json_end(&j);
	answer(q, status, JSON, (struct fusee_str){b.p, b.error ? 0 : b.len});
	buf_fini(&b);
}

/* Answers with the body, or with an error, whose sentence is in the body. */
static void finish(struct http_request *q, int r, const char *type, struct buf *body)
{
	struct fusee_str text = {body->p, body->len};

	if (!r && !body->error)
		answer(q, 200, type, text);
	else if (r == -ENOENT)
		answer_error(q, 404, fusee_text("there is no such profile"));
	else if (r && !body->error && text.len)
		answer_error(q, 400, text);
	else
		answer_error(q, 500, fusee_text(strerror(r ? -r : -body->error)));
	buf_fini(body);
}

/* ---- data ---- */

/* Appends a title: "lines.pb.gz", "3 profiles", or the store's name. */
static int put_title(const struct ui_profiles *u, const struct ui_side *side, struct buf *to)
{
	if (side->n == 1)
		buf_str(to, u->files.files[side->files[0]].name);
	else if (side->n)
		buf_printf(to, "%u profiles", side->n);
	else
		buf_str(to, u->place ? u->place : "all profiles");
	return buf_add(to, "", 1);
}

static struct ui_models *models(struct ui_server *u)
{
	uint64_t changes = u->profiles.changes + u->profiles.files.changes;

	if (changes != u->models_at)
		ui_models_clear(&u->models);
	u->models_at = changes;
	return &u->models;
}

static int put_view(struct ui_server *u, const struct data *d, const struct ui_selection *s,
		    struct buf *out)
{
	struct ui_view v = {.o = s->o, .threads = s->threads};
	const struct ui_sum *sum, *base;
	struct buf title = {0};
	int r = ui_profiles_get(&u->profiles, &s->now, s->o.type, &v.p, &sum, out);

	if (!r && !ui_side_is_empty(&s->base))
		r = ui_profiles_get(&u->profiles, &s->base, s->o.type, &v.base, &base, out);
	if (!r && s->now.n == 1) /* again: loading the base may have unloaded it */
		r = ui_profiles_get(&u->profiles, &s->now, s->o.type, &v.p, &sum, out);
	if (!r)
		r = put_title(&u->profiles, &s->now, &title);
	if (!r && sum && s->now.n != 1) {
		v.windows = sum->merged.windows;
		v.broken = sum->counts.broken;
		v.others = sum->others;
		v.types = sum->types.p;
		v.ntypes = sum->ntypes;
	}
	v.o.title = title.p;
	v.models = models(u);
	if (!r)
		r = d->put ? d->put(&v, out) : render_flamegraph_served(v.p, v.base, &v.o, out);
	buf_fini(&title);
	return r;
}

static int put_data(struct ui_server *u, const struct data *d, char *query, struct buf *out)
{
	struct ui_selection s;
	int r = ui_selection_parse(&s, query, out);

	return r ? r : d->of_all ? d->of_all(&u->profiles, &s, out) : put_view(u, d, &s, out);
}

static void begin_data(void *arg, struct http_request *q, char *query)
{
	struct ui_server *u = arg;
	const char *name = http_request_page(q)->path + UI_TOKEN + 1;
	const struct data *d = data;
	struct buf out = {0};
	int r;

	while (strcmp(d->name, name))
		d++;
	r = put_data(u, d, query, &out);
	if (r || out.error || !d->saved) {
		finish(q, r, d->type, &out);
		return;
	}
	answer_with(q, 200, HEADERS "Content-Disposition: attachment\r\n", d->type,
		    (struct fusee_str){out.p, out.len});
	buf_fini(&out);
}

static void put_file(struct json *j, const struct ui_file *f, uint32_t number)
{
	json_open(j, NULL);
	json_uint(j, "file", number);
	json_text(j, "name", f->name);
	json_int(j, "time", f->time_ns / 1000000);
	json_int(j, "bytes", f->bytes);
	json_end(j);
}

static void begin_profiles(void *arg, struct http_request *q, char *query)
{
	struct ui_server *u = arg;
	struct buf out = {0};
	struct json j = {.out = &out};
	const struct ui_files *f = &u->profiles.files;
	int r = ui_files_look(&u->profiles.files);

	(void)query;
	json_open(&j, NULL);
	json_text(&j, "folder", f->folder);
	json_text(&j, "place", u->profiles.place);
	json_flag(&j, "live", u->live);
	json_list(&j, "files");
	for (uint32_t i = 0; i < f->n; i++)
		if (f->files[i].bytes >= 0)
			put_file(&j, &f->files[i], i);
	json_end(&j);
	json_end(&j);
	finish(q, r, JSON, &out);
}

/* ---- files of the page ---- */

static void begin_asset(void *arg, struct http_request *q, char *query)
{
	const char *name = http_request_page(q)->path + UI_TOKEN + 1;
	const struct ui_asset *a = ui_assets;

	(void)arg;
	(void)query;
	while (strcmp(a->name, name))
		a++;
	answer(q, 200, a->type, ui_asset_text(a));
}

/* Redirects from the ticket's address to the page. A ticket is valid once. */
static void begin_ticket(void *arg, struct http_request *q, char *query)
{
	struct ui_server *u = arg;
	char headers[64 + UI_TOKEN];

	(void)query;
	*u->address.ticket = '\0';
	snprintf(headers, sizeof(headers), "Location: /%s/\r\nReferrer-Policy: no-referrer\r\n",
		 u->address.token);
	http_answer(q,
		    &(struct http_answer){
			    .status = 303, .type = "text/plain", .headers = headers, .body = ""});
}

/* ---- until the page is closed ---- */

static void on_idle(void *arg)
{
	struct ui_server *u = arg;

	u->idle = NULL;
	loop_stop(u->loop);
}

static void on_closed(void *arg)
{
	struct ui_server *u = arg;

	if (!--u->shown && !u->idle)
		loop_at(u->loop, clock_now() + UI_IDLE_NS, on_idle, u, &u->idle);
}

/* An open page keeps this request, which is never answered. When the last is closed, fusee ends. */
static void begin_open(void *arg, struct http_request *q, char *query)
{
	struct ui_server *u = arg;

	(void)query;
	u->shown++;
	loop_timer_free(u->idle);
	u->idle = NULL;
	http_request_on_release(q, on_closed, u);
}

/* ---- the server ---- */

static bool permit(void *arg, const char *path)
{
	return ui_address_permits(&((const struct ui_server *)arg)->address, path);
}

static void add_page(struct ui_server *u, uint32_t *n, const char *name,
		     void (*begin)(void *, struct http_request *, char *))
{
	char *path = u->paths + (size_t)*n * MAX_PATH;

	snprintf(path, MAX_PATH, "/%s/%s", u->address.token, name);
	u->pages[(*n)++] = (struct http_page){.path = path, .begin = begin};
}

static int make_pages(struct ui_server *u)
{
	uint32_t n = 0, assets = 0;

	while (ui_assets[assets].name)
		assets++;
	u->pages = calloc(assets + DATA + 4, sizeof(*u->pages));
	u->paths = calloc(assets + DATA + 4, MAX_PATH);
	if (!u->pages || !u->paths)
		return -ENOMEM;
	for (uint32_t i = 0; i < assets; i++)
		add_page(u, &n, ui_assets[i].name, begin_asset);
	for (uint32_t i = 0; i < DATA; i++)
		add_page(u, &n, data[i].name, begin_data);
	add_page(u, &n, "profiles.json", begin_profiles);
	add_page(u, &n, "open", begin_open);
	snprintf(u->paths + (size_t)n * MAX_PATH, MAX_PATH, "/%s", u->address.ticket);
	u->pages[n] = (struct http_page){.path = u->paths + (size_t)n * MAX_PATH,
					 .begin = begin_ticket};
	return 0;
}

int ui_server_open(struct ui_server *u, char **text)
{
	struct http_options o = {.listen = u->listen ? u->listen : "127.0.0.1:0",
				 .permit = permit,
				 .foreign = "This server has another name than the request's "
					    "Host: use the address that fusee ui has printed.\n",
				 .max_request = MAX_REQUEST,
				 .arg = u};
	int r = ui_address_make(&u->address);

	*text = NULL;
	if (!r)
		r = make_pages(u);
	o.pages = u->pages;
	return r ? r : http_new(&u->http, u->loop, &o, text);
}

void ui_server_close(struct ui_server *u)
{
	http_free(u->http);
	ui_models_clear(&u->models);
	loop_timer_free(u->idle);
	free(u->pages);
	free(u->paths);
}
