/* SPDX-License-Identifier: Apache-2.0 */
/* A client's request to /debug/pprof/profile: "seconds=10&process=nginx&unit=web.service". */
#ifndef PULL_REQUEST_H
#define PULL_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

#define PULL_SELECTORS 16u
#define PULL_MAX_SECONDS 600u
#define PULL_QUERY 8192u /* bytes */

struct pull_request {
	uint32_t seconds;
	/* Labels that a process must have, all of them; a label with an empty text it must not
	 * have. Their texts point into `text`. */
	struct fusee_label selectors[PULL_SELECTORS];
	uint32_t nselectors;
	char text[PULL_QUERY];
};

/* Parameters: seconds, 1 to PULL_MAX_SECONDS, default 30, of several the first, as Go has it;
 * debug=0; every other is a selector. 0, or -EINVAL with a sentence in error. */
int pull_request_parse(struct pull_request *, const char *query, char error[256]);
/* The sentence about a selector whose label no process has. */
void pull_request_unknown(const struct fusee_label *, char error[256]);
/* The sentence about a selector whose label is omitted from profiles. */
void pull_request_omitted(const struct fusee_label *, char error[256]);
/* Whether the labels of a process meet all selectors. */
bool pull_request_selects(const struct pull_request *, const struct fusee_label *labels,
			  uint32_t n);
#endif
