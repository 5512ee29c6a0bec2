/* SPDX-License-Identifier: Apache-2.0 */
/* fusee new: writes the skeleton of a plugin that builds and passes its own test. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/embed.h"
#include "base/log.h"
#include "cli/cli.h"
#include "console/options.h"

#define SKELETON "core/cli/skeleton/"

EMBED(new_sink, SKELETON "sink.c.in");
EMBED(new_discovery, SKELETON "discovery.c.in");
EMBED(new_test_sink, SKELETON "test_sink.c.in");
EMBED(new_test_discovery, SKELETON "test_discovery.c.in");
EMBED(new_sink_lua, SKELETON "sink.lua.in");
EMBED(new_discovery_lua, SKELETON "discovery.lua.in");
EMBED(new_unwinder, SKELETON "unwinder.c.in");
EMBED(new_unwinder_bpf, SKELETON "unwinder.bpf.c.in");
EMBED(new_test_unwinder, SKELETON "test_unwinder.c.in");
EMBED(new_unwinder_lua, SKELETON "unwinder.lua.in");
EMBED(new_unwinder_makefile, SKELETON "Makefile.unwinder.in");
EMBED(new_sampler, SKELETON "sampler.c.in");
EMBED(new_sampler_bpf, SKELETON "sampler.bpf.c.in");
EMBED(new_sampler_h, SKELETON "sampler.h.in");
EMBED(new_test_sampler, SKELETON "test_sampler.c.in");
EMBED(new_sampler_lua, SKELETON "sampler.lua.in");
EMBED(new_sampler_makefile, SKELETON "Makefile.sampler.in");
EMBED(new_makefile, SKELETON "Makefile.in");
EMBED(new_readme, SKELETON "README.md.in");

struct template
{
	const char *kind; /* NULL: for all kinds */
	const char *file; /* its name; @NAME@ is replaced */
	const char *text, *end;
};

static const struct template templates[] = {
	{"sink", "@NAME@.c", new_sink, new_sink_end},
	{"sink", "test_@NAME@.c", new_test_sink, new_test_sink_end},
	{"sink", "@NAME@.lua", new_sink_lua, new_sink_lua_end},
	{"discovery", "@NAME@.c", new_discovery, new_discovery_end},
	{"discovery", "test_@NAME@.c", new_test_discovery, new_test_discovery_end},
	{"discovery", "@NAME@.lua", new_discovery_lua, new_discovery_lua_end},
	{"sink", "Makefile", new_makefile, new_makefile_end},
	{"discovery", "Makefile", new_makefile, new_makefile_end},
	{"unwinder", "@NAME@.c", new_unwinder, new_unwinder_end},
	{"unwinder", "@NAME@.bpf.c", new_unwinder_bpf, new_unwinder_bpf_end},
	{"unwinder", "test_@NAME@.c", new_test_unwinder, new_test_unwinder_end},
	{"unwinder", "@NAME@.lua", new_unwinder_lua, new_unwinder_lua_end},
	{"unwinder", "Makefile", new_unwinder_makefile, new_unwinder_makefile_end},
	{"sampler", "@NAME@.c", new_sampler, new_sampler_end},
	{"sampler", "@NAME@.bpf.c", new_sampler_bpf, new_sampler_bpf_end},
	{"sampler", "@NAME@.h", new_sampler_h, new_sampler_h_end},
	{"sampler", "test_@NAME@.c", new_test_sampler, new_test_sampler_end},
	{"sampler", "@NAME@.lua", new_sampler_lua, new_sampler_lua_end},
	{"sampler", "Makefile", new_sampler_makefile, new_sampler_makefile_end},
	{NULL, "README.md", new_readme, new_readme_end},
};
#define TEMPLATES (sizeof(templates) / sizeof(templates[0]))

/* Whether the name is a C identifier in lower case, for symbols and scripts. */
static bool is_name(const char *name)
{
	size_t n = strlen(name);

	if (!n || n > 40 || !islower((unsigned char)*name))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) &&
		    name[i] != '_')
			return false;
	return true;
}

/* The texts that replace the templates' marks. */
struct marks {
	const char *kind, *name;
	char tree[PATH_MAX];  /* sources of this build; "": installed */
	char build[PATH_MAX]; /* the folder of this program */
	const char *plugin_dir;
};

static void find_tree(struct marks *m)
{
	ssize_t n = readlink("/proc/self/exe", m->build, sizeof(m->build) - 1);
	char path[PATH_MAX + 32], *slash;

	m->plugin_dir = "$(pkg-config --variable=plugindir fusee)";
	m->build[n > 0 ? n : 0] = '\0';
	slash = strrchr(m->build, '/');
	if (!slash)
		return;
	*slash = '\0';
	/* The plugins of a program that is not installed are in its folder. */
	snprintf(path, sizeof(path), "%s/plugins", m->build);
	if (access(path, F_OK))
		return;
	snprintf(path, sizeof(path), "%s/../include/fusee/plugin.h", m->build);
	if (access(path, F_OK))
		return;
	snprintf(m->tree, sizeof(m->tree), "%.*s", (int)(strrchr(m->build, '/') - m->build),
		 m->build);
}

/* Appends the text with its marks replaced. */
static void fill(struct buf *out, const char *text, const char *end, const struct marks *m)
{
	const struct {
		const char *mark, *text, *more;
	} all[] = {
		{"@NAME@", m->name, ""},
		{"@KIND@", m->kind, ""},
		{"@TREE@", m->tree, ""},
		{"@BUILD@", m->build, ""},
		{"@PLUGINDIR@", *m->tree ? m->build : m->plugin_dir, *m->tree ? "/plugins" : ""}};
	size_t n = sizeof(all) / sizeof(all[0]);

	while (text < end) {
		size_t i = 0;

		while (i < n && ((size_t)(end - text) < strlen(all[i].mark) ||
				 memcmp(text, all[i].mark, strlen(all[i].mark)) != 0))
			i++;
		if (i == n) {
			buf_add(out, text++, 1);
			continue;
		}
		buf_printf(out, "%s%s", all[i].text, all[i].more);
		text += strlen(all[i].mark);
	}
}

static int write_file(const struct template *t, const struct marks *m)
{
	struct buf path = {0}, text = {0};
	int fd = -1, r;

	buf_printf(&path, "%s/", m->name);
	fill(&path, t->file, t->file + strlen(t->file), m);
	buf_add(&path, "", 1);
	fill(&text, t->text, t->end, m);
	r = path.error ? path.error : text.error;
	if (!r) {
		fd = open(path.p, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		r = fd < 0 ? -errno : buf_write(&text, fd);
	}
	if (fd >= 0 && close(fd) && !r)
		r = -errno;
	if (r)
		log_error("cannot write '%s': %s", path.p ? path.p : m->name, strerror(-r));
	buf_fini(&path);
	buf_fini(&text);
	return r;
}

static int write_all(const char *kind, const char *name)
{
	struct marks marks = {.kind = kind, .name = name};
	int r = 0;

	find_tree(&marks);
	if (mkdir(name, 0777)) {
		if (errno == EEXIST)
			log_error("'%s' exists: choose another name or folder", name);
		else
			log_error("cannot make the folder '%s': %s", name, strerror(errno));
		return EX_CANTCREAT;
	}
	for (size_t i = 0; !r && i < TEMPLATES; i++)
		if (!templates[i].kind || !strcmp(templates[i].kind, kind))
			r = write_file(&templates[i], &marks);
	if (r)
		return EX_CANTCREAT;
	printf("wrote %s/: make -C %s check builds it and runs its test; %s/README.md says "
	       "more\n",
	       name, name, name);
	return 0;
}

const struct cli_command new_command = {
	.name = "new",
	.does = "write the skeleton of a plugin",
	.usage = "fusee new sink|discovery|unwinder|sampler NAME\n"
		 "Writes a folder NAME with a small plugin that works, its test, a Makefile that "
		 "builds it\n"
		 "against the headers of this fusee, and a script that uses it.\n",
	.words = "sink discovery unwinder sampler",
};

int cmd_new(int argc, char **argv)
{
	const char *kind, *name;
	int first, r = cli_parse(&new_command, NULL, argc, argv, &first);

	if (r)
		return r < 0 ? 0 : r;
	if (argc - first != 2)
		return cli_bad_usage(&new_command,
				     "name a kind, sink, discovery, unwinder or sampler, and a "
				     "name");
	kind = argv[first];
	name = argv[first + 1];
	if (strcmp(kind, "sink") && strcmp(kind, "discovery") && strcmp(kind, "unwinder") &&
	    strcmp(kind, "sampler"))
		return cli_bad_usage(&new_command,
				     "'%s' is no kind of plugin: sink, discovery, unwinder or "
				     "sampler",
				     kind);
	if (!is_name(name))
		return cli_bad_usage(&new_command,
				     "'%s' is no name for a plugin: lower-case letters, digits and "
				     "_, a letter first",
				     name);
	return write_all(kind, name);
}
