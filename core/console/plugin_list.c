// SPDX-License-Identifier: Apache-2.0
#include "console/plugin_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"

unsigned int plugin_list_columns(void)
{
	struct winsize w;

	if (isatty(1) && !ioctl(1, TIOCGWINSZ, &w) && w.ws_col >= 20)
		return w.ws_col < 100 ? w.ws_col : 100;
	return 80;
}

int plugin_list_open(struct plugin_folder *f)
{
	char *dir = plugin_default_dir();
	int r = dir ? plugin_folder_open(dir, 0, f) : -ENOMEM;

	if (r)
		log_error("cannot open the plugins' folder '%s': %s", dir ? dir : "?",
			  strerror(-r));
	free(dir);
	return r ? EX_OSFILE : 0;
}
