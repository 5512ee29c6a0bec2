// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/plugin
/* Every allocation failed in turn while a folder of plugins is opened: all of them are there, or it
 * is -ENOMEM; none is skipped for lack of memory. */
#include "test.h"

#include <libgen.h>

#include "lib/faults.h"
#include "plugin/plugin.h"

/* What was built beside this test. */
static const char *folder(void)
{
	static char path[4096 + 16];
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	CHECK(n > 0);
	exe[n] = '\0';
	snprintf(path, sizeof(path), "%s/../plugins", dirname(exe));
	return path;
}

TEST_FOR(a_folder, 300)
{
	struct plugin_folder f;
	unsigned long rounds = 0;
	uint32_t total = 0;

	CHECK_INT(plugin_folder_open(folder(), 0, &f), 0);
	CHECK_INT(plugin_folder_load(&f), 0);
	total = f.n;
	CHECK(total && !f.nrefused);
	plugin_folder_close(&f);
	for (faults_from(0); faults_next(); rounds++) {
		int r = plugin_folder_open(folder(), 0, &f);

		if (!r)
			r = plugin_folder_load(&f);
		CHECK(r ? r == -ENOMEM && faults_happened() : f.n == total && !f.nrefused);
		faults_stop();
		plugin_folder_close(&f);
	}
	CHECK(rounds > 3 * total);
}

TEST_FOR(unwinders, 300)
{
	struct plugin_set set;
	unsigned long rounds = 0;
	uint32_t total = 0;

	CHECK_INT(plugin_set_open(folder(), &plugin_host_base, NULL, &set), 0);
	total = set.n;
	plugin_set_close(&set);
	for (faults_from(0); faults_next(); rounds++) {
		int r = plugin_set_open(folder(), &plugin_host_base, NULL, &set);

		CHECK(r ? r == -ENOMEM && faults_happened() : set.n == total);
		faults_stop();
		plugin_set_close(&set);
	}
	CHECK(rounds > 3 * total);
}
