/* SPDX-License-Identifier: Apache-2.0 */
#include "query/store.h"

#include <stddef.h>

void store_close(struct store *s)
{
	if (s)
		s->ops->close(s);
}

const char *store_lacks(const struct store *s)
{
	return s->ops->lacks;
}

const char *store_failure(const struct store *s)
{
	return s->ops->failure ? s->ops->failure(s) : NULL;
}

int store_read(struct store *s, const struct store_request *request,
	       const struct store_reader *reader, struct store_counts *counts)
{
	return s->ops->read(s, request, reader, counts);
}
