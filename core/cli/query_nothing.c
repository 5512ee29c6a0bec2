/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/internal/query_nothing.h"

#include "base/log.h"

/* No sample is an answer too, but mostly that of a mistyped label. */
static void log_unmet(const struct query_nothing *n)
{
	log_error("query: %sno sample in the range of time meets '%s' (%llu windows were read): "
		  "fusee query %s --labels lists the labels",
		  n->side, n->selector, (unsigned long long)n->counts->read, n->place);
}

void query_log_nothing(const struct query_nothing *n)
{
	const struct store_counts *c = n->counts;

	if (!c->files && c->omitted)
		log_error("query: %s'%s' has no window in the range of time (%llu days were not "
			  "listed, or not completely)",
			  n->side, n->place, (unsigned long long)c->omitted);
	else if (!c->files)
		log_error("query: '%s' has no profile: %s", n->place, store_lacks(n->store));
	else if (!c->read && c->broken)
		log_error("query: %s'%s': no file of the range of time can be read", n->side,
			  n->place);
	else if (!c->read && !c->excluded)
		log_error("query: %sof %llu files in '%s' none has a window in the range of time",
			  n->side, (unsigned long long)c->files, n->place);
	else
		log_unmet(n);
}
