/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `fusee ui`: a server on one address that shows profiles in a browser. */
#ifndef UI_UI_H
#define UI_UI_H

#include <stdbool.h>
#include <stdint.h>

struct store;

struct ui_options {
	char *const *paths; /* files, or one folder whose profiles are listed */
	uint32_t npaths;
	/* All profiles over time, which belongs to ui_serve(); NULL: the files that are listed. Its
	 * name, where no files are listed. */
	struct store *store;
	const char *place;
	bool live;          /* it becomes more: the page shows what is new */
	const char *listen; /* as in http.h; NULL: a free port of loopback */
	bool browser;       /* opens the page where there is a desktop */
};

/* Serves the page until SIGINT or SIGTERM, or until no browser has shown it for a while. Prints its
 * address. An exit code, after one error was logged. */
int ui_serve(const struct ui_options *);
#endif
