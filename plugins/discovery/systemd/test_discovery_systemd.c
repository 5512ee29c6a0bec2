/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/discovery/systemd
/* discovery systemd: paths of control groups, and units as the bus and processes report them.
 * tests/run/systemd has a real systemd. */
#include "test.h"

#include "lib/discovery.h"
#include "lib/begun.h"
#include "lib/cgroup_table.h"
#include "path.h"
#include "units.h"

extern const struct fusee_plugin fusee_plugin;

static const struct form {
	const char *path, *unit, *slice, *user_unit, *machine;
	const char *group; /* the unit's own control group; NULL: the path names no unit */
} forms[] = {
	{"/system.slice/ssh.service", "ssh.service", "system.slice", "", "",
	 "/system.slice/ssh.service"},
	{"/system.slice/ssh.service/child/deeper", "ssh.service", "system.slice", "", "",
	 "/system.slice/ssh.service"},
	{"/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service",
	 "system-getty.slice", "", "", "/system.slice/system-getty.slice/getty@tty1.service"},
	{"/init.scope", "init.scope", "", "", "", "/init.scope"},
	{"/app.service", "app.service", "", "", "", "/app.service"},
	{"/user.slice/user-1000.slice/session-3.scope", "session-3.scope", "user-1000.slice", "",
	 "", "/user.slice/user-1000.slice/session-3.scope"},
	{"/user.slice/user-1000.slice/user@1000.service", "user@1000.service", "user-1000.slice",
	 "", "", "/user.slice/user-1000.slice/user@1000.service"},
	{"/user.slice/user-1000.slice/user@1000.service/app.slice/app-shell.slice/term.service/x",
	 "user@1000.service", "user-1000.slice", "term.service", "",
	 "/user.slice/user-1000.slice/user@1000.service/app.slice/app-shell.slice/term.service"},
	{"/user.slice/user-1000.slice/user@1000.service/init.scope", "user@1000.service",
	 "user-1000.slice", "init.scope", "",
	 "/user.slice/user-1000.slice/user@1000.service/init.scope"},
	{"/machine.slice/machine-my\\x2dbox.scope/payload", "machine-my\\x2dbox.scope",
	 "machine.slice", "", "my-box", "/machine.slice/machine-my\\x2dbox.scope"},
	{"/machine.slice/systemd-nspawn@web.service/payload/init.scope",
	 "systemd-nspawn@web.service", "machine.slice", "", "web",
	 "/machine.slice/systemd-nspawn@web.service"},
	{"/system.slice/_cpu.service", "cpu.service", "system.slice", "", "",
	 "/system.slice/_cpu.service"},
	{"/system.slice/dev-hugepages.mount", "dev-hugepages.mount", "system.slice", "", "",
	 "/system.slice/dev-hugepages.mount"},
	{"/system.slice/dbus.socket", "dbus.socket", "system.slice", "", "",
	 "/system.slice/dbus.socket"},
	{"/", NULL, NULL, NULL, NULL, NULL},
	{"", NULL, NULL, NULL, NULL, NULL},
	{"/system.slice", NULL, NULL, NULL, NULL, NULL},
	{"/system.slice/system-getty.slice", NULL, NULL, NULL, NULL, NULL},
	{"/docker/0123456789abcdef", NULL, NULL, NULL, NULL, NULL},
	{"/lxc.payload.web/system.slice/ssh.service", NULL, NULL, NULL, NULL, NULL},
	{"/system.slice/foo.timer", NULL, NULL, NULL, NULL, NULL},
	{"/system.slice/.service", NULL, NULL, NULL, NULL, NULL},
	{"/system.slice/a b.service", NULL, NULL, NULL, NULL, NULL},
};

TEST(forms_of_paths)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const struct form *f = &forms[i];
		struct unit_path u;
		bool is = unit_path_parse(f->path, &u);

		fprintf(stderr, "# %s\n", f->path);
		CHECK_INT(is, f->unit != NULL);
		if (!is)
			continue;
		CHECK_STR(u.unit, f->unit);
		CHECK_STR(u.slice, f->slice);
		CHECK_STR(u.user_unit, f->user_unit);
		CHECK_STR(u.machine, f->machine);
		CHECK_INT(u.len, strlen(f->group));
	}
}

TEST(paths_in_clusters)
{
	FILE *f = cgroup_table_open();
	int lines = 0, rows = 0, wrong = 0;
	struct cgroup_row r;

	while (cgroup_table_next(f, &lines, &r)) {
		struct unit_path u = {0};
		char path[4096];
		bool right;

		if (!unit_path_of_process(r.text, path, sizeof(path)) || !unit_path_parse(path, &u))
			u = (struct unit_path){0};
		right = !strcmp(u.unit, r.unit) && !strcmp(u.user_unit, r.user_unit);
		if (!right)
			fprintf(stderr, "# line %d: found '%s' '%s', expected '%s' '%s'\n", r.line,
				u.unit, u.user_unit, r.unit, r.user_unit);
		wrong += !right;
		rows++;
	}
	fclose(f);
	CHECK_INT(wrong, 0);
	CHECK(rows >= 70);
}

TEST(any_path)
{
	char path[600];
	struct unit_path u;

	srand(3);
	for (int i = 0; i < 200000; i++) {
		size_t len = (size_t)rand() % sizeof(path);

		for (size_t k = 0; k < len; k++)
			path[k] = "/._-@\\x2dslicervcop.slice/.service/"[rand() % 35];
		path[len ? len - 1 : 0] = '\0';
		if (unit_path_parse(path, &u)) {
			CHECK(u.len <= strlen(path));
			CHECK(*u.unit && strlen(u.unit) < UNIT_NAME);
		}
	}
}

TEST(texts_of_proc)
{
	char out[64];

	CHECK(unit_path_of_process("0::/system.slice/a.service\n", out, sizeof(out)));
	CHECK_STR(out, "/system.slice/a.service");
	CHECK(unit_path_of_process(
		"5:pids:/x\n1:name=systemd:/docker/1\n0::/system.slice/d.service\n", out,
		sizeof(out)));
	CHECK_STR(out, "/docker/1");
	CHECK(unit_path_of_process("1:name=systemd:/\n0::/a:b.service\n", out, sizeof(out)));
	CHECK_STR(out, "/a:b.service");
	CHECK(!unit_path_of_process("5:pids:/x\n", out, sizeof(out)));
	CHECK(!unit_path_of_process("", out, sizeof(out)));
	CHECK(!unit_path_of_process("0::/a path that is clearly longer than the sixty-four bytes "
				    "that it has room for\n",
				    out, sizeof(out)));
}

/* ---- units ---- */

static struct fake *fake;
static struct fusee_self self;
static struct units *units;

static void begin(const struct units_options *o)
{
	fake = fake_new(&fusee_plugin, NULL);
	self = (struct fusee_self){(struct fusee_instance *)(void *)fake, &fake->host};
	CHECK(self.host->discovery->begin(self.in) == 0);
	CHECK(self.host->discovery->commit(self.in) == 0);
	units = units_open(&self, o);
	CHECK(units);
}

static void end(void)
{
	units_close(units);
	fake_free(fake);
}

static int bus_says(const char *name, const char *cgroup, const char *description, const char *id)
{
	struct unit_facts f = {cgroup, description, id};

	return units_put(units, name, &f);
}

TEST(a_unit_is_one_target)
{
	const struct units_options o = {.description = 1, .invocation_id = 1};

	begin(&o);
	CHECK_INT(units_see(units, "/system.slice/a.service/child"), 0);
	CHECK_INT(units_see(units, "/system.slice/a.service"), 0);
	CHECK_INT(fake->ntargets, 1);
	LABELS(fake, "/system.slice/a.service", {"unit", "a.service"}, {"slice", "system.slice"},
	       {"type", "service"}, {"description", ""});
	CHECK_INT(bus_says("a.service", "/system.slice/a.service", "The A", "01"), 0);
	CHECK_INT(fake->ntargets, 1);
	CHECK_STR(label_of(fake, "/system.slice/a.service", "description"), "The A");
	CHECK_INT(fake->puts, 2);
	CHECK_INT(bus_says("a.service", "/system.slice/a.service", "The A", "01"), 0);
	CHECK_INT(fake->puts, 2);
	CHECK_INT(bus_says("a.service", "/system.slice/a.service", "The A", "02"), 0);
	CHECK_STR(label_of(fake, "/system.slice/a.service", "invocation_id"), "02");
	units_remove(units, "a.service");
	CHECK_INT(fake->ntargets, 0);
	CHECK_INT(units_count(units), 0);
	end();
}

/* While there was no bus, units have ended and others begun. */
TEST(a_list_replaces_the_one_before)
{
	const struct units_options o = {0};

	begin(&o);
	bus_says("a.service", "/system.slice/a.service", "", "");
	bus_says("b.service", "/system.slice/b.service", "", "");
	units_see(units, "/user.slice/user-1.slice/user@1.service/app.slice/u.service");
	units_begin_list(units);
	bus_says("b.service", "/system.slice/b.service", "", "");
	bus_says("c.service", "/system.slice/c.service", "", "");
	CHECK_INT(fake->ntargets, 4);
	units_end_list(units);
	CHECK_INT(fake->ntargets, 3);
	CHECK(!fake_find(fake, "/system.slice/a.service"));
	CHECK_STR(label_of(fake, "/user.slice/user-1.slice/user@1.service/app.slice/u.service",
			   "user_unit"),
		  "u.service");
	end();
}

TEST(only_some)
{
	static const struct fusee_str some = {"a*.service", 10}, not_b = {"*b.service", 10};
	const struct units_options o = {.units = {&some, 1, sizeof(some)},
					.exclude = {&not_b, 1, sizeof(not_b)}};

	begin(&o);
	bus_says("a1.service", "/system.slice/a1.service", "", "");
	bus_says("ab.service", "/system.slice/ab.service", "", "");
	bus_says("c.service", "/system.slice/c.service", "", "");
	CHECK_INT(fake->ntargets, 1);
	CHECK(fake_find(fake, "/system.slice/a1.service"));
	end();
}

/* These control groups do not exist here, whichever hierarchy is mounted. */
TEST(what_does_not_exist_is_swept)
{
	const struct units_options o = {0};

	if (access("/sys/fs/cgroup/cgroup.procs", F_OK) &&
	    access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) &&
	    access("/sys/fs/cgroup/systemd/cgroup.procs", F_OK))
		SKIP("no control groups are mounted");
	begin(&o);
	units_see(units, "/fusee-test.slice/not-here.service");
	bus_says("other.service", "/fusee-test.slice/other.service", "", "");
	for (int i = 0; i < 2; i++)
		units_sweep(units);
	CHECK_INT(fake->ntargets, 1);
	CHECK(fake_find(fake, "/fusee-test.slice/other.service"));
	end();
}

TEST(a_bus_that_is_not_there)
{
	struct fake *f = begun(
		fake_new(&fusee_plugin, "address", "unix:path=/nonexistent/bus", NULL));

	CHECK_INT(fake_start(f), 0);
	CHECK(fake_logged(f, "/nonexistent/bus"));
	CHECK(fake_logged(f, "known by their control groups"));
	CHECK_INT(f->commits, 0);
	CHECK_INT(fake_process(f, FUSEE_PROCESS_SYNC, 0, 0), 0);
	CHECK_INT(f->commits, 1);
	fake_free(f);
}
