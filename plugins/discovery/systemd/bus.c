/* SPDX-License-Identifier: Apache-2.0 */
#include "bus.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-bus.h>

#include "path.h"

#define SERVICE "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define UNIT_PATH MANAGER_PATH "/unit"
#define MANAGER SERVICE ".Manager"
#define PROPERTIES "org.freedesktop.DBus.Properties"
#define SYSTEM_BUS "unix:path=/run/dbus/system_bus_socket"

#define REQUESTS 64u /* active at once: the manager answers one by one */
#define MESSAGES 256 /* handled in one bus_process(), which may take 50 ms */
#define CALL_US (30 * 1000000ull)
#define RETRY_FIRST FUSEE_SECOND
#define RETRY_MOST FUSEE_MINUTE

/* A unit whose properties are requested from the manager, or will be. */
struct request {
	struct request *next;
	struct bus *bus;
	sd_bus_slot *slot; /* the active call; NULL: none yet */
	char name[UNIT_NAME];
	char cgroup[4096], description[512], invocation_id[33];
	bool again; /* the unit changed during the call */
};

struct bus {
	const struct fusee_self *self;
	struct units *units;
	const char *address;
	bool details;

	sd_bus *bus;              /* NULL: no connection */
	struct request *requests; /* active requests first */
	uint32_t active;          /* number of active requests */
	bool listing, complete;   /* ListUnits was called; all units that it named are known */
	uint64_t retry_ns, pause_ns;
	int error; /* of a callback: the connection is to be closed */
	char why[512];
	bool said; /* `why` was reported, and no connection has been complete since */
};

struct bus *bus_open(const struct fusee_self *self, struct units *units, const char *address,
		     bool details)
{
	struct bus *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->self = self;
	b->units = units;
	b->address = address && *address ? address : getenv("DBUS_SYSTEM_BUS_ADDRESS");
	if (!b->address || !*b->address)
		b->address = SYSTEM_BUS;
	b->details = details;
	b->pause_ns = RETRY_FIRST;
	return b;
}

/* ---- requests ---- */

static void end_request(struct request **at)
{
	struct request *r = *at;

	*at = r->next;
	if (r->slot) {
		r->bus->active--;
		sd_bus_slot_unref(r->slot);
	}
	free(r);
}

static struct request **find_request(struct bus *b, const char *name)
{
	struct request **at = &b->requests;

	while (*at && strcmp((*at)->name, name))
		at = &(*at)->next;
	return at;
}

static void disconnect(struct bus *b)
{
	while (b->requests)
		end_request(&b->requests);
	sd_bus_close(b->bus);
	b->bus = sd_bus_unref(b->bus);
	b->listing = b->complete = false;
}

void bus_close(struct bus *b)
{
	if (!b)
		return;
	disconnect(b);
	free(b);
}

/* Keeps the first error of a callback: the connection ends with it. */
static int failed(struct bus *b, int r, const char *what)
{
	if (!b->error) {
		b->error = r;
		snprintf(b->why, sizeof(b->why), "%s: %s", what, strerror(-r));
	}
	return 0;
}

/* Requests the unit's properties once fewer than REQUESTS calls are under way. */
static int request(struct bus *b, const char *name)
{
	struct request **at = find_request(b, name), *r = *at;
	const char *type = unit_type(name);

	if (!type || !strcmp(type, "slice"))
		return 0;
	if (r) {
		r->again |= r->slot != NULL;
		return 0;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->bus = b;
	snprintf(r->name, sizeof(r->name), "%s", name);
	*at = r;
	return 0;
}

/* ---- answers about one unit ---- */

static int read_string(sd_bus_message *m, char *to, size_t size)
{
	const char *text;
	int r = sd_bus_message_read(m, "v", "s", &text);

	if (r > 0)
		snprintf(to, size, "%s", text);
	return r;
}

static int read_id(sd_bus_message *m, char to[33])
{
	const uint8_t *id;
	size_t n;
	int r = sd_bus_message_enter_container(m, 'v', "ay");

	if (r > 0)
		r = sd_bus_message_read_array(m, 'y', (const void **)&id, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n && i < 16; i++)
		snprintf(to + 2 * i, 3, "%02x", id[i]);
	return sd_bus_message_exit_container(m);
}

/* The properties of a unit: a{sv}. */
static int read_properties(sd_bus_message *m, struct request *q)
{
	const char *key;
	int r = sd_bus_message_enter_container(m, 'a', "{sv}");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		r = sd_bus_message_read(m, "s", &key);
		if (r < 0)
			return r;
		if (!strcmp(key, "ControlGroup"))
			r = read_string(m, q->cgroup, sizeof(q->cgroup));
		else if (!strcmp(key, "Description"))
			r = read_string(m, q->description, sizeof(q->description));
		else if (!strcmp(key, "InvocationID"))
			r = read_id(m, q->invocation_id);
		else
			r = sd_bus_message_skip(m, "v");
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int take_unit(struct request *q)
{
	struct unit_facts f = {q->cgroup, q->description, q->invocation_id};

	if (!*q->cgroup) {
		units_remove(q->bus->units, q->name);
		return 0;
	}
	return units_put(q->bus->units, q->name, &f);
}

/* An error means that the manager has removed the unit since. */
static int on_unit(sd_bus_message *m, void *arg, sd_bus_error *error)
{
	struct request *q = arg;
	struct bus *b = q->bus;
	bool again = q->again;
	char name[UNIT_NAME];
	int r = 0;

	(void)error;
	if (!sd_bus_message_is_method_error(m, NULL))
		r = read_properties(m, q);
	else
		*q->cgroup = '\0';
	if (r < 0)
		failed(b, r, "an answer about a unit cannot be read");
	else
		r = take_unit(q);
	snprintf(name, sizeof(name), "%s", q->name);
	end_request(find_request(b, name));
	if (r >= 0 && again)
		r = request(b, name);
	return r == -ENOMEM ? failed(b, r, "a unit cannot be kept") : 0;
}

static const char *interface_of(const char *type)
{
	static const char *const interfaces[][2] = {
		{"service", SERVICE ".Service"}, {"scope", SERVICE ".Scope"},
		{"socket", SERVICE ".Socket"},   {"mount", SERVICE ".Mount"},
		{"swap", SERVICE ".Swap"},
	};

	for (size_t i = 0; i < sizeof(interfaces) / sizeof(interfaces[0]); i++)
		if (!strcmp(interfaces[i][0], type))
			return interfaces[i][1];
	return NULL;
}

/* Requests only ControlGroup, or all properties if others are needed too: no call returns
 * several. */
static int call(struct bus *b, struct request *q)
{
	char *path;
	int r = sd_bus_path_encode(UNIT_PATH, q->name, &path);
	sd_bus_message *m = NULL;

	if (r >= 0)
		r = sd_bus_message_new_method_call(b->bus, &m, SERVICE, path, PROPERTIES, "GetAll");
	if (r >= 0)
		r = sd_bus_message_append(m, "s",
					  b->details ? "" : interface_of(unit_type(q->name)));
	if (r >= 0)
		r = sd_bus_call_async(b->bus, &q->slot, m, on_unit, q, CALL_US);
	sd_bus_message_unref(m);
	free(path);
	if (r >= 0)
		b->active++;
	return r < 0 ? r : 0;
}

static int send_requests(struct bus *b)
{
	int r = 0;

	for (struct request *q = b->requests; q && !r && b->active < REQUESTS; q = q->next)
		if (!q->slot)
			r = call(b, q);
	return r;
}

/* ---- changes ---- */

static bool runs(const char *state)
{
	return strcmp(state, "inactive") && strcmp(state, "failed");
}

/* JobRemoved(u id, o job, s unit, s result): a unit has been started or stopped. */
static int on_manager(sd_bus_message *m, void *arg, sd_bus_error *error)
{
	struct bus *b = arg;
	const char *unit;
	int r = 0;

	(void)error;
	if (sd_bus_message_is_signal(m, MANAGER, "JobRemoved")) {
		r = sd_bus_message_read(m, "uos", NULL, NULL, &unit);
	} else if (sd_bus_message_is_signal(m, MANAGER, "UnitRemoved")) {
		r = sd_bus_message_read(m, "s", &unit);
		if (r >= 0)
			units_remove(b->units, unit);
		return 0;
	} else {
		return 0;
	}
	return r < 0 || request(b, unit) ? failed(b, r < 0 ? r : -ENOMEM, "a signal was lost") : 0;
}

/* PropertiesChanged(s interface, a{sv} changed, as invalidated) of a unit: its state, or its
 * invocation. */
static int on_properties(sd_bus_message *m, void *arg, sd_bus_error *error)
{
	struct bus *b = arg;
	const char *interface;
	char *name = NULL;
	int r = sd_bus_message_read(m, "s", &interface);

	(void)error;
	if (r < 0 || strcmp(interface, SERVICE ".Unit"))
		return 0;
	r = sd_bus_path_decode(sd_bus_message_get_path(m), UNIT_PATH, &name);
	if (r > 0)
		r = request(b, name);
	free(name);
	return r == -ENOMEM ? failed(b, r, "a signal was lost") : 0;
}

static int on_units(sd_bus_message *m, void *arg, sd_bus_error *error)
{
	struct bus *b = arg;
	const char *name, *active;
	int r;

	(void)error;
	if (sd_bus_message_is_method_error(m, NULL))
		return failed(b, -sd_bus_message_get_errno(m), "systemd did not list its units");
	units_begin_list(b->units);
	r = sd_bus_message_enter_container(m, 'a', "(ssssssouso)");
	while (r >= 0 && (r = sd_bus_message_read(m, "(ssssssouso)", &name, NULL, NULL, &active,
						  NULL, NULL, NULL, NULL, NULL, NULL)) > 0)
		if (runs(active) && request(b, name))
			r = -ENOMEM;
	b->listing = false;
	return r < 0 ? failed(b, r, "the list of units cannot be read") : 0;
}

static int list(struct bus *b)
{
	int r = sd_bus_call_method_async(b->bus, NULL, SERVICE, MANAGER_PATH, MANAGER, "Subscribe",
					 NULL, NULL, NULL);

	if (r >= 0)
		r = sd_bus_call_method_async(b->bus, NULL, SERVICE, MANAGER_PATH, MANAGER,
					     "ListUnits", on_units, b, NULL);
	b->listing = true;
	b->complete = false;
	return r;
}

/* NameOwnerChanged: systemd has started, or restarted and lost the subscription. */
static int on_owner(sd_bus_message *m, void *arg, sd_bus_error *error)
{
	struct bus *b = arg;
	const char *owner;
	int r = sd_bus_message_read(m, "sss", NULL, NULL, &owner);

	(void)error;
	if (r > 0 && *owner)
		r = list(b);
	return r < 0 ? failed(b, r, "systemd's units cannot be listed") : 0;
}

/* ---- the connection ---- */

static int subscribe(struct bus *b)
{
	int r = sd_bus_match_signal_async(b->bus, NULL, SERVICE, MANAGER_PATH, MANAGER, NULL,
					  on_manager, NULL, b);

	if (r >= 0)
		r = sd_bus_add_match_async(
			b->bus, NULL,
			"type='signal',sender='" SERVICE "',interface='" PROPERTIES
			"',member='PropertiesChanged',path_namespace='" UNIT_PATH "'",
			on_properties, NULL, b);
	if (r >= 0)
		r = sd_bus_add_match_async(b->bus, NULL,
					   "type='signal',sender='org.freedesktop.DBus',"
					   "member='NameOwnerChanged',arg0='" SERVICE "'",
					   on_owner, NULL, b);
	return r < 0 ? r : list(b);
}

static int connect_bus(struct bus *b)
{
	int r = sd_bus_new(&b->bus);

	if (r >= 0)
		r = sd_bus_set_address(b->bus, b->address);
	if (r >= 0)
		r = sd_bus_set_bus_client(b->bus, 1);
	if (r >= 0)
		r = sd_bus_start(b->bus);
	return r < 0 ? r : subscribe(b);
}

static int handle(struct bus *b)
{
	int r = 1;

	for (int i = 0; r > 0 && i < MESSAGES; i++) {
		r = sd_bus_process(b->bus, NULL);
		if (b->error)
			return b->error;
	}
	if (r >= 0)
		r = send_requests(b);
	if (r < 0)
		return r;
	if (!b->listing && !b->requests && !b->complete) {
		units_end_list(b->units);
		b->complete = true;
		b->said = false;
		b->pause_ns = RETRY_FIRST;
	}
	return 0;
}

int bus_process(struct bus *b, uint64_t now_ns, const char **why)
{
	int r = 0;

	*why = NULL;
	if (!b->bus && now_ns < b->retry_ns)
		return 0;
	b->error = 0;
	*b->why = '\0';
	if (!b->bus)
		r = connect_bus(b);
	if (r >= 0)
		r = handle(b);
	if (r >= 0)
		return 0;
	if (!*b->why)
		snprintf(b->why, sizeof(b->why), "the bus at %s: %s", b->address, strerror(-r));
	disconnect(b);
	b->retry_ns = now_ns + b->pause_ns;
	b->pause_ns = 2 * b->pause_ns < RETRY_MOST ? 2 * b->pause_ns : RETRY_MOST;
	if (!b->said)
		*why = b->why;
	b->said = true;
	return r;
}

int bus_fd(struct bus *b, uint32_t *events)
{
	int poll_events = b->bus ? sd_bus_get_events(b->bus) : -1;

	if (poll_events < 0)
		return -1;
	*events = (uint32_t)poll_events; /* poll's bits are epoll's */
	return sd_bus_get_fd(b->bus);
}

bool bus_is_complete(const struct bus *b)
{
	return b->complete;
}
