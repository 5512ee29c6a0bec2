/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the store that a query reads: a folder, a bucket by the sink that writes it, or the agent's
 * store. */
#ifndef CLI_QUERY_PLACE_H
#define CLI_QUERY_PLACE_H

#include "cli/cli.h"
#include "query/store.h"

/* place: a folder, s3://NAME/PREFIX or "agent"; options: of a bucket, as `--sink parquet:` has
 * them; socket: the agent's; NULL: the default; the command: for messages. 0, or an exit code after
 * errors were logged.
 */
int query_place_open(struct store **ret, const char *place, const char *options, const char *socket,
		     const struct cli_command *);
#endif
