/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There are two requests at a time: the events, and a query. Each time that the events begin, the
 * containers are listed, and once more a moment later, because it is unknown from when on
 * containerd sends events. An event of Docker's API has all data; a container of containerd's
 * events is looked up. Not all versions of the CRI have events, so its containers are listed every
 * period.
 */
#include "daemon.h"

#include <fusee/proto.h>
#include <stdlib.h>

#define SILENCE (10 * FUSEE_SECOND) /* of a query */
#define LONGEST (60 * FUSEE_SECOND) /* of a query */
#define MOST_BYTES (64ull << 20)    /* of a query's answer */
#define MOST_EVENTS (32ull << 20)   /* bytes in EVENTS_TIME: some 50,000 events */
#define EVENTS_TIME (10 * FUSEE_SECOND)
#define MAX_ERROR (64u << 10) /* bytes of an answer that is an error */
#define PAUSE_FIRST (FUSEE_SECOND / 4)
#define PAUSE_MOST (5 * FUSEE_SECOND)
#define SETTLE (2 * FUSEE_SECOND)   /* the time until the second list */
#define STABLE (5 * FUSEE_SECOND)   /* events that ended earlier are requested after a pause */
#define RELIST (300 * FUSEE_SECOND) /* between lists beside events */
#define MAX_SPACES 64u
#define MAX_PENDING 64u

/* The events, or the query. */
struct side {
	struct daemon *of;
	struct request *request;
	struct reader *reader;
	uint64_t due_ns, pause_ns, began_ns;
	uint64_t bytes, since_ns; /* of the answer, since since_ns */
	const char *problem;      /* why the answer was not accepted */
	int error;                /* of the host, or -ENOMEM */
	bool failing;             /* failing: said[] is the reason */
	char said[640];
};

/* A container to look up. */
struct pending {
	char space[CONTAINER_NAME], id[CONTAINER_ID];
};

struct daemon {
	const struct daemon_options *o;
	struct daemon_socket at;
	struct side events, query;
	struct names_source source;

	enum ask ask; /* of the query */
	bool listing; /* until all containers are listed */
	bool list_again;
	char (*spaces)[CONTAINER_NAME]; /* MAX_SPACES, of the list; of containerd only */
	uint32_t nspaces, space;
	struct pending *pending; /* MAX_PENDING; the first is looked up first */
	uint32_t npending;
	bool listed;  /* at least once */
	bool settled; /* see daemon_is_settled() */
};

static bool has_events(const struct daemon *d)
{
	return d->at.kind != DAEMON_CRI;
}

/* ---- reading answers ---- */

static void look_up(struct daemon *d, const struct container *c)
{
	for (uint32_t i = 0; i < d->npending; i++)
		if (!strcmp(d->pending[i].id, c->id) && !strcmp(d->pending[i].space, c->space))
			return;
	if (d->npending == MAX_PENDING) {
		d->query.due_ns = d->o->now_ns; /* a list has all containers */
		return;
	}
	memcpy(d->pending[d->npending].id, c->id, sizeof(c->id));
	memcpy(d->pending[d->npending].space, c->space, sizeof(c->space));
	d->npending++;
}

/* The CRI's lists may have the ID of an image instead of its name; the status has the name. */
static int put_of_cri(struct daemon *d, const struct container *of)
{
	struct container c = *of;
	const char *image = names_image(d->o->names, d->at.number, c.space, c.id);
	bool is_id = container_is_image_id(c.image);
	int r;

	if (is_id)
		TEXT_SET(c.image, fusee_text(image ? image : ""));
	r = names_put(d->o->names, &d->source, &c);
	if (!r && d->ask == ASK_ONE)
		r = names_set_image(d->o->names, d->at.number, c.space, c.id, c.image);
	else if (!r && is_id && !image)
		look_up(d, &c);
	return r;
}

static void add_space(struct daemon *d, const char *space)
{
	/* Docker's containers have no names in containerd */
	if (!strcmp(space, "moby"))
		return;
	if (d->nspaces == MAX_SPACES)
		fusee_count(d->o->self, "namespaces_ignored", 1);
	else
		memcpy(d->spaces[d->nspaces++], space, CONTAINER_NAME);
}

static int on_found(void *arg, enum found found, const struct container *c)
{
	struct side *s = arg;
	struct daemon *d = s->of;

	if (request_is_podmans(s->request))
		d->source.runtime = "podman";
	if (s == &d->events)
		fusee_count(d->o->self, "events", 1);
	switch (found) {
	case FOUND_CONTAINER:
		s->error = d->at.kind == DAEMON_CRI ? put_of_cri(d, c)
						    : names_put(d->o->names, &d->source, c);
		break;
	case FOUND_CHANGED:
		if (strcmp(c->space, "moby"))
			look_up(d, c);
		break;
	case FOUND_ENDED:
		names_end(d->o->names, d->at.number, c->space, c->id, d->o->now_ns);
		break;
	case FOUND_SPACE:
		add_space(d, c->space);
	}
	return s->error;
}

/* Whether the answer is longer than any valid answer. */
static bool is_endless(struct side *s, long status)
{
	struct daemon *d = s->of;

	if (status != 200)
		return s->bytes > MAX_ERROR;
	if (s == &d->query)
		return s->bytes > MOST_BYTES;
	if (d->o->now_ns >= s->since_ns + EVENTS_TIME) {
		s->since_ns = d->o->now_ns;
		s->bytes = 0;
	}
	return s->bytes > MOST_EVENTS;
}

static int on_body(void *arg, long status, const char *bytes, size_t n)
{
	struct side *s = arg;
	int r;

	s->bytes += n;
	if (is_endless(s, status)) {
		s->problem = "too large";
		return -EBADMSG;
	}
	r = s->problem ? 0 : reader_feed(s->reader, bytes, n);
	if (r == -ENOMEM)
		s->error = r;
	if (r && !s->error)
		s->problem = reader_problem(s->reader);
	return status == 200 ? r : 0; /* an error need not be JSON */
}

/* ---- requests ---- */

static const char *target_of(const struct daemon *d, enum ask ask)
{
	static const char *const targets[][4] = {
		[DAEMON_DOCKER] = {[ASK_EVENTS] = "/v1.40/events?filters=%7B%22type%22%3A%5B%22"
						  "container%22%5D%7D",
				   [ASK_LIST] = "/v1.40/containers/json"},
		[DAEMON_CONTAINERD] =
			{[ASK_EVENTS] = "/containerd.services.events.v1.Events/Subscribe",
			 [ASK_SPACES] = "/containerd.services.namespaces.v1.Namespaces/List",
			 [ASK_LIST] = "/containerd.services.containers.v1.Containers/ListStream",
			 [ASK_ONE] = "/containerd.services.containers.v1.Containers/Get"},
		[DAEMON_CRI] = {[ASK_LIST] = "/runtime.v1.RuntimeService/ListContainers",
				[ASK_ONE] = "/runtime.v1.RuntimeService/ContainerStatus"},
	};

	return targets[d->at.kind][ask];
}

static int begin(struct side *s, enum ask ask, const char *space, const char *id)
{
	struct daemon *d = s->of;
	bool query = s == &d->query;
	char text[CONTAINER_ID + 32];
	struct fusee_bytes message = {.p = text, .cap = sizeof(text), .most = sizeof(text)};
	struct request_options o = {.socket = d->at.path,
				    .target = target_of(d, ask),
				    .grpc = d->at.kind != DAEMON_DOCKER,
				    .space = space,
				    .silence_ns = query ? SILENCE : 0,
				    .most_ns = query ? LONGEST : 0};
	int r = reader_begin(s->reader, ask, space);

	s->began_ns = s->since_ns = d->o->now_ns;
	s->bytes = 0;
	s->problem = NULL;
	s->error = 0;
	if (query)
		d->ask = ask;
	if (ask == ASK_EVENTS && o.grpc)
		fusee_proto_text(&message, 1, fusee_text("topic~=\"^/containers/\""));
	else if (ask == ASK_ONE)
		fusee_proto_text(&message, 1, fusee_text(id));
	o.message = fusee_bytes_str(&message);
	return r ? r : request_begin(s->request, &o, d->o->now_ns);
}

static void pause_side(struct side *s)
{
	s->due_ns = s->of->o->now_ns + s->pause_ns;
	s->pause_ns = 2 * s->pause_ns < PAUSE_MOST ? 2 * s->pause_ns : PAUSE_MOST;
}

static int begin_list(struct daemon *d)
{
	d->listing = true;
	d->source.list = names_begin_list(d->o->names);
	d->nspaces = d->space = 0;
	return begin(&d->query, d->at.kind == DAEMON_CONTAINERD ? ASK_SPACES : ASK_LIST, "", "");
}

static int begin_look_up(struct daemon *d)
{
	struct pending p = *d->pending;

	memmove(d->pending, d->pending + 1, --d->npending * sizeof(p));
	return begin(&d->query, ASK_ONE, p.space, p.id);
}

/* ---- failures ---- */

/* Returns the reason for the metric; writes text[] for the log. */
static const char *explain(const struct side *s, const struct request_result *result, char *text,
			   size_t size)
{
	const struct daemon *d = s->of;
	const char *path = d->at.path, *message = reader_message(s->reader);

	if (s->problem && (!result->status || result->status == 200)) {
		snprintf(text, size, "'%s' does not answer as %s does: %s", path,
			 d->at.kind == DAEMON_DOCKER       ? "Docker"
			 : d->at.kind == DAEMON_CONTAINERD ? "containerd"
							   : "a runtime of Kubernetes",
			 s->problem);
		return s->problem;
	}
	switch (result->end) {
	case REQUEST_SILENT:
		snprintf(text, size, "'%s' does not answer", path);
		return "silent";
	case REQUEST_ENDLESS:
		snprintf(text, size, "the answer of '%s' does not end", path);
		return "endless";
	case REQUEST_BROKEN:
		snprintf(text, size, "no answer from '%s': %s", path, result->message);
		return "no answer";
	case REQUEST_STOPPED:
		snprintf(text, size, "the header of the answer of '%s' is too large", path);
		return "too large";
	default:
		break;
	}
	if (result->status != 200)
		snprintf(text, size, "'%s' answered %ld%s%s", path, result->status,
			 *message ? ": " : "", message);
	else if (result->grpc_status < 0)
		snprintf(text, size, "'%s' does not answer as a gRPC server does", path);
	else
		snprintf(text, size, "'%s' answered with gRPC's status %d: %s", path,
			 result->grpc_status, result->message);
	return "refused";
}

/* A daemon that does not run, or that this user may not query, is a failure only if a script names
 * its socket. */
static bool is_absent(const struct daemon *d, const struct request_result *result)
{
	return d->at.optional && result->end == REQUEST_BROKEN &&
	       (result->error == ENOENT || result->error == EACCES);
}

static void failed(struct side *s, const struct request_result *result)
{
	const struct daemon *d = s->of;
	char text[sizeof(s->said)];
	const char *reason = explain(s, result, text, sizeof(text));

	pause_side(s);
	if (is_absent(d, result) && !d->listed)
		return;
	fusee_count_by(d->o->self, "failures", "reason", reason, 1);
	if (!s->failing || strcmp(text, s->said)) {
		bool events = s == &d->events;
		uint64_t seconds = d->o->period_ns / FUSEE_SECOND;

		if (events)
			fusee_log(
				d->o->self, FUSEE_WARNING,
				"%s; its containers are listed every %llu s in place of its events",
				text, (unsigned long long)seconds);
		else
			fusee_log(d->o->self, FUSEE_WARNING,
				  "%s; containers keep the names that they have, and new "
				  "containers have "
				  "none until it works",
				  text);
	}
	s->failing = true;
	memcpy(s->said, text, sizeof(text));
}

static void works(struct side *s)
{
	if (s->failing)
		fusee_log(s->of->o->self, FUSEE_INFO, "'%s' answers: %s", s->of->at.path,
			  s == &s->of->events ? "its events are followed"
					      : "containers have their names");
	s->failing = false;
	s->pause_ns = PAUSE_FIRST;
}

static bool is_good(const struct side *s, const struct request_result *result)
{
	return !s->problem && result->end == REQUEST_ANSWERED && result->status == 200 &&
	       (s->of->at.kind == DAEMON_DOCKER || result->grpc_status == 0);
}

/* ---- ends of requests ---- */

static void count_request(const struct side *s, const struct request_result *result)
{
	if (is_absent(s->of, result) && !s->of->listed)
		return;
	fusee_count_by(s->of->o->self, "requests", "status",
		       result->end != REQUEST_ANSWERED || s->problem       ? "none"
		       : result->status == 200 && result->grpc_status <= 0 ? "ok"
									   : "error",
		       1);
}

/* Events end when the daemon ends: then both requests begin again. The query fails if the daemon
 * does not run. */
static void events_ended(void *arg, const struct request_result *result)
{
	struct side *s = arg;
	struct daemon *d = s->of;
	bool stable = d->o->now_ns >= s->began_ns + STABLE;

	count_request(s, result);
	if (s->error) {
		pause_side(s);
	} else if (s->problem || (result->status && result->status != 200) ||
		   result->grpc_status > 0) {
		failed(s, result);
		s->due_ns = d->o->now_ns + d->o->period_ns;
		d->query.due_ns = s->due_ns;
	} else {
		if (stable)
			s->pause_ns = PAUSE_FIRST;
		pause_side(s);
	}
}

static uint64_t next_list(struct daemon *d)
{
	bool again = d->list_again;

	d->list_again = false;
	if (!has_events(d) || !request_is_active(d->events.request))
		return d->o->now_ns + d->o->period_ns;
	return d->o->now_ns + (again ? SETTLE : RELIST);
}

static void end_list(struct daemon *d)
{
	d->listing = false;
	d->listed = d->settled = true;
	names_end_list(d->o->names, d->at.number, d->source.list, d->o->now_ns);
	fusee_count(d->o->self, "lists", 1);
	works(&d->query);
	d->query.due_ns = next_list(d);
}

static void list_failed(struct daemon *d, const struct request_result *result)
{
	d->listing = false;
	if (d->at.optional)
		d->settled = true;
	failed(&d->query, result);
}

/* The container may have ended before it was looked up. */
static void looked_up(struct daemon *d, const struct request_result *result)
{
	bool missing = result->end == REQUEST_ANSWERED && result->grpc_status == 5;

	if (!missing && !is_good(&d->query, result)) {
		d->npending = 0; /* the next list has them */
		failed(&d->query, result);
	}
}

static void query_ended(void *arg, const struct request_result *result)
{
	struct side *s = arg;
	struct daemon *d = s->of;

	if (!s->problem && result->end == REQUEST_ANSWERED && result->status == 200 &&
	    result->grpc_status <= 0 && reader_end(s->reader))
		s->problem = reader_problem(s->reader);
	count_request(s, result);
	if (s->error) { /* refused by the host, or no memory: lists all again */
		d->listing = false;
		pause_side(s);
	} else if (d->ask == ASK_ONE) {
		looked_up(d, result);
	} else if (!is_good(s, result)) {
		list_failed(d, result);
	} else if (d->at.kind != DAEMON_CONTAINERD || d->space == d->nspaces) {
		end_list(d);
	} /* else the containers of the next namespace are due */
}

/* ---- the daemon ---- */

static int go_on_events(struct daemon *d)
{
	struct side *s = &d->events;

	if (!has_events(d))
		return 0;
	if (request_is_active(s->request)) {
		if (s->failing && d->o->now_ns >= s->began_ns + STABLE) {
			works(s);
			d->query.due_ns = d->o->now_ns;
		}
		return 0;
	}
	if (d->o->now_ns < s->due_ns)
		return 0;
	if (!s->failing) {
		d->query.due_ns = d->o->now_ns;
		d->list_again = true;
	}
	return begin(s, ASK_EVENTS, "", "");
}

static int go_on_query(struct daemon *d)
{
	struct side *s = &d->query;

	if (request_is_active(s->request))
		return 0;
	if (d->listing && d->space < d->nspaces) {
		d->space++;
		return begin(s, ASK_LIST, d->spaces[d->space - 1], "");
	}
	if (d->o->now_ns >= s->due_ns)
		return begin_list(d);
	return d->npending && !s->failing ? begin_look_up(d) : 0;
}

int daemon_go_on(struct daemon *d)
{
	int r = go_on_events(d);

	if (r)
		pause_side(&d->events);
	if (!r && (r = go_on_query(d))) {
		d->listing = false;
		pause_side(&d->query);
	}
	r = r ? r : d->events.error ? d->events.error : d->query.error;
	d->events.error = d->query.error = 0;
	return r;
}

uint64_t daemon_deadline(const struct daemon *d)
{
	uint64_t at = UINT64_MAX;

	if (!request_is_active(d->query.request))
		at = d->query.due_ns;
	if (has_events(d) && !request_is_active(d->events.request) && d->events.due_ns < at)
		at = d->events.due_ns;
	if (d->events.failing && d->events.began_ns + STABLE < at &&
	    request_is_active(d->events.request))
		at = d->events.began_ns + STABLE;
	return at;
}

bool daemon_is_settled(const struct daemon *d)
{
	return d->settled;
}

static bool open_side(struct side *s, struct daemon *d,
		      void (*ended)(void *arg, const struct request_result *))
{
	s->of = d;
	s->pause_ns = PAUSE_FIRST;
	s->request = request_new(
		d->o->client, &(struct request_calls){.body = on_body, .ended = ended, .arg = s});
	s->reader = reader_new(d->at.kind, d->o->chosen, on_found, s);
	return s->request && s->reader;
}

static void close_side(struct side *s)
{
	request_free(s->request);
	reader_free(s->reader);
}

struct daemon *daemon_new(const struct daemon_options *o, const struct daemon_socket *at)
{
	static const char *const runtimes[] = {
		[DAEMON_DOCKER] = "docker", [DAEMON_CONTAINERD] = "containerd", [DAEMON_CRI] = ""};
	struct daemon *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->o = o;
	d->at = *at;
	d->source = (struct names_source){.daemon = at->number, .runtime = runtimes[at->kind]};
	if (at->kind == DAEMON_CRI && strstr(at->path, "crio"))
		d->source.runtime = "cri-o"; /* the CRI is containerd's too */
	d->spaces = calloc(MAX_SPACES, sizeof(*d->spaces));
	d->pending = calloc(MAX_PENDING, sizeof(*d->pending));
	if (open_side(&d->events, d, events_ended) && open_side(&d->query, d, query_ended) &&
	    d->spaces && d->pending)
		return d;
	daemon_free(d);
	return NULL;
}

void daemon_free(struct daemon *d)
{
	if (!d)
		return;
	close_side(&d->events);
	close_side(&d->query);
	free(d->spaces);
	free(d->pending);
	free(d);
}
